"""Reading a range of a blob: file regions where the bytes lie plain, verified chunks everywhere.

Regions are sent as they are, once their blocks were verified (`verified.py`). A block that fails is
replaced: by that of another replica, or by decoding the stripe from other shards. What replaces it
is verified as well.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

import msgspec

from tenfold.model.errors import Unreachable
from tenfold.objects.blobs.erasure import FRAGMENT_HEADER_BYTES, decode_stripe
from tenfold.objects.blobs.layout import Coding
from tenfold.objects.blobs.refs import BlobRef, FileRegion
from tenfold.objects.blobs.source import Source, TrailerCache, stripe_length
from tenfold.objects.blobs.trailer import DamagedShard
from tenfold.objects.blobs.verified import (
    OpenShard,
    VerifiedBlocks,
    is_quick,
    stamp_of,
    verify_blocks,
)

_AHEAD_BYTES = 8 << 20
_WINDOW_BYTES = 4 << 20
"""Verified at once, before it is sent."""
_QUICK_BYTES = 128 << 10
Failed = Callable[[int, Exception], None]


class BlobUnreadable(Unreachable):
    """Too few shards of a blob can be read.

    `gone` says that every shard is missing: the blob was deleted or moved since its row was read.
    """

    gone = False


def unreadable(ref: BlobRef, failures: Sequence[str], *, gone: bool) -> BlobUnreadable:
    """Return the error of a blob that cannot be read, with what failed."""
    error = BlobUnreadable(
        code="blob-unreadable",
        message=f"blob {ref.id} in tier `{ref.tier}` has too few readable shards "
        f"({'; '.join(failures) or 'no shard is on a backend that is configured'})",
        hint="bring its backends back, or run `tenfold objects scrub`",
    )
    error.gone = gone
    return error


class Shards(msgspec.Struct, frozen=True):
    """The shards of a blob that may be read, by index, and what reading them needs."""

    ref: BlobRef
    coding: Coding
    sources: Mapping[int, Source]
    workers: Executor
    trailers: TrailerCache
    verified: VerifiedBlocks
    failed: Failed


class RangeReading:
    """A range of a blob that is open for reading."""

    def __init__(self, shards: Shards, start: int, end: int) -> None:
        self._shards = shards
        self._start = start
        self._end = end
        self._files: dict[int, OpenShard] = {}
        self._first: tuple[int, bytes] | None = None

    async def open(self) -> None:
        """Open the local files, and verify or read the beginning.

        So a blob that cannot be read fails before anything of it is sent.
        """
        if self._end <= self._start:
            return
        is_open = self._open_chunks() if self._shards.coding.erasure else self._open_replica()
        if not is_open or not await self._is_sound(next(self._windows())):
            stripe = self._start // self._shards.coding.stripe_bytes
            self._first = (stripe, await self._stripe(stripe))

    async def pieces(self) -> AsyncIterator[FileRegion | bytes]:
        """Yield the bytes, verified: as regions of local files wherever they lie plain."""
        if not self._files:
            async for chunk in self.chunks():
                yield chunk
            return
        for number, window in enumerate(self._windows()):
            if self._first is None and (number == 0 or await self._is_sound(window)):
                for region in self._regions(window):
                    yield region
                continue
            for stripe in window:
                yield self._cut(stripe, await self._stripe(stripe))

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the bytes, verified."""
        if self._end <= self._start:
            return
        stripe_bytes = self._shards.coding.stripe_bytes
        first, last = self._start // stripe_bytes, (self._end - 1) // stripe_bytes
        ahead = max(1, _AHEAD_BYTES // stripe_bytes)
        async for stripe, data in _in_order(self._stripe, first, last, ahead):
            yield data if stripe not in (first, last) else self._cut(stripe, data)

    async def close(self) -> None:
        """Release the files."""
        self._close_files()

    def _close_files(self) -> None:
        while self._files:
            os.close(self._files.popitem()[1].fd)

    def _open_replica(self) -> bool:
        return any(self._open_file(source) for source in self._shards.sources.values())

    def _open_chunks(self) -> bool:
        for index in _needed(self._shards, self._start, self._end):
            source = self._shards.sources.get(index)
            if source is None or not self._open_file(source):
                self._close_files()
                return False
        return True

    def _open_file(self, source: Source) -> bool:
        if not source.backend.local:
            return False
        try:
            descriptor = source.backend.open(source.name)
        except OSError as error:
            self._shards.failed(source.index, error)
            return False
        status = os.fstat(descriptor)
        if status.st_size < source.data_bytes():
            os.close(descriptor)
            self._shards.failed(source.index, DamagedShard("the file is too short"))
            return False
        self._files[source.index] = OpenShard(source, descriptor, stamp_of(status))
        return True

    def _windows(self) -> Iterator[range]:
        """Yield the stripes of the range, as many at once as are verified and sent together."""
        stripe_bytes = self._shards.coding.stripe_bytes
        first, last = self._start // stripe_bytes, (self._end - 1) // stripe_bytes
        step = max(1, _WINDOW_BYTES // stripe_bytes)
        for at in range(first, last + 1, step):
            yield range(at, min(at + step, last + 1))

    def _span(self, window: range) -> tuple[int, int]:
        """Return the bytes of the range that are in a window."""
        stripe_bytes = self._shards.coding.stripe_bytes
        return (
            max(self._start, window.start * stripe_bytes),
            min(self._end, window.stop * stripe_bytes),
        )

    async def _is_sound(self, window: range) -> bool:
        """Verify the blocks of a window where needed; return whether all are intact."""
        for index, shard in self._files_of(window):
            if not self._shards.verified.pending(shard, window):
                continue
            try:
                await self._verify(shard, window)
            except (OSError, DamagedShard) as error:
                self._shards.failed(index, error)
                return False
            self._shards.verified.add(shard, window)
        return True

    async def _verify(self, shard: OpenShard, window: range) -> None:
        trailers = self._shards.trailers
        if is_quick(shard, _QUICK_BYTES):
            verify_blocks(shard, window, trailers)
            return
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._shards.workers, verify_blocks, shard, window, trailers)

    def _files_of(self, window: range) -> list[tuple[int, OpenShard]]:
        """Return the files that hold the range's bytes of a window."""
        if not self._shards.coding.erasure:
            return list(self._files.items())
        return [(index, self._files[index]) for index in _needed(self._shards, *self._span(window))]

    def _regions(self, window: range) -> Iterator[FileRegion]:
        """Yield where the range's bytes of a window are."""
        start, end = self._span(window)
        descriptors = {index: shard.fd for index, shard in self._files.items()}
        if self._shards.coding.erasure:
            yield from _chunk_regions(self._shards, descriptors, start, end)
            return
        (descriptor,) = descriptors.values()
        yield FileRegion(descriptor, start, end - start)

    async def _stripe(self, stripe: int) -> bytes:
        if self._first is not None and self._first[0] == stripe:
            data, self._first = self._first[1], None
            return data
        if self._shards.coding.erasure:
            return await _coded_stripe(self._shards, stripe)
        return await _replica_block(self._shards, stripe)

    def _cut(self, stripe: int, data: bytes) -> bytes:
        """Return what the range holds of a stripe."""
        at = stripe * self._shards.coding.stripe_bytes
        return data[max(0, self._start - at) : self._end - at]


def _chunk_regions(
    shards: Shards, descriptors: Mapping[int, int], start: int, end: int
) -> Iterator[FileRegion]:
    """Yield where the data chunks of a range are."""
    coding = shards.coding
    at = start
    while at < end:
        stripe, within = divmod(at, coding.stripe_bytes)
        chunk = coding.chunk_of(stripe_length(coding, shards.ref.size_bytes, stripe))
        index, offset = divmod(within, chunk)
        count = min(chunk - offset, end - at)
        data = stripe * (FRAGMENT_HEADER_BYTES + coding.chunk_bytes) + FRAGMENT_HEADER_BYTES
        yield FileRegion(descriptors[index], data + offset, count)
        at += count


def _needed(shards: Shards, start: int, end: int) -> list[int]:
    """Return the data shards that hold a range."""
    coding = shards.coding
    first, last = start // coding.stripe_bytes, (end - 1) // coding.stripe_bytes
    if last - first > 1:
        return list(range(coding.data_shards))
    indexes: list[int] = []
    for stripe in range(first, last + 1):
        at = stripe * coding.stripe_bytes
        length = stripe_length(coding, shards.ref.size_bytes, stripe)
        chunk = coding.chunk_of(length)
        from_chunk = max(0, start - at) // chunk
        to_chunk = (min(end - at, length) - 1) // chunk
        indexes += [one for one in range(from_chunk, to_chunk + 1) if one not in indexes]
    return sorted(indexes)


async def _replica_block(shards: Shards, stripe: int) -> bytes:
    failures: list[str] = []
    missing = 0
    for index, source in shards.sources.items():
        try:
            return await _run(shards, source, stripe)
        except (OSError, DamagedShard) as error:
            shards.failed(index, error)
            failures.append(f"{source.backend.name}: {error}")
            missing += isinstance(error, FileNotFoundError)
    raise unreadable(shards.ref, failures, gone=missing == len(failures) > 0)


async def _coded_stripe(shards: Shards, stripe: int) -> bytes:
    """Return a stripe: of its data shards, or decoded from any that suffice."""
    coding = shards.coding
    length = stripe_length(coding, shards.ref.size_bytes, stripe)
    fragments, failures = await _fragments(shards, stripe)
    if len(fragments) < coding.data_shards:
        missing = sum(isinstance(error, FileNotFoundError) for error in failures.values())
        raise unreadable(
            shards.ref,
            [f"{shards.sources[index].backend.name}: {failures[index]}" for index in failures],
            gone=not fragments and missing == len(failures) > 0,
        )
    if all(index in fragments for index in range(coding.data_shards)):
        parts = [fragments[index][FRAGMENT_HEADER_BYTES:] for index in range(coding.data_shards)]
        return b"".join(parts)[:length]
    source = shards.sources[next(iter(fragments))]
    loop = asyncio.get_running_loop()

    def decoded() -> bytes:
        check = source.trailer(shards.trailers).stripes[stripe]
        return decode_stripe(coding, fragments, length, check)

    return await loop.run_in_executor(shards.workers, decoded)


async def _fragments(shards: Shards, stripe: int) -> tuple[dict[int, bytes], dict[int, Exception]]:
    """Read as many fragments as suffice, data shards first; failures are replaced."""
    fragments: dict[int, bytes] = {}
    failures: dict[int, Exception] = {}
    waiting = sorted(shards.sources)
    while waiting and len(fragments) < shards.coding.data_shards:
        count = shards.coding.data_shards - len(fragments)
        batch, waiting = waiting[:count], waiting[count:]
        read = await asyncio.gather(
            *(_run(shards, shards.sources[index], stripe) for index in batch),
            return_exceptions=True,
        )
        for index, result in zip(batch, read, strict=True):
            if isinstance(result, bytes):
                fragments[index] = result
            elif isinstance(result, OSError | DamagedShard):
                failures[index] = result
                shards.failed(index, result)
            else:
                raise result
    return fragments, failures


async def _run(shards: Shards, source: Source, stripe: int) -> bytes:
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(shards.workers, source.block, stripe, shards.trailers)


async def _in_order(
    read: Callable[[int], Coroutine[Any, Any, bytes]], first: int, last: int, ahead: int
) -> AsyncIterator[tuple[int, bytes]]:
    """Yield stripes in order while the next ones are being read."""
    tasks: dict[int, asyncio.Task[bytes]] = {}
    try:
        for stripe in range(first, last + 1):
            for coming in range(stripe, min(stripe + ahead, last + 1)):
                if coming not in tasks:
                    tasks[coming] = asyncio.create_task(read(coming))
            yield stripe, await tasks.pop(stripe)
    finally:
        for task in tasks.values():
            task.cancel()
