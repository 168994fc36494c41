"""Which blocks of local shards were verified, so that the kernel may send them as they are.

A block is verified when this process reads it for the first time, when it has to be read from the
disk again, and after its file changed: what is sent is never older than the last change.
"""

import os
from collections import OrderedDict
from collections.abc import Sequence

import msgspec

from tenfold.objects.blobs.checksum import crc32c
from tenfold.objects.blobs.source import Source, TrailerCache
from tenfold.objects.blobs.trailer import DamagedShard

_SHARDS_MAX = 65_536


class OpenShard(msgspec.Struct, frozen=True):
    """A shard whose local file is open."""

    source: Source
    fd: int
    stamp: tuple[int, int, int]
    """What differs once the file was changed or replaced."""


class _Blocks(msgspec.Struct):
    """The blocks of one file that were verified, as bits."""

    stamp: tuple[int, int, int]
    bits: int = 0


class VerifiedBlocks:
    """The blocks that were verified lately. Use it from one event loop."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], _Blocks] = OrderedDict()

    def pending(self, shard: OpenShard, stripes: range) -> bool:
        """Return whether blocks must be verified before they are sent."""
        blocks = self._of(shard)
        wanted = _bits(stripes)
        if blocks.bits & wanted != wanted:
            return True
        start, end = _span(shard.source, stripes)
        return not is_in_memory(shard.fd, start, end - start)

    def add(self, shard: OpenShard, stripes: range) -> None:
        """Remember that blocks were verified."""
        self._of(shard).bits |= _bits(stripes)

    def _of(self, shard: OpenShard) -> _Blocks:
        key = (shard.source.backend.name, shard.source.name)
        blocks = self._kept.get(key)
        if blocks is None or blocks.stamp != shard.stamp:
            blocks = self._kept[key] = _Blocks(shard.stamp)
        self._kept.move_to_end(key)
        if len(self._kept) > _SHARDS_MAX:
            self._kept.popitem(last=False)
        return blocks


def stamp_of(status: os.stat_result) -> tuple[int, int, int]:
    """Return what differs once a file was changed or replaced."""
    return status.st_ino, status.st_mtime_ns, status.st_size


def verify_blocks(shard: OpenShard, stripes: range, trailers: TrailerCache) -> None:
    """Read blocks and raise `DamagedShard` if one does not match its checksum. Blocks."""
    source = shard.source
    blocks: Sequence[int] = source.trailer(trailers).blocks
    scratch = bytearray(max(end - start for start, end in map(source.span, stripes)))
    for stripe in stripes:
        start, end = source.span(stripe)
        view = memoryview(scratch)[: end - start]
        if os.preadv(shard.fd, [view], start) != len(view) or crc32c(view) != blocks[stripe]:
            raise DamagedShard(f"block {stripe} does not match its checksum")


def is_quick(shard: OpenShard, bytes_max: int) -> bool:
    """Return whether a file can be verified without waiting: it is small and in memory."""
    size_bytes = shard.stamp[2]
    return size_bytes <= bytes_max and is_in_memory(shard.fd, 0, size_bytes)


def is_in_memory(fd: int, offset: int, count: int) -> bool:
    """Return whether the first and the last page of a range can be read without the disk."""
    try:
        for at in (offset, offset + count - 1):
            os.preadv(fd, [bytearray(1)], at, os.RWF_NOWAIT)
    except BlockingIOError:
        return False
    except (OSError, AttributeError):
        # Some file systems do not know the flag; sendfile works all the same.
        return True
    return True


def _span(source: Source, stripes: range) -> tuple[int, int]:
    return source.span(stripes[0])[0], source.span(stripes[-1])[1]


def _bits(stripes: range) -> int:
    return ((1 << len(stripes)) - 1) << stripes.start
