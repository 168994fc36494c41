"""Versions in the catalogue: order, markers, conditions, locks, quotas and moves."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tenfold.objects.blobs.refs import BlobRef
from tenfold.objects.catalog.buckets import create_bucket, find_bucket, set_versioning
from tenfold.objects.catalog.catalog import Catalog
from tenfold.objects.catalog.listing import Query, list_objects, list_versions
from tenfold.objects.catalog.moves import Moves
from tenfold.objects.catalog.records import (
    Bucket,
    BucketSettings,
    Lock,
    ObjectRecord,
    Part,
    Refusal,
)
from tenfold.objects.catalog.versions import (
    Condition,
    Deletion,
    Quota,
    delete_version,
    find_version,
    put_version,
)

UNLOCKED = Lock()
ALWAYS = Condition()


@pytest.fixture
def catalog(tmp_path: Path):
    opened = Catalog(tmp_path / "catalog.db")
    yield opened
    opened.close()


def write(catalog: Catalog, *changes: Callable[..., object]) -> list[object]:
    async def run() -> list[object]:
        return list(await asyncio.gather(*(catalog.write(change) for change in changes)))

    return asyncio.run(run())


def bucket(catalog: Catalog, versioning: str = "") -> int:
    wanted = Bucket(
        id=0, name="data", team="vision", created_ms=1, versioning="", settings=BucketSettings()
    )
    write(catalog, lambda c: create_bucket(c, wanted, 10))
    found = find_bucket(catalog.reader, "data")
    assert found is not None
    if versioning:
        write(catalog, lambda c: set_versioning(c, found.id, versioning))
    return found.id


def ref(name: str) -> BlobRef:
    return BlobRef(name, "hot", "replicas=1;at=a", 3, 7)


def record(key: str, version: str = "null", etag: str = "e", lock: Lock = UNLOCKED) -> ObjectRecord:
    part = Part(0, 3, etag, ref(f"{key}-{version}-{etag}"))
    return ObjectRecord(
        key=key, version=version, size_bytes=3, etag=etag, modified_ms=5, parts=(part,), lock=lock
    )


def put(catalog: Catalog, number: int, one: ObjectRecord, condition: Condition = ALWAYS):
    write(catalog, lambda c: put_version(c, number, one, condition, Quota()))


def delete(catalog: Catalog, number: int, deletion: Deletion):
    return write(catalog, lambda c: delete_version(c, number, deletion, 10))[0]


def keys(catalog: Catalog, **query: object) -> tuple[list[str], list[str]]:
    page = list_objects(catalog.reader, Query(**query))  # pyright: ignore[reportArgumentType]
    return [entry.record.key for entry in page.items], list(page.prefixes)


def test_an_overwrite_frees_the_old_blob_and_counts_once(catalog: Catalog):
    number = bucket(catalog)
    put(catalog, number, record("a", etag="1"))
    put(catalog, number, record("a", etag="2"))
    assert [ref.id for _, ref in Moves(catalog).due(10**15)] == ["a-null-1"]
    found = find_bucket(catalog.reader, "data")
    assert found is not None
    assert (found.stored_bytes, found.stored_versions) == (3, 1)


def test_of_racing_creators_exactly_one_wins(catalog: Catalog):
    number = bucket(catalog)
    outcomes: list[str] = []

    async def run() -> None:
        async def one(index: int) -> None:
            wanted = Condition(if_none_match="*")
            try:
                await catalog.write(
                    lambda c: put_version(c, number, record("a", etag=str(index)), wanted, Quota())
                )
                outcomes.append("won")
            except Refusal as refusal:
                outcomes.append(refusal.code)

        await asyncio.gather(*(one(index) for index in range(20)))

    asyncio.run(run())
    assert sorted(outcomes) == ["PreconditionFailed"] * 19 + ["won"]
    assert catalog.writer.commits < catalog.writer.changes


def test_deleting_the_newest_version_brings_back_the_one_before(catalog: Catalog):
    number = bucket(catalog, "Enabled")
    put(catalog, number, record("a", "v1", "1"))
    put(catalog, number, record("a", "v2", "2"))
    delete(catalog, number, Deletion(key="a", version="v2"))
    found = find_version(catalog.reader, number, "a")
    assert found is not None
    assert found.version == "v1"
    assert keys(catalog, bucket=number) == (["a"], [])


def test_a_marker_hides_the_key_and_its_removal_shows_it_again(catalog: Catalog):
    number = bucket(catalog, "Enabled")
    put(catalog, number, record("a", "v1"))
    marker = ObjectRecord(key="a", version="m1", is_marker=True)
    delete(catalog, number, Deletion(key="a", marker=marker))
    assert keys(catalog, bucket=number) == ([], [])
    page = list_versions(catalog.reader, Query(bucket=number))
    assert [entry.record.version for entry in page.items] == ["m1", "v1"]
    delete(catalog, number, Deletion(key="a", version="m1"))
    assert keys(catalog, bucket=number) == (["a"], [])


@pytest.mark.parametrize(
    ("lock", "bypass", "is_refused"),
    [
        (Lock("COMPLIANCE", 11), True, True),
        (Lock("GOVERNANCE", 11), False, True),
        (Lock("GOVERNANCE", 11), True, False),
        (Lock("COMPLIANCE", 9), False, False),
        (Lock(has_legal_hold=True), True, True),
    ],
)
def test_a_locked_version_is_deleted_only_where_the_lock_allows_it(
    catalog: Catalog, lock: Lock, bypass: bool, is_refused: bool
):
    number = bucket(catalog, "Enabled")
    put(catalog, number, record("a", "v1", lock=lock))
    wish = Deletion(key="a", version="v1", bypass_governance=bypass)
    if is_refused:
        with pytest.raises(Refusal, match="object lock"):
            delete(catalog, number, wish)
    else:
        delete(catalog, number, wish)
    assert (find_version(catalog.reader, number, "a", "v1") is not None) == is_refused


def test_a_change_beyond_the_quota_is_undone_and_others_of_its_batch_are_kept(catalog: Catalog):
    number = bucket(catalog)

    async def run() -> list[object]:
        changes = [
            catalog.write(
                lambda c, k=key: put_version(c, number, record(k), Condition(), Quota(versions=2))
            )
            for key in "abc"
        ]
        return list(await asyncio.gather(*changes, return_exceptions=True))

    *_, last = asyncio.run(run())
    assert isinstance(last, Refusal)
    assert last.code == "QuotaExceeded"
    assert keys(catalog, bucket=number) == (["a", "b"], [])


def test_a_listing_with_a_delimiter_pages_through_keys_and_prefixes(catalog: Catalog):
    number = bucket(catalog)
    names = ["asdf", *[f"boo/{index:04}" for index in range(600)], "cquux/bla", "z"]
    changes = [
        lambda c, k=k: put_version(c, number, record(k), Condition(), Quota()) for k in names
    ]
    write(catalog, *changes)
    assert keys(catalog, bucket=number, delimiter="/") == (["asdf", "z"], ["boo/", "cquux/"])
    seen: list[str] = []
    after = ""
    while True:
        page = list_objects(
            catalog.reader, Query(bucket=number, delimiter="/", after=after, limit=1)
        )
        seen += [entry.record.key for entry in page.items] + list(page.prefixes)
        if not page.is_truncated:
            break
        after = page.last
    assert seen == ["asdf", "boo/", "cquux/", "z"]
    assert len(keys(catalog, bucket=number, prefix="boo/", limit=1000)[0]) == 600


def test_a_move_swaps_the_blob_only_while_the_version_uses_it(catalog: Catalog):
    number = bucket(catalog)
    put(catalog, number, record("a"))
    moves = Moves(catalog)
    (live,) = moves.live()
    new = ref("moved")

    async def swap(old: BlobRef) -> bool:
        return await moves.swap((number, "a", "null"), old, new, old, 0)

    assert asyncio.run(swap(live.ref))
    assert not asyncio.run(swap(live.ref))
    assert [one.ref.id for one in moves.live()] == ["moved"]
    assert [one.id for _, one in moves.due(0)] == [live.ref.id]
    assert moves.live(moves.live()[-1].cursor) == []
