"""Looking at shards: the state of one, and every blob that the backends hold."""

import heapq
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Literal

import msgspec

from tenfold.objects.blobs.backend import Backend
from tenfold.objects.blobs.layout import Layout, Position, parse_coding, parse_shard_name
from tenfold.objects.blobs.refs import BlobRef
from tenfold.objects.blobs.source import Source, TrailerCache, read_trailer, shard_data_bytes
from tenfold.objects.blobs.trailer import DamagedShard, Trailer, open_note

State = Literal["good", "missing", "damaged", "unreachable", "unplaced"]


class ShardState(msgspec.Struct, frozen=True):
    """What a complete read of a shard found."""

    index: int
    backend: str
    state: State
    problem: str = ""


class FoundBlob(msgspec.Struct, frozen=True):
    """A blob as its shards describe it."""

    ref: BlobRef
    description: bytes
    described_ms: int
    changed_ms: int
    moves_max: int
    spare: tuple[tuple[str, str], ...]
    """Backend and name of further files of this blob: older copies of shards that were moved."""

    @property
    def readable(self) -> bool:
        """Return whether enough shards were found."""
        layout = self.ref.layout
        present = sum(one != "-" for one in layout.rpartition("at=")[2].split(","))
        return present >= parse_coding(layout).data_shards


class _Held(msgspec.Struct, frozen=True):
    blob: str
    index: int
    moves: int
    name: str
    backend: Backend
    changed_ms: int
    size_bytes: int


def shard_state(ref: BlobRef, layout: Layout, index: int, source: Source | None) -> ShardState:
    """Read a shard completely and say how it is."""
    position = layout.at[index]
    if position is None:
        return ShardState(index, "", "unplaced", "never written")
    if source is None:
        return ShardState(index, position.backend, "unreachable", "backend not configured")
    cache = TrailerCache()
    try:
        source.trailer(cache)
        for stripe in range(layout.coding.stripes(ref.size_bytes)):
            source.block(stripe, cache)
    except FileNotFoundError:
        return ShardState(index, position.backend, "missing", "no such file")
    except DamagedShard as error:
        return ShardState(index, position.backend, "damaged", str(error))
    except OSError as error:
        return ShardState(index, position.backend, "unreachable", str(error))
    return ShardState(index, position.backend, "good")


def latest_description(sources: Sequence[Source]) -> bytes:
    """Return the newest description that these shards of a blob carry."""
    found: list[tuple[int, bytes]] = []
    problems: list[str] = []
    for source in sources:
        try:
            note = source.backend.get_note(source.name)
            if note is not None:
                found.append(open_note(note))
            found.append((0, source.trailer(TrailerCache()).description))
        except (OSError, DamagedShard) as error:
            problems.append(f"{source.backend.name}: {error}")
    if not found:
        raise DamagedShard(f"no shard has a readable description ({'; '.join(problems)})")
    return max(found, key=lambda one: one[0])[1]


def find_blobs(backends: Sequence[Backend]) -> Iterator[FoundBlob]:
    """Yield every blob, in the order of ids, from the shards on these backends.

    A shard or a backend that cannot be read counts as absent; a blob without one readable trailer
    is left out.
    """
    held = heapq.merge(*(_held(backend) for backend in backends), key=lambda one: one.blob)
    for _, group in groupby(held, key=lambda one: one.blob):
        found = _found(list(group))
        if found is not None:
            yield found


def _held(backend: Backend) -> Iterator[_Held]:
    with suppress(OSError):
        for found in backend.walk():
            parsed = parse_shard_name(found.name)
            if parsed is not None:
                yield _Held(*parsed, found.name, backend, found.changed_ms, found.size_bytes)


def _found(held: Sequence[_Held]) -> FoundBlob | None:
    """Return the blob of these files. One that was moved to another tier may be there twice."""
    copies: dict[bytes, list[tuple[_Held, Trailer]]] = {}
    for one in held:
        trailer = _trailer_of(one)
        if trailer is not None:
            kind = msgspec.json.encode(msgspec.structs.replace(trailer.header, index=0))
            copies.setdefault(kind, []).append((one, trailer))
    found = [_copy(held, copy) for copy in copies.values()]
    return max(found, key=lambda one: (one.readable, one.moves_max), default=None)


def _copy(held: Sequence[_Held], copy: Sequence[tuple[_Held, Trailer]]) -> FoundBlob:
    first = copy[0][1]
    header = first.header
    coding = parse_coding(header.coding)
    newest: dict[int, _Held] = {}
    for one, _ in copy:
        if one.index not in newest or newest[one.index].moves < one.moves:
            newest[one.index] = one
    at = tuple(
        Position(newest[index].backend.name, newest[index].moves) if index in newest else None
        for index in range(coding.shards)
    )
    described_ms, description = max(
        ((0, first.description), *_notes(list(newest.values()))), key=lambda one: one[0]
    )
    named = {(one.backend.name, one.name) for one in newest.values()}
    layout = Layout(coding, at).text()
    return FoundBlob(
        BlobRef(header.blob, header.tier, layout, header.size_bytes, header.crc32c),
        description,
        described_ms,
        max(one.changed_ms for one in held),
        max(one.moves for one in newest.values()),
        tuple(
            (one.backend.name, one.name)
            for one in held
            if (one.backend.name, one.name) not in named
        ),
    )


def _trailer_of(held: _Held) -> Trailer | None:
    try:
        trailer = read_trailer(held.backend, held.name)
    except (OSError, DamagedShard):
        return None
    coding = parse_coding(trailer.header.coding)
    data_bytes = shard_data_bytes(coding, trailer.header.size_bytes)
    if (trailer.header.blob, trailer.header.index, trailer.data_bytes) != (
        held.blob,
        held.index,
        data_bytes,
    ):
        return None
    return trailer


def _notes(held: Sequence[_Held]) -> Iterator[tuple[int, bytes]]:
    for one in held:
        try:
            note = one.backend.get_note(one.name)
            if note is not None:
                yield open_note(note)
        except (OSError, DamagedShard):
            continue
