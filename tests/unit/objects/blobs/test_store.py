import asyncio
import os
from pathlib import Path

import pytest

import tenfold.objects.blobs.reading as reading_module
from objects_builders import flip_bit, noise, put, sent, shard_file
from tenfold.objects.blobs.checksum import crc32c
from tenfold.objects.blobs.reading import BlobUnreadable
from tenfold.objects.blobs.refs import BlobReading
from tenfold.objects.blobs.source import TrailerCache
from tenfold.objects.blobs.store import BlobStore, directory_store
from tenfold.objects.blobs.verified import OpenShard, verify_blocks

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


def test_flipped_bits_are_read_around_with_another_replica_or_refused(tmp_path: Path):
    async def scenario(replicas: int):
        store = directory_store({"hot": [tmp_path / f"{replicas}{one}" for one in "ab"]}, replicas)
        data = noise(9 * MIB)
        ref = await put(store, "hot", data)
        flip_bit(shard_file(store, ref, 0), 6 * MIB)
        for start in (0, 4 * MIB, 0, 5 * MIB):
            reading = await store.open(ref, 0, len(data))
            if replicas > 1:
                assert (await sent(reading))[0] == data
            else:
                with pytest.raises(BlobUnreadable):
                    await sent(reading)
            await reading.close()
            # Blocks that are intact are sent all the same.
            reading = await store.open(ref, start % (2 * MIB), 3 * MIB)
            assert (await sent(reading))[0] == data[start % (2 * MIB) : 3 * MIB]
            await reading.close()

    asyncio.run(scenario(1))
    asyncio.run(scenario(2))


def test_blocks_are_verified_once_while_their_file_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def scenario():
        checked: list[range] = []

        def counted(shard: OpenShard, stripes: range, trailers: TrailerCache) -> None:
            checked.append(stripes)
            verify_blocks(shard, stripes, trailers)

        monkeypatch.setattr(reading_module, "verify_blocks", counted)
        store = directory_store({"hot": [tmp_path / "a"]})
        data = noise(9 * MIB)
        ref = await put(store, "hot", data)
        for _ in range(3):
            reading = await store.open(ref, 5 * MIB, len(data))
            assert await sent(reading) == (data[5 * MIB :], 4 * MIB)
            await reading.close()
        assert checked == [range(5, 9)]
        os.utime(shard_file(store, ref, 0), ns=(0, 0))
        reading = await store.open(ref, 0, len(data))
        assert (await sent(reading))[0] == data
        await reading.close()
        assert checked[1:] == [range(4), range(4, 8), range(8, 9)]

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
