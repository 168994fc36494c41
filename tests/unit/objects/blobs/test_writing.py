"""Writes to tiers of which backends fail."""

import asyncio
from pathlib import Path

import pytest

from objects_builders import coded, get, noise, put, tier_of
from tenfold.model.errors import Unreachable
from tenfold.objects.blobs.backend import DirectoryBackend
from tenfold.objects.blobs.layout import Coding, parse_layout, replicated
from tenfold.objects.blobs.store import BlobStore


class Failing(DirectoryBackend):
    """A directory whose writes fail after a number of them."""

    writes = 0

    def create(self, shard: str):
        writing = super().create(shard)
        before, left = writing.write, [self.writes]

        def write(data: bytes) -> None:
            if not left[0]:
                raise OSError("no space left")
            left[0] -= 1
            before(data)

        writing.write = write
        return writing


def store_with(folder: Path, coding: Coding, count: int, failing: dict[str, int]) -> BlobStore:
    tier = tier_of("hot", folder, coding, [f"d{number}" for number in range(count)])
    for slot in tier.slots:
        if slot.backend.name in failing:
            slot.backend.__class__ = Failing
            slot.backend.writes = failing[slot.backend.name]
    return BlobStore([tier])


def test_a_backend_without_its_folder_is_replaced_by_another(tmp_path: Path):
    async def scenario():
        store = store_with(tmp_path, coded(2, 1), 4, {})
        (tmp_path / "hot-1" / "partial").rmdir()
        for seed in range(20):
            ref = await put(store, "hot", noise(9000, seed))
            names = [one.backend for one in parse_layout(ref.layout).at if one]
            assert len(set(names)) == 3
            assert "hot-1" not in names

    asyncio.run(scenario())


def test_a_write_goes_on_while_it_survives_the_loss_of_one_more(tmp_path: Path):
    async def scenario():
        store = store_with(tmp_path, coded(4, 2), 6, {"hot-2": 2})
        data = noise(100_000)
        ref = await put(store, "hot", data)
        layout = parse_layout(ref.layout)
        assert sum(one is None for one in layout.at) == 1
        assert "-" in ref.layout
        assert await get(store, ref) == data
        assert sorted(one.state for one in await store.verify(ref))[-1] == "unplaced"

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("coding", "count", "failing"),
    [
        (coded(4, 2), 6, {"hot-0": 0, "hot-1": 3}),
        (replicated(2), 2, {"hot-0": 1}),
        (replicated(1), 1, {"hot-0": 0}),
    ],
)
def test_a_write_that_would_survive_no_loss_is_refused_and_leaves_nothing(
    tmp_path: Path, coding: Coding, count: int, failing: dict[str, int]
):
    async def scenario():
        store = store_with(tmp_path, coding, count, failing)
        with pytest.raises(Unreachable, match="no space left"):
            await put(store, "hot", noise(200_000), piece_bytes=50_000)

    asyncio.run(scenario())
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_cancelled_write_leaves_nothing_and_touches_no_other_file(tmp_path: Path):
    """Clients leave in the middle of uploads; their descriptors are used again at once."""

    async def scenario():
        store = store_with(tmp_path, replicated(2), 2, {})
        refs = {}
        for round_number in range(30):
            writer = store.create("hot", None)
            cancelled = asyncio.create_task(writer.write(bytes(3 << 20)))
            await asyncio.sleep(0.0005 * (round_number % 7))
            cancelled.cancel()
            data = noise(60_000, round_number)
            refs[await put(store, "hot", data)] = data
            await asyncio.gather(cancelled, return_exceptions=True)
            await writer.abort()
        for ref, data in refs.items():
            assert await get(store, ref) == data
            assert {one.state for one in await store.verify(ref)} == {"good"}
        return len(refs)

    count = asyncio.run(scenario())
    assert len([path for path in tmp_path.rglob("*.*") if path.is_file()]) == 2 * count
