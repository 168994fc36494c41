import asyncio
import shutil
import sqlite3
from pathlib import Path

import pytest

from objects_builders import Namespace, noise
from tenfold.objects.catalog.buckets import change_settings, find_bucket, set_versioning
from tenfold.objects.catalog.records import BucketSettings, LifecycleRule, LockDefault
from tenfold.objects.tiers.bucket_notes import BucketNotes
from tenfold.objects.tiers.operations.rebuild import (
    accept_new_disk,
    rebuild_backend,
    rebuild_catalog,
)

TIERS = {
    "hot": {"layout": "replicas = 2", "backends": {name: name for name in "abc"}},
    "warm": {"layout": 'erasure = "2+1"', "backends": {f"w{n}": f"d{n}" for n in range(4)}},
}


@pytest.mark.parametrize(("tier", "backend"), [("hot", "a"), ("warm", "w2")])
def test_a_new_disk_in_the_place_of_a_lost_one_is_filled_again(
    tmp_path: Path, tier: str, backend: str
):
    made = Namespace(tmp_path, TIERS)
    contents = {f"k{number}": noise(900 * number, number) for number in range(10)}

    async def scenario():
        for key, data in contents.items():
            await made.put(key, data, tier)
        before = made.files(backend)
        shutil.rmtree(tmp_path / "disks" / backend)
        (tmp_path / "disks" / backend).mkdir()
        again = Namespace.reopened(made)
        assert not (tmp_path / "disks" / backend / "backend.json").exists()
        accept_new_disk(again.store, again.states, backend)
        progress = await rebuild_backend(again.mover(), backend)
        assert (progress.moved, progress.failed) == (len(before), 0)
        for key, data in contents.items():
            assert await again.get(key) == data
            states = await again.store.verify(again.refs()[key])
            assert {one.state for one in states} == {"good"}

    asyncio.run(scenario())


def test_without_the_database_every_acknowledged_object_comes_back(tmp_path: Path):
    made = Namespace(tmp_path, TIERS)
    contents = {f"k{number}": noise(900 * number, number) for number in range(10)}

    async def scenario():
        for number, (key, data) in enumerate(contents.items()):
            await made.put(key, data, "warm" if number % 2 else "hot")
        for key in ("k3", "k4", "k5"):
            # Written twice: the later content counts.
            made.clock_ms += 1
            contents[key] = noise(77, ord(key[-1]))
            await made.put(key, contents[key])
        mover = made.mover()
        for live in made.moves.live():
            if live.key in ("k7", "k8"):
                assert (await mover.move_blob(live, "warm")).result == "moved"
        made.catalog.close()
        for path in made.state.glob("catalog.db*"):
            path.unlink()
        shutil.rmtree(tmp_path / "disks" / "w1")
        again = Namespace.reopened(made)
        report = await rebuild_catalog(again.store, again.moves)
        assert report.unreadable == report.undescribed == []
        assert report.backends_not_read == ["w1"]
        assert sorted(again.refs()) == sorted(contents)
        for key, data in contents.items():
            assert await again.get(key) == data
        assert (await rebuild_catalog(again.store, again.moves)).inserted == 0

    asyncio.run(scenario())


def test_a_rebuilt_bucket_has_its_settings_again(tmp_path: Path):
    made = Namespace(tmp_path, TIERS)
    settings = BucketSettings(
        has_lock=True,
        lock_default=LockDefault(mode="GOVERNANCE", days=30),
        tags={"owner": "vision"},
        lifecycle=(LifecycleRule(id="r", prefix="tmp/", expire_days=10),),
    )

    async def scenario():
        await made.put("k", b"data")
        bucket = find_bucket(made.catalog.reader, "b")
        assert bucket is not None
        notes = BucketNotes(made.store, "hot")
        await notes.keep([bucket], 1_000)

        def change(connection: sqlite3.Connection) -> None:
            change_settings(connection, bucket.id, lambda _: settings)
            set_versioning(connection, bucket.id, "Enabled")

        await made.catalog.write(change)
        before = find_bucket(made.catalog.reader, "b")
        assert before is not None
        await notes.keep([before], 2_000)
        made.catalog.close()
        for path in made.state.glob("catalog.db*"):
            path.unlink()
        shutil.rmtree(tmp_path / "disks" / "a")
        again = Namespace.reopened(made)
        # A server on an empty catalogue overwrites nothing.
        await BucketNotes(again.store, "hot").keep([], 3_000)
        await rebuild_catalog(again.store, again.moves)
        after = find_bucket(again.catalog.reader, "b")
        return before, after

    before, after = asyncio.run(scenario())
    assert after is not None
    assert (after.settings, after.versioning, after.created_ms) == (
        settings,
        "Enabled",
        before.created_ms,
    )
