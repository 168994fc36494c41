import asyncio
from pathlib import Path

from objects_builders import coded, flip_bit, noise, put, shard_file, tier_of
from tenfold.objects.blobs.layout import replicated
from tenfold.objects.blobs.store import BlobStore

SIX = ("a", "b", "c", "d", "e", "f")


def test_every_blob_is_found_by_its_shards_alone(tmp_path: Path):
    async def scenario():
        store = BlobStore(
            [
                tier_of("warm", tmp_path, coded(), SIX),
                tier_of("hot", tmp_path, replicated(2), ("a", "b", "c")),
            ]
        )
        refs = {}
        for seed, tier in enumerate(["warm", "hot"] * 5):
            description = b'{"key": "%d"}' % seed
            ref = await put(store, tier, noise(3000 * seed, seed), description)
            refs[ref.id] = (ref, description)
        found = list(store.walk())
        assert [one.ref.id for one in found] == sorted(refs)
        assert {one.ref.id: (one.ref, one.description) for one in found} == refs
        assert all(one.readable and not one.spare for one in found)

    asyncio.run(scenario())


def test_the_latest_description_counts_and_a_damaged_trailer_does_not(tmp_path: Path):
    async def scenario():
        store = BlobStore([tier_of("warm", tmp_path, coded(), SIX)])
        ref = await put(store, "warm", noise(30_000), b'{"v": 1}')
        await store.redescribe(ref, b'{"v": 2}')
        await store.redescribe(ref, b'{"v": 3}')
        path = shard_file(store, ref, 0)
        flip_bit(path, path.stat().st_size - 30)
        (found,) = store.walk()
        assert found.description == b'{"v": 3}'
        assert found.ref.layout.split("at=")[1].split(",")[0] == "-"
        assert found.readable

    asyncio.run(scenario())


def test_files_of_others_are_not_blobs(tmp_path: Path):
    store = BlobStore([tier_of("hot", tmp_path, replicated(1), ("a",))])
    (tmp_path / "hot-0" / "shards" / "aa" / "notes.txt").write_text("mine")
    (tmp_path / "hot-0" / "shards" / "aa" / ("aa" * 16 + ".0")).write_text("not a shard")
    assert list(store.walk()) == []
