"""Cut the power at every operation, and kill real processes: nothing loads wrong."""

import random
from pathlib import Path

import pytest

from benchmarks.checkpoint_crashes import FOLDER, check, cut_power, kill, live
from checkpoint_builders import LyingDisk, TearingDisk
from tenfold.checkpoint import verify
from tests.rigs.forgetful import ForgetfulDisk


def test_the_power_may_go_at_any_operation():
    whole = ForgetfulDisk()
    live(whole, 0, 1)
    assert whole.operations > 50
    for cut_at in range(whole.operations):
        disk = ForgetfulDisk(cut_at=cut_at, seed=cut_at)
        acknowledged = live(disk, 0, 1)
        for seed in range(4):
            left = disk.after_power_cut(seed)
            assert check(left, FOLDER, acknowledged, 1).fault == "", (cut_at, seed)
            # What was being removed is not taken for a checkpoint that has rotted.
            assert "damaged" not in [one.state for one in verify(FOLDER, files=left)]


@pytest.mark.parametrize("ranks", [1, 3])
def test_life_after_life_goes_on_from_what_is_left(ranks: int):
    cuts = [cut for seed in range(10) for cut in cut_power(seed, ranks)]
    assert [cut.fault for cut in cuts if cut.fault] == []
    assert max(cut.found for cut in cuts) > 3


@pytest.mark.parametrize("disk", [LyingDisk, TearingDisk])
def test_a_disk_that_lies_about_syncing_is_found_out_by_these_checks(disk: type[ForgetfulDisk]):
    cuts = [cut for seed in range(20) for cut in cut_power(seed, 1, disk)]
    faults = [cut.fault for cut in cuts if cut.fault]
    assert faults
    assert not any("wrong values" in fault for fault in faults)


def test_a_killed_process_leaves_what_it_acknowledged(tmp_path: Path):
    chance = random.Random(5)
    cuts = [kill(tmp_path / "run", attempt, chance) for attempt in (1, 2, 3)]
    assert [cut.fault for cut in cuts] == ["", "", ""]
    assert cuts[-1].found > 0
