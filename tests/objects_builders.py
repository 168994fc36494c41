"""Blob stores on directories for tests, with ways to damage what they hold."""

import os
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tenfold.clock import wall
from tenfold.objects.blobs.backend import DirectoryBackend
from tenfold.objects.blobs.layout import Coding, erasure_coded, parse_layout, shard_name
from tenfold.objects.blobs.refs import BlobReading, BlobRef
from tenfold.objects.blobs.store import BlobStore
from tenfold.objects.blobs.tier import Slot, Tier
from tenfold.objects.catalog.buckets import create_bucket
from tenfold.objects.catalog.catalog import Catalog
from tenfold.objects.catalog.moves import Description, Moves
from tenfold.objects.catalog.records import Bucket, BucketSettings, ObjectRecord, Part
from tenfold.objects.catalog.versions import Condition, Quota, put_version
from tenfold.objects.tiers.backend_states import BackendStates
from tenfold.objects.tiers.mover import Mover
from tenfold.objects.tiers.opened import open_blob_store
from tenfold.objects.tiers.pace import Pace

MIB = 1 << 20
_BUCKET = Bucket(id=0, name="b", team="t", created_ms=0, versioning="", settings=BucketSettings())


def coded(data_shards: int = 4, parity_shards: int = 2, chunk_bytes: int = 4096) -> Coding:
    """Return a coding with small chunks, so that small blobs have many stripes."""
    return erasure_coded(data_shards, parity_shards, chunk_bytes)


def tier_of(name: str, folder: Path, coding: Coding, domains: Sequence[str]) -> Tier:
    """Return a tier with one directory per entry of `domains`."""
    slots: list[Slot] = []
    for number, domain in enumerate(domains):
        backend = DirectoryBackend(f"{name}-{number}", folder / f"{name}-{number}")
        backend.prepare()
        slots.append(Slot(backend, domain))
    return Tier(name, coding, tuple(slots))


def noise(size_bytes: int, seed: int = 1) -> bytes:
    """Return bytes that do not repeat."""
    return b"".join(
        (seed * 1_000_003 + at).to_bytes(8, "little") for at in range(-(-size_bytes // 8))
    )[:size_bytes]


async def put(
    store: BlobStore, tier: str, data: bytes, description: bytes = b"{}", piece_bytes: int = MIB
) -> BlobRef:
    """Write a blob in pieces."""
    writer = store.create(tier, len(data))
    for start in range(0, len(data), piece_bytes):
        await writer.write(memoryview(data)[start : start + piece_bytes])
    return await writer.commit(description)


async def get(store: BlobStore, ref: BlobRef, start: int = 0, end: int | None = None) -> bytes:
    """Read a range as chunks, which are verified."""
    reading = await store.open(ref, start, ref.size_bytes if end is None else end)
    try:
        return b"".join([chunk async for chunk in reading.chunks()])
    finally:
        await reading.close()


async def sent(reading: BlobReading) -> tuple[bytes, int]:
    """Return the bytes that a server sends, and how many of them the kernel sends from files."""
    data = bytearray()
    plain = 0
    async for piece in reading.pieces():
        if isinstance(piece, bytes):
            data += piece
        else:
            data += os.pread(piece.fd, piece.count, piece.offset)
            plain += piece.count
    return bytes(data), plain


def shard_file(store: BlobStore, ref: BlobRef, index: int) -> Path:
    """Return the file of a shard."""
    position = parse_layout(ref.layout).at[index]
    assert position is not None
    backend = store.backends[position.backend]
    assert isinstance(backend, DirectoryBackend)
    name = shard_name(ref.id, index, position.moves)
    return backend.root / "shards" / name[:2] / name


def flip_bit(path: Path, offset: int) -> None:
    """Change one bit of a file."""
    with path.open("r+b") as file:
        file.seek(offset)
        before = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([before ^ 16]))


class Namespace:
    """A tier file, its store and a catalogue in a folder, without a server."""

    def __init__(self, folder: Path, tiers: Mapping[str, Mapping[str, object]]) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.tier_file = folder / "tiers.toml"
        self.tiers = tiers
        self.write_tiers(tiers)
        self.store = open_blob_store(self.tier_file, self.state)
        self.catalog = Catalog(self.state / "catalog.db")
        self.moves = Moves(self.catalog)
        self.states = BackendStates(self.state)
        self.clock_ms = wall.now_ms()

    @classmethod
    def reopened(cls, other: "Namespace") -> "Namespace":
        """Return the namespace as another process opens it."""
        return cls(other.folder, other.tiers)

    def write_tiers(self, tiers: Mapping[str, Mapping[str, object]]) -> None:
        """Write the tier file: redundancy and backends, each with its domain, by tier."""
        lines: list[str] = []
        for tier, spec in tiers.items():
            redundancy = spec["layout"]
            lines += [f"[tiers.{tier}]", str(redundancy)]
            backends = spec["backends"]
            assert isinstance(backends, dict)
            for name, domain in backends.items():
                lines += [f"[[tiers.{tier}.backends]]", f'name = "{name}"', f'domain = "{domain}"']
                lines += [str(spec.get(name, f'directory = "disks/{name}"'))]
        self.tier_file.write_text("\n".join(lines) + "\n")

    def mover(self, bytes_per_s: float = 0, grace_ms: int = 0) -> Mover:
        """Return a mover of this namespace."""
        return Mover(self.store, self.moves, Pace(bytes_per_s), lambda: self.clock_ms, grace_ms)

    async def put(self, key: str, data: bytes, tier: str = "hot") -> BlobRef:
        """Write an object as a server does: the blob, then the row."""
        record = ObjectRecord(key=key, size_bytes=len(data), etag="e", modified_ms=self.clock_ms)
        description = msgspec.json.encode(Description(bucket="b", team="t", record=record))
        ref = await put(self.store, tier, data, description)
        part = Part(1, len(data), "e", ref)
        row = msgspec.structs.replace(record, parts=(part,))

        def change(connection: sqlite3.Connection) -> None:
            bucket, _ = create_bucket(connection, _BUCKET, 100)
            put_version(connection, bucket.id, row, Condition(), Quota())

        await self.catalog.write(change)
        return ref

    def refs(self) -> dict[str, BlobRef]:
        """Return the blob of each key, as the catalogue has it now."""
        return {live.key: live.ref for live in self.moves.live(limit=100_000)}

    async def get(self, key: str) -> bytes:
        """Read an object as a server does: from files where the bytes lie plain."""
        ref = self.refs()[key]
        reading = await self.store.open(ref, 0, ref.size_bytes)
        try:
            data, _ = await sent(reading)
            return data
        finally:
            await reading.close()

    def files(self, backend: str) -> list[str]:
        """Return the names of the shards on a directory backend."""
        return sorted(
            path.name for path in (self.folder / "disks" / backend / "shards").glob("*/*")
        )
