import asyncio
from itertools import combinations
from pathlib import Path

import pytest

from objects_builders import coded, flip_bit, get, noise, put, sent, shard_file, tier_of
from tenfold.objects.blobs.reading import BlobUnreadable
from tenfold.objects.blobs.refs import BlobRef
from tenfold.objects.blobs.store import BlobStore

SIX = ("a", "b", "c", "d", "e", "f")
STRIPE = 4 * 4096
WINDOW = 4 << 20


def store_in(folder: Path) -> BlobStore:
    return BlobStore([tier_of("warm", folder, coded(), SIX)])


@pytest.mark.parametrize("size_bytes", [0, 1, 63, 4096, STRIPE - 1, STRIPE, STRIPE + 1, 100_001])
def test_any_range_reads_back_plain_and_verified(tmp_path: Path, size_bytes: int):
    async def scenario():
        store = store_in(tmp_path)
        data = noise(size_bytes)
        ref = await put(store, "warm", data, piece_bytes=7001)
        for start in sorted({0, 1, 4095, 4096, STRIPE, size_bytes // 2}):
            for end in sorted({start, start + 1, start + 4097, size_bytes - 1, size_bytes}):
                if start <= end <= size_bytes:
                    reading = await store.open(ref, start, end)
                    assert await sent(reading) == (data[start:end], end - start)
                    await reading.close()
                    assert await get(store, ref, start, end) == data[start:end]

    asyncio.run(scenario())


def test_any_two_shards_may_be_lost_and_three_are_reported(tmp_path: Path):
    async def scenario():
        store = store_in(tmp_path)
        data = noise(50_000)
        ref = await put(store, "warm", data)
        files = [shard_file(store, ref, index) for index in range(6)]
        for lost in combinations(files, 2):
            await without(lost, store, ref, data)
        for path in files[1:4]:
            path.rename(path.with_name("away"))
        with pytest.raises(BlobUnreadable, match="too few readable shards") as caught:
            await store.open(ref, 0, len(data))
        assert not caught.value.gone

    asyncio.run(scenario())


async def without(lost: tuple[Path, ...], store: BlobStore, ref: BlobRef, data: bytes) -> None:
    for path in lost:
        path.rename(path.with_name("away"))
    assert await get(store, ref) == data
    assert await get(store, ref, 5000, 9000) == data[5000:9000]
    for path in lost:
        path.with_name("away").rename(path)


def test_a_deleted_blob_is_gone(tmp_path: Path):
    async def scenario():
        store = store_in(tmp_path)
        ref = await put(store, "warm", noise(50_000))
        await store.delete(ref)
        with pytest.raises(BlobUnreadable) as caught:
            await store.open(ref, 0, 10)
        assert caught.value.gone

    asyncio.run(scenario())
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_flipped_bits_in_two_shards_are_found_and_read_around(tmp_path: Path):
    async def scenario():
        store = store_in(tmp_path)
        data = noise(50_000)
        ref = await put(store, "warm", data)
        flip_bit(shard_file(store, ref, 0), 2000)
        flip_bit(shard_file(store, ref, 3), 4300)
        assert await get(store, ref) == data
        assert sorted({one.index for one in store.damage}) == [0, 3]
        states = await store.verify(ref)
        assert [one.state for one in states] == [
            "damaged", "good", "good", "damaged", "good", "good"
        ]  # fmt: skip

    asyncio.run(scenario())


def test_shards_that_were_swapped_are_not_trusted(tmp_path: Path):
    """Each file names its index, so a fragment is never decoded in the wrong position."""

    async def scenario():
        store = store_in(tmp_path)
        data = noise(50_000)
        ref = await put(store, "warm", data)
        one, two = shard_file(store, ref, 1), shard_file(store, ref, 4)
        contents = one.read_bytes(), two.read_bytes()
        one.write_bytes(contents[1])
        two.write_bytes(contents[0])
        assert await get(store, ref) == data
        assert [state.state for state in await store.verify(ref)].count("damaged") == 2

    asyncio.run(scenario())


def test_a_server_never_sends_flipped_bits(tmp_path: Path):
    """Neither before a block was sent for the first time, nor after."""

    async def scenario():
        store = store_in(tmp_path)
        data = noise(3 * WINDOW + 50_000)
        ref = await put(store, "warm", data)
        for round_number, place in enumerate((2000, WINDOW // 4 + 30_000)):
            flip_bit(shard_file(store, ref, 0), place)
            flip_bit(shard_file(store, ref, 3), place)
            for start, end in ((0, len(data)), (1000, len(data) - 1), (0, len(data))):
                reading = await store.open(ref, start, end)
                whole, plain = await sent(reading)
                await reading.close()
                assert whole == data[start:end]
                # What is damaged is decoded; the other windows are still sent from files.
                assert plain >= (2 - round_number) * WINDOW
        assert {one.index for one in store.damage} == {0, 3}

    asyncio.run(scenario())


def test_a_blob_with_too_many_flipped_bits_is_refused_before_it_is_sent(tmp_path: Path):
    async def scenario():
        store = store_in(tmp_path)
        data = noise(50_000)
        ref = await put(store, "warm", data)
        for index in range(3):
            flip_bit(shard_file(store, ref, index), 2000)
        with pytest.raises(BlobUnreadable) as caught:
            await store.open(ref, 0, len(data))
        assert not caught.value.gone

    asyncio.run(scenario())
