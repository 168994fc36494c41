"""The shard of one rank: a data file, and a record that describes it.

The record is written last: if it is there, the shard is complete. It names its save, so a leftover
of another save is not mistaken for it.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tenfold.checkpoint.errors import CheckpointError, Damaged
from tenfold.checkpoint.files import Files, Stream
from tenfold.checkpoint.manifest import data_name, record_name
from tenfold.checkpoint.sealed import (
    Record,
    digest,
    fill,
    number,
    read_sealed,
    text,
    write_sealed,
)
from tenfold.checkpoint.values import Leaf, flatten, rebuild

_PIECE = 8 << 20


def write_shard(
    files: Files, folder: Path, nonce: str, rank: int, values: object, *, read_back: bool
) -> None:
    """Write a rank's values, read them back if requested, and then write the record."""
    leaves: list[Leaf] = []
    tree = flatten(values, leaves)
    hasher = hashlib.sha256()
    data = folder / data_name(rank)
    files.write(data, _hashed(_pieces(leaves), hasher.update))
    written = sum(int(leaf.spec["bytes"]) for leaf in leaves), hasher.hexdigest()
    if read_back and digest(files, data) != written:
        raise CheckpointError(
            code="checkpoint-read-back-differs",
            message=f"`{data}` differs from what was just written to it",
            hint="this disk is unreliable; older checkpoints are untouched",
        )
    size, sha256 = written
    body: Record = {"nonce": nonce, "rank": rank, "size": size, "sha256": sha256, "tree": tree}
    write_sealed(files, folder / record_name(rank), body)


def read_shard(files: Files, folder: Path, rank: int) -> object:
    """Return a rank's values; raise `Damaged` if they do not match their hash."""
    record = read_sealed(files, folder / record_name(rank))
    data = folder / data_name(rank)
    try:
        with files.open(data) as stream:
            source = _Source(stream, number(record, "size"))
            values = rebuild(record.get("tree"), source.fill, lambda: source.left)
            sha256 = source.close()
    except RecursionError:
        raise Damaged("its values are nested too deeply") from None
    except OSError as error:
        raise Damaged(f"cannot read `{data.name}`: {error.strerror or error}") from None
    if sha256 != text(record, "sha256"):
        raise Damaged(f"`{data.name}` does not match its hash")
    return values


def shard_of(files: Files, folder: Path, nonce: str, rank: int) -> Record | None:
    """Return a rank's record once its shard is complete for this save; None until then."""
    if record_name(rank) not in files.names(folder):
        return None
    try:
        record = read_sealed(files, folder / record_name(rank))
        if record.get("nonce") != nonce or number(record, "rank") != rank:
            return None
        if files.size(folder / data_name(rank)) != number(record, "size"):
            return None
    except (Damaged, OSError):
        return None
    return record


class _Source:
    """The bytes of a shard in order, hashed while they are read, in one pass."""

    def __init__(self, stream: Stream, size: int) -> None:
        self._stream = stream
        self._hasher = hashlib.sha256()
        self.left = size

    def fill(self, memory: memoryview) -> None:
        if len(memory) > self.left or fill(self._stream.readinto, memory) < len(memory):
            raise Damaged("its data is truncated")
        self.left -= len(memory)
        for at in range(0, len(memory), _PIECE):
            self._hasher.update(memory[at : at + _PIECE])

    def close(self) -> str:
        """Return the hash; raise `Damaged` if bytes are left over."""
        if self.left or self._stream.readinto(memoryview(bytearray(1))):
            raise Damaged("it has more data than values")
        return self._hasher.hexdigest()


def _pieces(leaves: Iterable[Leaf]) -> Iterator[memoryview]:
    for leaf in leaves:
        memory = leaf.content()
        for at in range(0, len(memory), _PIECE):
            yield memory[at : at + _PIECE]


def _hashed(
    pieces: Iterable[memoryview], update: Callable[[memoryview], None]
) -> Iterator[memoryview]:
    for piece in pieces:
        update(piece)
        yield piece
