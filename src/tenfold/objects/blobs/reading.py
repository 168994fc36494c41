"""Reading a range of a blob: file regions where the bytes lie plain, verified chunks everywhere.

Regions are sent as they are: their bytes were verified when they were written and by the last
scrub. Chunks are verified block by block; a shard that fails is replaced by another, and a stripe
that lacks data shards is decoded and verified again.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, overload

import msgspec

from tenfold.model.errors import Unreachable
from tenfold.objects.blobs.erasure import FRAGMENT_HEADER_BYTES, decode_stripe
from tenfold.objects.blobs.layout import Coding
from tenfold.objects.blobs.refs import BlobRef, FileRegion
from tenfold.objects.blobs.source import Source, TrailerCache, stripe_length
from tenfold.objects.blobs.trailer import DamagedShard

_AHEAD_BYTES = 8 << 20
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
    failed: Failed


class RangeReading:
    """A range of a blob that is open for reading."""

    def __init__(self, shards: Shards, start: int, end: int) -> None:
        self._shards = shards
        self._start = start
        self._end = end
        self._descriptors: list[int] = []
        self._first: tuple[int, bytes] | None = None
        self.regions: Sequence[FileRegion] | None = None

    def open(self) -> bool:
        """Open files for `regions`; return False if the range is not plain in local files."""
        if self._end <= self._start:
            self.regions = []
            return True
        if self._shards.coding.erasure:
            return self._open_chunks()
        return any(self._open_replica(source) for source in self._shards.sources.values())

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the bytes, verified."""
        if self._end <= self._start:
            return
        stripe_bytes = self._shards.coding.stripe_bytes
        first, last = self._start // stripe_bytes, (self._end - 1) // stripe_bytes
        ahead = max(1, _AHEAD_BYTES // stripe_bytes)
        async for stripe, data in _in_order(self._stripe, first, last, ahead):
            yield data if stripe not in (first, last) else self._cut(stripe, data)

    async def read_first(self) -> None:
        """Read the first stripe, so that a blob that cannot be read fails before it is sent."""
        first = self._start // self._shards.coding.stripe_bytes
        self._first = (first, await self._stripe(first))

    async def close(self) -> None:
        """Release the files."""
        while self._descriptors:
            os.close(self._descriptors.pop())

    def _open_replica(self, source: Source) -> bool:
        descriptor = self._opened(source)
        if descriptor is None:
            return False
        self.regions = [FileRegion(descriptor, self._start, self._end - self._start)]
        return True

    def _open_chunks(self) -> bool:
        needed = _needed(self._shards, self._start, self._end)
        descriptors: dict[int, int] = {}
        for index in needed:
            source = self._shards.sources.get(index)
            descriptor = self._opened(source) if source else None
            if descriptor is None:
                while self._descriptors:
                    os.close(self._descriptors.pop())
                return False
            descriptors[index] = descriptor
        self.regions = _ChunkRegions(self._shards, descriptors, self._start, self._end)
        return True

    def _opened(self, source: Source) -> int | None:
        if not source.backend.local:
            return None
        try:
            descriptor = source.backend.open(source.name)
        except OSError as error:
            self._shards.failed(source.index, error)
            return None
        if os.fstat(descriptor).st_size < source.data_bytes():
            os.close(descriptor)
            self._shards.failed(source.index, DamagedShard("the file is too short"))
            return None
        self._descriptors.append(descriptor)
        return descriptor

    async def _stripe(self, stripe: int) -> bytes:
        if self._first is not None and self._first[0] == stripe:
            data, self._first = self._first[1], None
            return data
        if self._shards.coding.erasure:
            return await _coded_stripe(self._shards, stripe)
        return await _replica_block(self._shards, stripe)

    def _cut(self, stripe: int, data: bytes) -> bytes:
        at = stripe * self._shards.coding.stripe_bytes
        return data[max(0, self._start - at) : self._end - at]


class _ChunkRegions(Sequence[FileRegion]):
    """The data chunks of a range, computed when asked: a large blob has very many."""

    def __init__(
        self, shards: Shards, descriptors: Mapping[int, int], start: int, end: int
    ) -> None:
        self._coding = shards.coding
        self._size_bytes = shards.ref.size_bytes
        self._descriptors = descriptors
        self._start = start
        self._end = end
        self._first = self._number(start)
        self._count = self._number(end - 1) - self._first + 1

    def __len__(self) -> int:
        """Return the number of regions."""
        return self._count

    @overload
    def __getitem__(self, at: int) -> FileRegion: ...
    @overload
    def __getitem__(self, at: slice) -> list[FileRegion]: ...
    def __getitem__(self, at: int | slice) -> FileRegion | list[FileRegion]:
        """Return a region, or a list of them."""
        if isinstance(at, slice):
            return [self._region(number) for number in range(*at.indices(self._count))]
        if not -self._count <= at < self._count:
            raise IndexError(at)
        return self._region(at % self._count)

    def _region(self, at: int) -> FileRegion:
        coding = self._coding
        stripe, index = divmod(self._first + at, coding.data_shards)
        chunk = coding.chunk_of(stripe_length(coding, self._size_bytes, stripe))
        chunk_start = stripe * coding.stripe_bytes + index * chunk
        start = max(chunk_start, self._start)
        end = min(chunk_start + chunk, self._end)
        stride = FRAGMENT_HEADER_BYTES + coding.chunk_bytes
        offset = stripe * stride + FRAGMENT_HEADER_BYTES + start - chunk_start
        return FileRegion(self._descriptors[index], offset, end - start)

    def _number(self, byte: int) -> int:
        """Return the number of the chunk that holds a byte, counted over all data shards."""
        coding = self._coding
        stripe, within = divmod(byte, coding.stripe_bytes)
        chunk = coding.chunk_of(stripe_length(coding, self._size_bytes, stripe))
        return stripe * coding.data_shards + within // chunk


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
