"""Drain, replace, rebalance and scrub of a namespace on real directories."""

import asyncio
import shutil
from pathlib import Path

import pytest

from objects_builders import Namespace, flip_bit, noise, shard_file
from tenfold.model.errors import Refused
from tenfold.objects.blobs.layout import parse_layout
from tenfold.objects.tiers.mover import delete_due, mover_lock
from tenfold.objects.tiers.operations.drain import begin_drain, drain_fully, refuse_impossible
from tenfold.objects.tiers.operations.rebalance import rebalance
from tenfold.objects.tiers.operations.scrub import remove_garbage, scrub

REPLICAS = {"layout": "replicas = 2", "backends": {name: name for name in "abc"}}
CODED = {"layout": 'erasure = "2+1"', "backends": {f"w{n}": f"d{n}" for n in range(5)}}


def namespace(folder: Path, objects: int, tier: str = "hot") -> tuple[Namespace, dict[str, bytes]]:
    made = Namespace(folder, {"hot": REPLICAS, "warm": CODED})
    contents = {f"k{number}": noise(1000 * number + 1, number) for number in range(objects)}

    async def fill() -> None:
        for key, data in contents.items():
            await made.put(key, data, tier)

    asyncio.run(fill())
    return made, contents


async def check(made: Namespace, contents: dict[str, bytes]) -> None:
    for key, data in contents.items():
        assert await made.get(key) == data, key
        states = await made.store.verify(made.refs()[key])
        assert [one.state for one in states] == ["good"] * len(states), (key, states)


@pytest.mark.parametrize(("tier", "backend"), [("hot", "b"), ("warm", "w3")])
def test_a_drained_backend_is_empty_and_nothing_else_moved(tmp_path: Path, tier: str, backend: str):
    made, contents = namespace(tmp_path, 15, tier)
    before = made.refs()
    on = {key for key, ref in before.items() if backend in ref.layout.split("at=")[1].split(",")}

    async def scenario():
        mover = made.mover()
        begin_drain(mover, made.states, [backend])
        progress, left = await drain_fully(mover, made.states, [backend], settle_s=0)
        assert (progress.moved, progress.failed, left) == (len(on), 0, 0)
        assert made.states.read()[backend].use == "drained"
        after = made.refs()
        assert {key for key in before if before[key] != after[key]} == on
        await delete_due(made.store, made.moves, made.clock_ms)
        assert made.files(backend) == []
        await check(made, contents)
        assert await made.put("later", b"x", tier)
        assert backend not in made.refs()["later"].layout.split("at=")[1].split(",")

    asyncio.run(scenario())


def test_a_whole_tier_drains_into_another_and_new_objects_follow(tmp_path: Path):
    made, contents = namespace(tmp_path, 10, "warm")
    names = list(CODED["backends"])

    async def scenario():
        mover = made.mover()
        begin_drain(mover, made.states, names, "hot")
        progress, left = await drain_fully(
            mover, made.states, names, tiers=("warm", "hot"), settle_s=0
        )
        assert (progress.moved, left) == (10, 0)
        assert {ref.tier for ref in made.refs().values()} == {"hot"}
        contents["later"] = b"later"
        assert (await made.put("later", b"later", "warm")).tier == "hot"
        made.write_tiers({"hot": REPLICAS})
        made.store.look_for_changes(at_once=True)
        assert list(made.store.tiers) == ["hot"]
        contents["last"] = b"last"
        await made.put("last", b"last", "warm")
        await check(made, contents)

    asyncio.run(scenario())


def test_a_blob_moves_to_another_tier_and_back(tmp_path: Path):
    made, contents = namespace(tmp_path, 5)

    async def scenario():
        mover = made.mover()
        for tier in ("warm", "hot", "warm", "hot"):
            for live in made.moves.live():
                assert (await mover.move_blob(live, tier)).result == "moved"
            await check(made, contents)
        await delete_due(made.store, made.moves, made.clock_ms)
        await check(made, contents)
        found = list(made.store.walk())
        assert {one.ref.id: one.ref for one in found} == {
            ref.id: ref for ref in made.refs().values()
        }

    asyncio.run(scenario())


def test_a_dead_disk_is_replaced_from_the_other_shards(tmp_path: Path):
    made, contents = namespace(tmp_path, 15, "warm")
    shutil.rmtree(tmp_path / "disks" / "w1")

    async def scenario():
        more = {**CODED, "backends": {**CODED["backends"], "new": "d1"}}
        made.write_tiers({"hot": REPLICAS, "warm": more})
        made.store.look_for_changes(at_once=True)
        mover = made.mover()
        before = made.refs()
        begin_drain(mover, made.states, ["w1"])
        progress, left = await drain_fully(
            mover, made.states, ["w1"], preferred={"w1": "new"}, settle_s=0
        )
        assert (progress.failed, left) == (0, 0)
        for key, ref in made.refs().items():
            old = [one.backend for one in parse_layout(before[key].layout).at if one]
            new = [one.backend for one in parse_layout(ref.layout).at if one]
            assert new == ["new" if name == "w1" else name for name in old]
        await check(made, contents)

    asyncio.run(scenario())


