"""The store of blobs: create, open, delete and describe them by reference; verify and find them."""

import asyncio
import itertools
import secrets
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import TypeVar

import msgspec

from tenfold.clock import wall
from tenfold.model.errors import InputError
from tenfold.objects.blobs.backend import Backend, DirectoryBackend
from tenfold.objects.blobs.layout import Layout, parse_layout, replicated, shard_name
from tenfold.objects.blobs.reading import RangeReading, Shards, unreadable
from tenfold.objects.blobs.refs import BlobReading, BlobRef, BlobWriter
from tenfold.objects.blobs.scanning import (
    FoundBlob,
    ShardState,
    find_blobs,
    latest_description,
    shard_state,
)
from tenfold.objects.blobs.source import Source, TrailerCache
from tenfold.objects.blobs.tier import Slot, Tier
from tenfold.objects.blobs.trailer import seal_note
from tenfold.objects.blobs.verified import VerifiedBlocks
from tenfold.objects.blobs.writing import TierWriter

_WORKERS = 32
_DAMAGE_MAX = 10_000
_RELOAD_S = 0.5
_T = TypeVar("_T")


class Damage(msgspec.Struct, frozen=True):
    """A shard that a reader could not use."""

    ref: BlobRef
    index: int
    problem: str


class Configured(msgspec.Struct, frozen=True):
    """Tiers as they are now, and which tier takes new blobs of one that is being drained."""

    tiers: Sequence[Tier]
    forwards: Mapping[str, str] = {}


