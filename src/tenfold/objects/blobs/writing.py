"""Writing a blob: stripes go to all shards as they arrive; `commit` makes every shard durable.

A backend that fails before the first byte is replaced by another. One that fails later, or has no
substitute, leaves its shard missing: the write goes on while enough shards remain, and the layout
says which are missing.
"""

import asyncio
from array import array
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from threading import Lock

from tenfold.model.errors import Unreachable
from tenfold.objects.blobs.backend import Backend, ShardWriting
from tenfold.objects.blobs.checksum import crc32c
from tenfold.objects.blobs.erasure import encode_stripe
from tenfold.objects.blobs.layout import Layout, Position, shard_name
from tenfold.objects.blobs.refs import BlobRef, Bytes
from tenfold.objects.blobs.tier import Tier
from tenfold.objects.blobs.trailer import ShardHeader, Trailer, encode_trailer


class TierWriter:
    """A blob that is being written to a tier."""

    def __init__(self, blob: str, tier: Tier, workers: Executor, moves: int = 0) -> None:
        self._blob = blob
        self._moves = moves
        self._tier = tier
        self._coding = tier.coding
        self._workers = workers
        self._shards: list[_Shard] | None = None
        self._lock = Lock()
        self._is_aborted = False
        self._buffer = bytearray()
        self._size_bytes = 0
        self._crc32c = 0
        self._stripes = array("I")

    async def write(self, data: Bytes) -> None:
        """Append bytes; returns when they may be reused by the caller."""
        stripe_bytes = self._coding.stripe_bytes
        view = memoryview(data).cast("B")
        while view:
            if not self._buffer and len(view) >= stripe_bytes:
                whole = len(view) // stripe_bytes * stripe_bytes
                await self._append(view[:whole])
                view = view[whole:]
                continue
            taken = min(stripe_bytes - len(self._buffer), len(view))
            self._buffer += view[:taken]
            view = view[taken:]
            if len(self._buffer) == stripe_bytes:
                full, self._buffer = self._buffer, bytearray()
                await self._append(memoryview(full))

    async def commit(self, description: bytes) -> BlobRef:
        """Make the blob durable on every shard and return its reference."""
        try:
            if self._buffer or self._shards is None:
                await self._append(memoryview(self._buffer))
            shards = self._open_shards()
            await self._on_each(lambda shard: shard.commit(self._trailer(shard, description)))
            self._require_enough()
        except BaseException:
            await asyncio.shield(self._remove())
            raise
        layout = Layout(self._coding, tuple(shard.position() for shard in shards))
        return BlobRef(self._blob, self._tier.name, layout.text(), self._size_bytes, self._crc32c)

    async def abort(self) -> None:
        """Drop what was written."""
        await self._in_worker(self._abort)

    def _abort(self) -> None:
        # A write that was cancelled may still run in its thread: wait for it.
        with self._lock:
            self._is_aborted = True
            for shard in self._open_shards():
                shard.abort()

    async def _append(self, view: memoryview) -> None:
        try:
            await self._in_worker(lambda: self._write_locked(view))
            self._require_enough()
        except BaseException:
            await asyncio.shield(self.abort())
            raise

    def _write_locked(self, view: memoryview) -> None:
        with self._lock:
            if self._is_aborted:
                raise OSError("the write was aborted")
            self._write_stripes(view)

    def _write_stripes(self, view: memoryview) -> None:
        if self._shards is None:
            self._shards = _start_shards(self._blob, self._tier, self._moves)
        before = self._crc32c
        self._crc32c = crc32c(view, before)
        self._size_bytes += len(view)
        stripe_bytes = self._coding.stripe_bytes
        for start in range(0, len(view), stripe_bytes):
            stripe = view[start : start + stripe_bytes]
            once = not before and len(stripe) == len(view)
            check = self._crc32c if once else crc32c(stripe)
            self._write_stripe(stripe, check)

    def _write_stripe(self, stripe: memoryview, check: int) -> None:
        if self._coding.erasure:
            self._stripes.append(check)
            for shard, fragment in zip(
                self._open_shards(), encode_stripe(self._coding, stripe), strict=True
            ):
                shard.write(fragment, crc32c(fragment))
        else:
            for shard in self._open_shards():
                shard.write(stripe, check)

    def _trailer(self, shard: "_Shard", description: bytes) -> bytes:
        header = ShardHeader(
            blob=self._blob,
            tier=self._tier.name,
            coding=self._coding.text(),
            index=shard.index,
            size_bytes=self._size_bytes,
            crc32c=self._crc32c,
        )
        return encode_trailer(
            Trailer(header, shard.data_bytes, shard.blocks, self._stripes, description)
        )

    def _require_enough(self) -> None:
        shards = self._open_shards()
        written = sum(shard.failure is None for shard in shards)
        if written >= self._tier.written_min:
            return
        failures = "; ".join(
            f"{shard.backend_name}: {shard.failure}" for shard in shards if shard.failure
        )
        raise Unreachable(
            "tier-unavailable",
            f"tier `{self._tier.name}` took {written} of {len(shards)} shards of a write, "
            f"which needs {self._tier.written_min} ({failures})",
            "bring the backends back, or add one with `tenfold objects expand`",
        )

    def _open_shards(self) -> "list[_Shard]":
        return self._shards or []

    async def _remove(self) -> None:
        await self.abort()
        await self._on_each(_Shard.remove)

    async def _on_each(self, step: "Callable[[_Shard], None]") -> None:
        """Run a step on every shard at once: they are on different disks."""
        shards = self._open_shards()
        if len(shards) == 1:
            await self._in_worker(lambda: step(shards[0]))
            return
        await asyncio.gather(*(self._in_worker(lambda s=shard: step(s)) for shard in shards))

    async def _in_worker(self, step: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._workers, step)


