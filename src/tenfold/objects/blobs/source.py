"""One shard as a source of verified blocks."""

from collections import OrderedDict
from threading import Lock

from tenfold.objects.blobs.backend import Backend
from tenfold.objects.blobs.checksum import crc32c
from tenfold.objects.blobs.erasure import FRAGMENT_HEADER_BYTES
from tenfold.objects.blobs.layout import Coding
from tenfold.objects.blobs.refs import BlobRef
from tenfold.objects.blobs.trailer import (
    FOOTER_BYTES,
    DamagedShard,
    Trailer,
    parse_footer,
    parse_trailer,
)

_TAIL_BYTES = 64 << 10
_TRAILERS = 256


class TrailerCache:
    """Trailers that were read lately; they never change. Large ones are not kept."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], Trailer] = OrderedDict()
        self._lock = Lock()

    def get(self, backend: Backend, name: str) -> Trailer:
        """Return the trailer of a shard."""
        key = (backend.name, name)
        trailer = self._kept.get(key)
        if trailer is None:
            trailer = read_trailer(backend, name)
            if 4 * (len(trailer.blocks) + len(trailer.stripes)) < _TAIL_BYTES:
                with self._lock:
                    self._kept[key] = trailer
                    while len(self._kept) > _TRAILERS:
                        self._kept.popitem(last=False)
        return trailer

    def forget(self, backend: Backend, name: str) -> None:
        """Read the trailer anew next time."""
        with self._lock:
            self._kept.pop((backend.name, name), None)


class Source:
    """A shard of a blob on a backend."""

    def __init__(
        self, ref: BlobRef, coding: Coding, index: int, backend: Backend, name: str
    ) -> None:
        self.index = index
        self.backend = backend
        self.name = name
        self._ref = ref
        self._coding = coding

    def data_bytes(self) -> int:
        """Return the bytes before the trailer."""
        return shard_data_bytes(self._coding, self._ref.size_bytes)

    def trailer(self, cache: TrailerCache) -> Trailer:
        """Return the trailer, which must be of this shard of this blob."""
        trailer = cache.get(self.backend, self.name)
        header = trailer.header
        if (header.blob, header.index, header.coding) != (
            self._ref.id,
            self.index,
            self._coding.text(),
        ):
            raise DamagedShard(f"the file holds shard {header.index} of blob {header.blob}")
        if trailer.data_bytes != self.data_bytes():
            raise DamagedShard("the file holds a blob of another size")
        return trailer

    def block(self, stripe: int, cache: TrailerCache) -> bytes:
        """Return what this shard holds of a stripe, verified."""
        trailer = self.trailer(cache)
        start, end = self.span(stripe)
        data = self.backend.read(self.name, start, end)
        if len(data) != end - start or crc32c(data) != trailer.blocks[stripe]:
            raise DamagedShard(f"block {stripe} does not match its checksum")
        return data

    def span(self, stripe: int) -> tuple[int, int]:
        """Return where a stripe is in this shard."""
        coding = self._coding
        stripe_bytes = stripe_length(coding, self._ref.size_bytes, stripe)
        if not coding.erasure:
            start = stripe * coding.chunk_bytes
            return start, start + stripe_bytes
        start = stripe * (FRAGMENT_HEADER_BYTES + coding.chunk_bytes)
        return start, start + FRAGMENT_HEADER_BYTES + coding.chunk_of(stripe_bytes)


def stripe_length(coding: Coding, size_bytes: int, stripe: int) -> int:
    """Return the data bytes of a stripe; the last one may be shorter."""
    return min(coding.stripe_bytes, size_bytes - stripe * coding.stripe_bytes)


def shard_data_bytes(coding: Coding, size_bytes: int) -> int:
    """Return the bytes of a shard before its trailer."""
    stripes = coding.stripes(size_bytes)
    if not coding.erasure or not stripes:
        return size_bytes
    last = coding.chunk_of(stripe_length(coding, size_bytes, stripes - 1))
    full = (stripes - 1) * (FRAGMENT_HEADER_BYTES + coding.chunk_bytes)
    return full + FRAGMENT_HEADER_BYTES + last


def read_trailer(backend: Backend, name: str) -> Trailer:
    """Read and verify the trailer of a shard."""
    tail = backend.tail(name, _TAIL_BYTES)
    footer = parse_footer(tail[-FOOTER_BYTES:])
    if footer.trailer_bytes > len(tail):
        tail = backend.tail(name, footer.trailer_bytes)
    if footer.trailer_bytes > len(tail):
        raise DamagedShard("the shard is shorter than its trailer")
    return parse_trailer(tail[-footer.trailer_bytes :])