class BlobStore:
    """Blobs in tiers. Use it from one event loop; several processes may share the backends.

    `reload` returns changed tiers, or None; it is asked now and then, before a blob is created.
    """

    def __init__(
        self, tiers: Sequence[Tier], reload: Callable[[], "Configured | None"] | None = None
    ) -> None:
        self.damage: deque[Damage] = deque(maxlen=_DAMAGE_MAX)
        self.workers: Executor = ThreadPoolExecutor(_WORKERS, thread_name_prefix="blobs")
        self.trailers = TrailerCache()
        self._verified = VerifiedBlocks()
        self._forwards: dict[str, str] = {}
        self._turn = itertools.count()
        self._reload = reload
        self._looked_s = monotonic()
        self._tiers: dict[str, Tier] = {}
        self._backends: dict[str, Backend] = {}
        self.configure(tiers)

    @property
    def tiers(self) -> Mapping[str, Tier]:
        """Return the tiers by name."""
        return self._tiers

    @property
    def backends(self) -> Mapping[str, Backend]:
        """Return the backends of all tiers by name."""
        return self._backends

    def configure(self, tiers: Sequence[Tier], forwards: Mapping[str, str] | None = None) -> None:
        """Use these tiers from now on. `forwards` names the tier that takes what another took."""
        self._forwards = dict(forwards or {})
        self._tiers = {tier.name: tier for tier in tiers}
        self._backends = {slot.backend.name: slot.backend for tier in tiers for slot in tier.slots}

    def tier(self, name: str) -> Tier:
        """Return a tier, or raise with the names that there are."""
        if name not in self._tiers:
            known = ", ".join(f"`{one}`" for one in self._tiers)
            raise InputError("tier-unknown", f"tier `{name}` is not configured", f"use {known}")
        return self._tiers[name]

    def target(self, tier: str) -> str:
        """Return the tier that takes new blobs of this one: itself, unless it is drained."""
        seen: list[str] = []
        while tier in self._forwards and tier not in seen:
            seen.append(tier)
            tier = self._forwards[tier]
        return tier

    def create(self, tier: str, size_bytes: int | None) -> BlobWriter:
        """Start a blob in a tier. `size_bytes` is its size, if known."""
        del size_bytes
        self.look_for_changes()
        return TierWriter(secrets.token_hex(16), self.tier(self.target(tier)), self.workers)

    def create_copy(self, ref: BlobRef, tier: str) -> TierWriter:
        """Start a copy of a blob in another tier. It keeps the id; its files get other names."""
        layout = parse_layout(ref.layout)
        moves = 1 + max(position.moves for position in layout.at if position is not None)
        return TierWriter(ref.id, self.tier(tier), self.workers, moves)

    async def open(self, ref: BlobRef, start: int, end: int) -> BlobReading:
        """Open bytes `start` to `end` (exclusive) of a blob."""
        layout = parse_layout(ref.layout)
        if any(one is not None and one.backend not in self._backends for one in layout.at):
            self.look_for_changes(at_once=True)
        sources = self.sources(ref, layout)
        if len(sources) < layout.coding.data_shards:
            raise unreadable(ref, [], gone=False)

        def failed(index: int, error: Exception) -> None:
            self.damage.append(Damage(ref, index, str(error)))

        shards = Shards(
            ref, layout.coding, sources, self.workers, self.trailers, self._verified, failed
        )
        reading = RangeReading(shards, start, min(end, ref.size_bytes))
        try:
            await reading.open()
        except BaseException:
            await reading.close()
            raise
        return reading

    async def delete(self, ref: BlobRef) -> None:
        """Remove every shard that the layout names; a missing one is not an error.

        A backend that fails does not keep the others from being asked; its error is raised then.
        """
        failure: OSError | None = None
        for source in self.sources(ref, parse_layout(ref.layout)).values():
            self.trailers.forget(source.backend, source.name)
            try:
                await self.in_worker(lambda one=source: one.backend.delete(one.name))
            except OSError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    async def redescribe(self, ref: BlobRef, description: bytes) -> None:
        """Replace the description of a blob on every shard, durably."""
        note = seal_note(wall.now_ms(), description)
        for source in self.sources(ref, parse_layout(ref.layout)).values():
            await self.in_worker(lambda one=source: one.backend.put_note(one.name, note))

    async def describe(self, ref: BlobRef) -> bytes:
        """Return the latest description of a blob."""
        sources = list(self.sources(ref, parse_layout(ref.layout)).values())
        return await self.in_worker(lambda: latest_description(sources))

    async def verify(self, ref: BlobRef) -> list[ShardState]:
        """Read every shard of a blob completely and return the state of each."""
        layout = parse_layout(ref.layout)
        sources = self.sources(ref, layout)
        return [
            await self.in_worker(lambda i=index: shard_state(ref, layout, i, sources.get(i)))
            for index in range(len(layout.at))
        ]

    def shards(self, ref: BlobRef) -> list[tuple[int, str, str]]:
        """Return index, backend and file of each shard that the layout names."""
        layout = parse_layout(ref.layout)
        return [
            (index, position.backend, shard_name(ref.id, index, position.moves))
            for index, position in enumerate(layout.at)
            if position is not None
        ]

    def walk(self) -> Iterator[FoundBlob]:
        """Yield every blob that the backends hold, by its shards alone. Blocks."""
        return find_blobs(list(self._backends.values()))

    def sources(self, ref: BlobRef, layout: Layout) -> dict[int, Source]:
        """Return the shards on configured backends; of replicas, another one first each time."""
        found = [
            Source(
                ref,
                layout.coding,
                index,
                self._backends[position.backend],
                shard_name(ref.id, index, position.moves),
            )
            for index, position in enumerate(layout.at)
            if position is not None and position.backend in self._backends
        ]
        if not layout.coding.erasure and len(found) > 1:
            turn = next(self._turn) % len(found)
            found = found[turn:] + found[:turn]
        return {source.index: source for source in found}

    def look_for_changes(self, *, at_once: bool = False) -> None:
        """Use changed tiers, if there are any."""
        if self._reload is None or (not at_once and monotonic() - self._looked_s < _RELOAD_S):
            return
        self._looked_s = monotonic()
        changed = self._reload()
        if changed is not None:
            self.configure(changed.tiers, changed.forwards)

    async def in_worker(self, step: Callable[[], _T]) -> _T:
        """Run a blocking step in a worker thread."""
        return await asyncio.get_running_loop().run_in_executor(self.workers, step)


def directory_store(tiers: Mapping[str, Sequence[Path]], replicas: int = 1) -> BlobStore:
    """Return a store with tiers on directories; each directory is a failure domain."""
    made: list[Tier] = []
    for tier, roots in tiers.items():
        slots: list[Slot] = []
        for number, root in enumerate(roots):
            backend = DirectoryBackend(f"{tier}{number}", root)
            backend.prepare()
            slots.append(Slot(backend, domain=str(root)))
        made.append(Tier(tier, replicated(replicas), tuple(slots)))
    return BlobStore(made)
