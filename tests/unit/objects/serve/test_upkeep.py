"""What a server does without a request: expiry, moves between tiers, deleted blobs, old uploads."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

import tenfold.objects.serve.upkeep as upkeep_module
from tenfold.objects.blobs.refs import BlobRef
from tenfold.objects.blobs.store import BlobStore, directory_store
from tenfold.objects.catalog.buckets import create_bucket, find_bucket
from tenfold.objects.catalog.catalog import Catalog
from tenfold.objects.catalog.listing import Query, list_objects, list_uploads, list_versions
from tenfold.objects.catalog.moves import Moves
from tenfold.objects.catalog.records import (
    Bucket,
    BucketSettings,
    LifecycleRule,
    Lock,
    ObjectRecord,
    Part,
    Transition,
    Upload,
)
from tenfold.objects.catalog.uploads import start_upload
from tenfold.objects.catalog.versions import Condition, Quota, put_version
from tenfold.objects.s3.call import Dependencies, S3Settings
from tenfold.objects.serve.counts import Counts
from tenfold.objects.serve.keys import KeyRing
from tenfold.objects.serve.upkeep import Upkeep, UpkeepSettings
from tenfold.objects.tiers.mover import Mover
from tenfold.objects.tiers.pace import Pace

DAY = 86_400_000
NOW = 100 * DAY


class Store:
    """A catalogue, blobs and their upkeep in one process, with a clock that the test sets."""

    def __init__(self, folder: Path, versioning: str, *rules: LifecycleRule) -> None:
        self.now_ms = NOW
        self.catalog = Catalog(folder / "catalog.db")
        self.blobs: BlobStore = directory_store(
            {"hot": [folder / "hot"], "warm": [folder / "warm"]}
        )
        ids = iter(range(10_000))
        settings = S3Settings(tiers={"STANDARD": "hot", "STANDARD_IA": "warm"})
        deps = Dependencies(
            self.catalog,
            self.blobs,
            KeyRing(folder / "none"),
            settings,
            lambda: self.now_ms,
            lambda: f"id{next(ids)}",
        )
        mover = Mover(self.blobs, Moves(self.catalog), Pace(), lambda: self.now_ms)
        self.counts = Counts(folder / "counts")
        every = UpkeepSettings(1.0, 86_400, folder / "lock")
        self.upkeep = Upkeep(deps, mover, self.counts, every)
        wanted = Bucket(
            id=0,
            name="data",
            team="vision",
            created_ms=1,
            versioning=versioning,
            settings=BucketSettings(lifecycle=rules),
        )
        create_bucket(self.catalog.reader, wanted, 10)
        found = find_bucket(self.catalog.reader, "data")
        assert found is not None
        self.bucket = found.id

    async def put(self, key: str, days_old: int, version: str = "null", **fields: object) -> None:
        writer = self.blobs.create("hot", 4)
        await writer.write(b"data")
        ref = await writer.commit(b"{}")
        record = ObjectRecord(
            key=key,
            version=version,
            size_bytes=4,
            etag="e",
            modified_ms=NOW - days_old * DAY,
            parts=(Part(0, 4, "e", ref),),
            **fields,  # pyright: ignore[reportArgumentType]
        )
        await self.catalog.write(
            lambda c: put_version(c, self.bucket, record, Condition(), Quota())
        )

    def keys(self) -> list[str]:
        page = list_objects(self.catalog.reader, Query(bucket=self.bucket))
        return [entry.record.key for entry in page.items]

    def versions(self) -> list[str]:
        page = list_versions(self.catalog.reader, Query(bucket=self.bucket, limit=10_000))
        return [entry.record.version for entry in page.items]

    def refs(self) -> list[BlobRef]:
        return [one.ref for one in Moves(self.catalog).live()]


def run(scenario: Callable[[], object]) -> None:
    asyncio.run(scenario())  # pyright: ignore[reportArgumentType]


def test_old_objects_expire_and_their_blobs_are_deleted_after_a_while(tmp_path: Path):
    store = Store(tmp_path, "", LifecycleRule(id="r", prefix="tmp/", expire_days=10))

    async def scenario() -> None:
        for number in range(700):
            await store.put(f"tmp/{number:04}", 20 if number % 2 else 1)
        await store.put("kept", 50)
        gone = store.refs()[1]
        await store.upkeep.once()
        assert len(store.keys()) == 351
        reading = await store.blobs.open(gone, 0, 4)
        await reading.close()
        store.now_ms += 3_600_000
        await store.upkeep.once()
        with pytest.raises(Exception, match="readable"):
            await store.blobs.open(gone, 0, 4)
        assert store.counts.read()["blobs_deleted"] == 350

    run(scenario)


def test_a_backend_that_fails_keeps_no_other_blob_from_being_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    store = Store(tmp_path, "")
    monkeypatch.setattr(upkeep_module, "PAGE", 2)
    broken = store.blobs.backends["hot0"]
    deleted: list[str] = []

    def delete(shard: str) -> None:
        deleted.append(shard)
        raise OSError("the disk is gone")

    async def scenario() -> None:
        refs: list[BlobRef] = []
        for tier in ("hot", "hot", "hot", "warm"):
            writer = store.blobs.create(tier, 4)
            refs.append(await writer.commit(b"{}"))
        await Moves(store.catalog).bury(refs, NOW)
        with monkeypatch.context() as patch:
            patch.setattr(broken, "delete", delete)
            await store.upkeep.once()
            await store.upkeep.once()
        assert len(deleted) == 3
        assert store.counts.read()["blobs_deleted"] == 1
        (warning,) = [record.getMessage() for record in caplog.records]
        assert warning.startswith("3 deleted blobs keep shards on backends that fail")
        store.now_ms += upkeep_module.RETRY_MS
        await store.upkeep.once()
        assert store.counts.read()["blobs_deleted"] == 4

    run(scenario)
    assert not list((tmp_path / "hot").glob("shards/*/*"))


def test_a_versioned_object_expires_behind_a_marker_and_its_versions_later(tmp_path: Path):
    rule = LifecycleRule(id="r", expire_days=10, noncurrent_days=5)
    store = Store(tmp_path, "Enabled", rule)

    async def scenario() -> None:
        await store.put("k", 20, "v1")
        await store.put("locked", 20, "v2", lock=Lock("COMPLIANCE", NOW + 90 * DAY))
        await store.upkeep.once()
        assert store.keys() == []
        assert len(store.versions()) == 4
        store.now_ms += 20 * DAY
        await store.upkeep.once()
        await store.upkeep.once()
        # What is locked outlives every rule, and so does the marker in front of it.
        assert [one for one in store.versions() if one.startswith("v")] == ["v2"]

    run(scenario)


def test_a_version_moves_to_the_tier_of_its_new_class(tmp_path: Path):
    to_warm = Transition(storage_class="STANDARD_IA", days=30)
    store = Store(tmp_path, "", LifecycleRule(id="r", transitions=(to_warm,)))

    async def scenario() -> None:
        await store.put("old", 40)
        await store.put("new", 1)
        await store.upkeep.once()
        page = list_objects(store.catalog.reader, Query(bucket=store.bucket))
        assert [entry.record.storage_class for entry in page.items] == ["STANDARD", "STANDARD_IA"]
        assert sorted(ref.tier for ref in store.refs()) == ["hot", "warm"]

    run(scenario)


def test_an_upload_that_was_given_up_is_dropped(tmp_path: Path):
    store = Store(tmp_path, "", LifecycleRule(id="r", abort_upload_days=7))

    async def scenario() -> None:
        record = ObjectRecord(key="k")
        for name, age in (("old", 9), ("new", 1)):
            upload = Upload(id=name, bucket=store.bucket, started_ms=NOW - age * DAY, record=record)
            await store.catalog.write(lambda c, u=upload: start_upload(c, structs.replace(u)))
        await store.upkeep.once()
        page = list_uploads(store.catalog.reader, Query(bucket=store.bucket))
        assert [upload.id for upload in page.items] == ["new"]

    run(scenario)
