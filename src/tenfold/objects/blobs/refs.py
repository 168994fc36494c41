"""The interface of blobs: what the catalogue stores, and what the server writes and reads with.

A blob never changes. `BlobRef.layout` says where each shard is, so no reader has to search.
"""

from collections.abc import AsyncIterator
from typing import Protocol

import msgspec

Bytes = bytes | bytearray | memoryview


class BlobRef(msgspec.Struct, frozen=True):
    """A committed blob, as the catalogue stores it."""

    id: str
    tier: str
    layout: str
    size_bytes: int
    crc32c: int


class FileRegion(msgspec.Struct, frozen=True):
    """Bytes that lie plain in an open local file."""

    fd: int
    offset: int
    count: int


class BlobWriter(Protocol):
    """A blob that is being written. Nothing is visible before `commit` returns."""

    async def write(self, data: Bytes) -> None:
        """Append bytes; returns when they may be reused by the caller."""
        ...

    async def commit(self, description: bytes) -> BlobRef:
        """Make the blob durable on every shard and return its reference.

        `description` is JSON that suffices to rebuild the catalogue row; each shard carries it.
        """
        ...

    async def abort(self) -> None:
        """Drop what was written."""
        ...


class BlobReading(Protocol):
    """A range of a blob that is open for reading."""

    def pieces(self) -> AsyncIterator[FileRegion | bytes]:
        """Yield the bytes in order, verified: where they lie plain in local files, their place."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the bytes, verified against their checksums."""
        ...

    async def close(self) -> None:
        """Release the files."""
        ...
