"""The harness of the rigs, on a rig that is only arithmetic."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.grow.rigs import harness, two_limits
from benchmarks.grow.rigs.harness import Attained, Rig, Settings
from benchmarks.grow.rigs.predict import predict
from tenfold.model.growth.measured import UsagePoint

SETTINGS: Settings = {"law": "usage", "full": 40, "loads": [2, 5, 10], "share_least": 0.95}


class Link:
    """Carries 19 units, and each load asks for one."""

    capacity_summary = 19.0

    def __init__(self) -> None:
        self.asked: list[float] = []

    def measure(self, loads: Sequence[float]) -> list[UsagePoint]:
        return [
            UsagePoint(
                layer="storage",
                resource="link",
                factor=load / 10,
                usage=load,
                limit=self.capacity_summary,
                unit="bytes/s",
            )
            for load in loads
        ]

    def attain(self, load: float) -> Attained:
        self.asked.append(load)
        return Attained(min(1.0, self.capacity_summary / load), "link")


@contextmanager
def stage(settings: Settings, folder: Path) -> Iterator[Link]:
    yield Link()


def rig(**changes: object) -> Rig:
    return Rig("link", {**SETTINGS, **changes}, lambda: "", stage)


def test_what_was_said_at_a_quarter_is_what_comes_at_full_scale(tmp_path: Path):
    said, was = harness.run_both(rig(), tmp_path / "run")
    assert said.k == pytest.approx(2.0)
    assert was.k == pytest.approx(said.k, rel=0.01)
    assert (was.first, was.void) == ("link", "")


def test_full_scale_is_refused_without_a_prediction(tmp_path: Path):
    harness.begin(rig(), tmp_path / "run")
    harness.measure(rig(), Link(), tmp_path / "run")
    link = Link()
    with pytest.raises(FileNotFoundError, match=r"prediction\.json"):
        harness.observe(rig(), link, tmp_path / "run")
    assert link.asked == []


def test_a_prediction_is_never_written_twice_and_its_digest_is_kept(tmp_path: Path):
    harness.run_both(rig(), tmp_path / "run")
    with pytest.raises(FileExistsError):
        predict(tmp_path / "run")
    outcome = json.loads((tmp_path / "run" / "outcome.json").read_text())
    assert len(outcome["prediction_digest"]) == 64
    assert outcome["tried"][0]["load"] == 10


def test_phase_one_never_loads_more_than_a_quarter(tmp_path: Path):
    greedy = rig(loads=[5, 11])
    harness.begin(greedy, tmp_path / "run")
    with pytest.raises(AssertionError, match="at most a quarter"):
        harness.measure(greedy, Link(), tmp_path / "run")


def test_a_rig_that_is_broken_at_a_quarter_is_void(tmp_path: Path):
    _, was = harness.run_both(rig(full=100, loads=[2, 5]), tmp_path / "run")
    assert was.void == "broken at a quarter of full scale"


def test_a_rig_that_does_not_break_says_so(tmp_path: Path):
    _, was = harness.run_both(rig(full=16, loads=[2, 4]), tmp_path / "run")
    assert (was.k, was.void) == (None, "")


def test_loads_of_full_scale_step_up_by_no_more_than_eight_percent():
    loads = harness.grid({"full": 1_000})
    assert (loads[0], loads[-1]) == (250, 1_000)
    assert max(high / low for low, high in pairwise(loads)) < 1.09


def test_alternating_ranks_are_said_from_two(tmp_path: Path):
    settings: Settings = {
        "law": "ring",
        "full": 8,
        "share_least": 0.5,
        "compute_s": 0.6,
        "size_bytes": 4_000_000,
    }
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    rows = [f"fabric,all-reduce,{size},1,{size / 20e6},,s" for size in (1_000_000, 4_000_000)]
    header = "layer,resource,queue,factor,usage,limit,unit"
    (tmp_path / "measured.csv").write_text("\n".join([header, *rows]))
    # Four megabytes at 20 MB/s are 0.2 s for each rank but one: four ranks take 0.6 s.
    assert predict(tmp_path).k == pytest.approx(2.0)


def test_configured_starts_are_said_from_the_configuration(tmp_path: Path):
    settings: Settings = {"law": "admission", "full": 8.0, "share_least": 1.0}
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    header = "layer,resource,queue,factor,usage,limit,unit"
    (tmp_path / "measured.csv").write_text(f"{header}\nadmission,slurm cpu,,1,0.1,2,core\n")
    words = "sched_max_job_start=6,sched_min_interval=2000000"
    (tmp_path / "slurm.conf").write_text(
        f"SchedulerType=sched/builtin\nSchedulerParameters={words}\n"
    )
    said = predict(tmp_path)
    assert (said.k, said.first) == (pytest.approx(1.5), "configured starts")


def test_two_limits_are_drawn_again_where_they_have_no_first():
    assert two_limits.apart({"link": 2.0, "server cpu": 2.5}) == "ends within 30% of the other"
    assert two_limits.apart({"link": 0.5, "server cpu": 2.5}) == "ends at a quarter of full scale"
    assert two_limits.apart({"link": 9.0, "server cpu": 5.0}) == "does not end by full scale"
    assert two_limits.apart({"link": 2.0, "server cpu": 3.0}) == ""


def test_a_seed_draws_the_same_rig_again():
    assert two_limits.drawn(3).rig.settings == two_limits.drawn(3).rig.settings
    for seed in range(50):
        settings = two_limits.drawn(seed).rig.settings
        assert max(settings["loads"]) <= settings["full"] / 4
