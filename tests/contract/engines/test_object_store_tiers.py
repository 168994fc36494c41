"""Tiers on a real Ceph RADOS gateway and a real SeaweedFS, beside directories."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from objects_builders import Namespace, noise
from rigs.object_stores.radosgw import running_radosgw
from rigs.object_stores.running import ObjectStore
from rigs.object_stores.seaweedfs import running_seaweedfs
from tenfold.objects.blobs.layout import parse_layout
from tenfold.objects.blobs.object_store import ObjectStoreBackend, open_object_store
from tenfold.objects.tiers.mover import delete_due
from tenfold.objects.tiers.operations.drain import begin_drain, drain_fully
from tenfold.objects.tiers.operations.rebuild import rebuild_catalog
from tenfold.objects.tiers.operations.scrub import scrub

pytestmark = pytest.mark.engine
BUCKET = "tenfold-tier"


@pytest.fixture(scope="module", params=[running_radosgw, running_seaweedfs])
def store(request: pytest.FixtureRequest) -> Iterator[ObjectStore]:
    start: Callable[[], AbstractContextManager[ObjectStore]] = request.param
    with start() as running:
        running.make_bucket(BUCKET)
        yield running


def tiers(store: ObjectStore, prefix: str) -> dict[str, dict[str, object]]:
    """Return a hot tier on directories and a cold one on three prefixes of the store."""
    options = ", ".join(f'{key} = "{value}"' for key, value in store.options().items())
    cold = {"layout": 'erasure = "2+1"', "backends": {f"c{n}": f"c{n}" for n in range(3)}}
    places = {
        f"c{n}": f'url = "s3://{BUCKET}/{prefix}/c{n}"\noptions = {{ {options} }}' for n in range(3)
    }
    hot = {"layout": "replicas = 2", "backends": {"a": "a", "b": "b"}}
    return {"hot": hot, "cold": {**cold, **places}}


def test_objects_move_to_the_store_and_are_read_there(store: ObjectStore, tmp_path: Path):
    made = Namespace(tmp_path, tiers(store, "moves"))
    contents = {f"k{n}": noise(size, n) for n, size in enumerate((0, 1, 70_000, 9_000_001))}

    async def scenario():
        for key, data in contents.items():
            await made.put(key, data)
        mover = made.mover()
        for live in made.moves.live():
            assert (await mover.move_blob(live, "cold")).result == "moved"
        await delete_due(made.store, made.moves, made.clock_ms)
        assert made.files("a") == made.files("b") == []
        for key, data in contents.items():
            assert await made.get(key) == data
        ref = made.refs()["k3"]
        reading = await made.store.open(ref, 5_000_000, 5_000_100)
        assert (
            b"".join([one async for one in reading.chunks()]) == contents["k3"][5_000_000:5_000_100]
        )
        await reading.close()

    asyncio.run(scenario())


def test_a_lost_and_a_damaged_object_of_the_store_are_repaired(store: ObjectStore, tmp_path: Path):
    made = Namespace(tmp_path, tiers(store, "scrub"))
    data = noise(300_000)

    async def scenario():
        for number in range(2):
            ref = await made.put(f"k{number}", data, "cold")
            _, backend, name = made.store.shards(ref)[number]
            place = made.store.backends[backend]
            if number:
                raw = bytearray(place.read(name, 0, 1_000_000))
                raw[1000] ^= 4
                writing = place.create(name)
                writing.write(raw)
                writing.commit()
            else:
                place.delete(name)
            assert await made.get(f"k{number}") == data
        report = await scrub(made.mover())
        assert (report.missing, report.damaged, report.repaired) == (1, 1, 2)
        assert report.lost == []
        assert (await scrub(made.mover())).repaired == 0

    asyncio.run(scenario())


def test_a_tier_drains_from_the_store_and_the_catalogue_comes_back(
    store: ObjectStore, tmp_path: Path
):
    made = Namespace(tmp_path, tiers(store, "drain"))
    contents = {f"k{n}": noise(40_000 * n, n) for n in range(6)}

    async def scenario():
        for key, data in contents.items():
            await made.put(key, data, "cold")
        made.catalog.close()
        for path in made.state.glob("catalog.db*"):
            path.unlink()
        again = Namespace.reopened(made)
        report = await rebuild_catalog(again.store, again.moves)
        assert (report.inserted, report.unreadable) == (6, [])
        mover = again.mover()
        names = ["c0", "c1", "c2"]
        begin_drain(mover, again.states, names, "hot")
        _, left = await drain_fully(mover, again.states, names, tiers=("cold", "hot"), settle_s=0)
        assert left == 0
        await delete_due(again.store, again.moves, again.clock_ms)
        for key, data in contents.items():
            assert await again.get(key) == data
            assert parse_layout(again.refs()[key].layout).coding.shards == 2
        backend = ObjectStoreBackend(
            "c0", open_object_store(f"s3://{BUCKET}/drain/c0", store.options())
        )
        assert list(backend.walk()) == []

    asyncio.run(scenario())