class _Shard:
    """One shard of a blob that is being written; `failure` says why it is missing."""

    def __init__(
        self, name: tuple[str, int, int], backend: Backend | None, failure: str = ""
    ) -> None:
        self.index = name[1]
        self.backend_name = backend.name if backend else "no backend"
        self.failure = failure or None
        self.blocks = array("I")
        self.data_bytes = 0
        self._moves = name[2]
        self._name = shard_name(*name)
        self._backend = backend
        self._writing: ShardWriting | None = None

    def start(self) -> bool:
        """Open the shard on its backend and return whether that worked."""
        assert self._backend is not None
        try:
            self._writing = self._backend.create(self._name)
        except OSError as error:
            self.failure = str(error)
        return self.failure is None

    def write(self, data: Bytes, check: int) -> None:
        """Append a block."""
        self.blocks.append(check)
        self.data_bytes += len(data)
        self._attempt(lambda writing: writing.write(data))

    def commit(self, trailer: bytes) -> None:
        """Append the trailer and make the shard durable."""
        self._attempt(lambda writing: writing.write(trailer))
        self._attempt(lambda writing: writing.commit())

    def abort(self) -> None:
        """Drop what was written."""
        if self._writing is not None:
            with suppress(OSError):
                self._writing.abort()

    def remove(self) -> None:
        """Drop what was written, or remove what was committed."""
        self.abort()
        if self._backend is not None:
            with suppress(OSError):
                self._backend.delete(self._name)

    def position(self) -> Position | None:
        """Return where the shard is; None if it is missing."""
        return None if self.failure is not None else Position(self.backend_name, self._moves)

    def _attempt(self, step: Callable[[ShardWriting], None]) -> None:
        if self.failure is not None or self._writing is None:
            return
        try:
            step(self._writing)
        except OSError as error:
            self.failure = str(error)
            self.abort()


def _start_shards(blob: str, tier: Tier, moves: int) -> list[_Shard]:
    placed = tier.placement(blob)
    used = list(placed)
    shards: list[_Shard] = []
    for index in range(tier.coding.shards):
        name = (blob, index, moves)
        if index < len(placed):
            shards.append(_started(name, tier, placed[index], used))
        else:
            shards.append(_Shard(name, None, "no other failure domain"))
    return shards


def _started(name: tuple[str, int, int], tier: Tier, first: str, used: list[str]) -> _Shard:
    """Return a shard on its backend, or on the best substitute that works."""
    backends = {slot.backend.name: slot.backend for slot in tier.slots}
    shard = _Shard(name, backends[first])
    if shard.start():
        return shard
    used.remove(first)
    for substitute in tier.substitutes(name[0], used):
        other = _Shard(name, backends[substitute])
        if substitute != first and other.start():
            used.append(substitute)
            return other
    return shard
