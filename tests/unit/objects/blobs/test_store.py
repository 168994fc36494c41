import asyncio
from pathlib import Path

import pytest

from tenfold.objects.blobs.checksum import crc32c
from tenfold.objects.blobs.refs import BlobReading
from tenfold.objects.blobs.store import BlobStore, directory_store

MIB = 1 << 20


@pytest.mark.parametrize("size_bytes", [0, 1, 4096, MIB, MIB + 1, 5 * MIB + 17])
@pytest.mark.parametrize("replicas", [1, 2])
def test_a_blob_reads_back_as_it_was_written(tmp_path: Path, size_bytes: int, replicas: int):
    async def scenario():
        store = directory_store({"hot": [tmp_path / "a", tmp_path / "b"]}, replicas)
        data = bytes(range(256)) * (size_bytes // 256 + 1)
        data = data[:size_bytes]
        writer = store.create("hot", None)
        for start in range(0, size_bytes, 300_000):
            await writer.write(memoryview(data)[start : start + 300_000])
        ref = await writer.commit(b'{"key": "k"}')
        assert ref.size_bytes == size_bytes
        assert ref.crc32c == crc32c(data)
        assert await read(await store.open(ref, 0, size_bytes)) == data
        assert (
            await read(await store.open(ref, size_bytes // 3, size_bytes))
            == (data[size_bytes // 3 :])
        )

    asyncio.run(scenario())


def test_a_replica_that_is_gone_does_not_matter(tmp_path: Path):
    async def scenario():
        store = directory_store({"hot": [tmp_path / "a", tmp_path / "b"]}, 2)
        writer = store.create("hot", 5)
        await writer.write(b"hello")
        ref = await writer.commit(b"{}")
        for path in sorted((tmp_path / "a" / "shards").rglob(f"{ref.id}*")):
            path.unlink()
        for _ in range(3):
            assert await read(await store.open(ref, 1, 4)) == b"ell"

    asyncio.run(scenario())


def test_an_aborted_write_leaves_no_file(tmp_path: Path):
    async def scenario():
        store: BlobStore = directory_store({"hot": [tmp_path / "a"]})
        writer = store.create("hot", None)
        await writer.write(bytes(3 * MIB))
        await writer.abort()

    asyncio.run(scenario())
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


async def read(reading: BlobReading) -> bytes:
    parts = [chunk async for chunk in reading.chunks()]
    await reading.close()
    return b"".join(parts)