def test_a_drain_that_leaves_too_few_domains_is_refused(tmp_path: Path):
    made, _ = namespace(tmp_path, 1)
    with pytest.raises(Refused, match="tier `hot` can place only 1 of the 2 shards"):
        refuse_impossible(made.mover(), ["a", "b"])
    refuse_impossible(made.mover(), ["a"])


def test_two_tiers_do_not_drain_into_each_other(tmp_path: Path):
    made, _ = namespace(tmp_path, 1)
    hot, warm = list(REPLICAS["backends"]), list(CODED["backends"])
    begin_drain(made.mover(), made.states, hot, "warm")
    with pytest.raises(Refused, match="tier `hot` cannot take over"):
        begin_drain(made.mover(), made.states, warm, "hot")
    assert made.store.target("hot") == "warm" == made.store.target("warm")


def test_a_new_backend_gets_its_share_and_no_more(tmp_path: Path):
    made, contents = namespace(tmp_path, 60, "warm")

    async def scenario():
        more = {**CODED, "backends": {**CODED["backends"], "new": "d5"}}
        made.write_tiers({"hot": REPLICAS, "warm": more})
        made.store.look_for_changes(at_once=True)
        progress = await rebalance(made.mover())
        assert progress.failed == 0
        # 180 shards over 6 backends instead of 5: a sixth is 30.
        assert 18 <= progress.moved <= 42
        assert len(made.files("new")) == progress.moved
        assert (await rebalance(made.mover())).moved == 0
        await check(made, contents)

    asyncio.run(scenario())


def test_a_tier_with_another_layout_is_written_again(tmp_path: Path):
    made, contents = namespace(tmp_path, 10, "warm")

    async def scenario():
        made.write_tiers({"hot": REPLICAS, "warm": {**CODED, "layout": 'erasure = "3+2"'}})
        made.store.look_for_changes(at_once=True)
        await check(made, contents)
        assert (await rebalance(made.mover(), "warm")).moved == 10
        assert all(ref.layout.startswith("erasure=3+2") for ref in made.refs().values())
        await check(made, contents)

    asyncio.run(scenario())


def test_a_scrub_repairs_flipped_bits_and_missing_shards(tmp_path: Path):
    made, contents = namespace(tmp_path, 12, "warm")
    refs = list(made.refs().values())
    flip_bit(shard_file(made.store, refs[3], 0), 90)
    flip_bit(shard_file(made.store, refs[5], 2), 700)
    shard_file(made.store, refs[7], 1).unlink()

    async def scenario():
        report = await scrub(made.mover())
        assert (report.damaged, report.missing, report.repaired) == (2, 1, 3)
        assert report.lost == []
        await check(made, contents)
        await delete_due(made.store, made.moves, made.clock_ms)
        await check(made, contents)
        assert (await scrub(made.mover())).repaired == 0

    asyncio.run(scenario())


def test_a_scrub_names_what_is_lost(tmp_path: Path):
    made, _ = namespace(tmp_path, 3, "warm")
    ref = made.refs()["k1"]
    for index in (0, 2):
        shard_file(made.store, ref, index).unlink()

    async def scenario():
        report = await scrub(made.mover())
        assert report.lost == ["k1"]
        assert report.progress.failed == 1
        assert "1 of 2 shards" in report.progress.problems[0].problem

    asyncio.run(scenario())


def test_files_that_no_row_names_are_removed_when_they_are_old(tmp_path: Path):
    made, contents = namespace(tmp_path, 6, "warm")

    async def scenario():
        writer = made.store.create("warm", None)
        await writer.write(b"never acknowledged")
        await writer.commit(b"{}")
        half = made.store.create("warm", None)
        await half.write(bytes(5 << 20))
        report = await scrub(made.mover())
        await remove_garbage(made.mover(), report, 0)
        assert report.garbage == 0
        await remove_garbage(made.mover(), report, made.clock_ms + 60_000)
        assert report.garbage == 6
        await check(made, contents)

    asyncio.run(scenario())


def test_two_movers_exclude_each_other(tmp_path: Path):
    with (
        mover_lock(tmp_path),
        pytest.raises(Refused, match="another process"),
        mover_lock(tmp_path),
    ):
        pass
    with mover_lock(tmp_path):
        pass


def test_an_object_that_was_replaced_while_it_moved_keeps_its_new_content(tmp_path: Path):
    made, contents = namespace(tmp_path, 2)

    async def scenario():
        mover = made.mover()
        stale = next(live for live in made.moves.live() if live.key == "k1")
        contents["k1"] = b"new"
        await made.put("k1", b"new")
        assert (await mover.move_blob(stale, "warm")).result == "gone"
        assert (await mover.move_shards(stale, {0: "a", 1: "b"})).result in ("gone", "failed")
        await check(made, contents)
        assert all(not made.files(name) for name in CODED["backends"])

    asyncio.run(scenario())
