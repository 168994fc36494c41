"""Admission as a law: arrivals of a queue against what its controller starts."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

import growth_builders as made
from tenfold.cli.main import main
from tenfold.model.growth.growth import Axis, Controller, GrowSpec, GrowthLimits
from tenfold.model.growth.measured import UsagePoint
from tenfold.model.job.job import Job
from tenfold.model.policy.policy import Policy
from tenfold.model.policy.slurm import SlurmPolicy
from tenfold.physics.growth.breaking import breaking_factor
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layer import Constraint
from tenfold.study.grow.layers.jobs.admission import Admission
from tenfold.study.grow.state import state_of
from tenfold.testing.builders import job

EXAMPLE = Path(__file__).parents[5] / "examples" / "kueue-1300"
KUEUE = Controller(kind="kueue", cycles_per_min=30.0)


def jobs(team: str, count: int, every_s: int) -> list[Job]:
    """Return jobs of a team, evenly apart."""
    return [job(at, 1, at_s=at * every_s, runs_s=60, team=team) for at in range(count)]


def constraints(inputs: GrowInputs, axis: Axis = "jobs") -> list[Constraint]:
    return Admission().evaluated(state_of(inputs), axis)


def asked(*controllers: Controller) -> GrowInputs:
    return made.given(made.fleet(), GrowSpec(controllers=controllers))


def arriving(queue: str, per_min: float) -> UsagePoint:
    return UsagePoint(
        layer="admission", resource="kueue", queue=queue, factor=1, usage=per_min, unit="jobs/min"
    )


def test_the_busiest_queue_of_the_history_breaks_where_jobs_wait_too_long():
    # 101 jobs over 1,000 s against 0.5 a second; the other team's are fewer.
    work = [*jobs("large", 101, 10), *jobs("small", 11, 100)]
    [constraint] = constraints(replace(asked(KUEUE), jobs=work))
    assert (constraint.layer, constraint.resource) == ("admission", "kueue large")
    assert constraint.utilisation(1) < constraint.utilisation(2) < constraint.utilisation(4)
    k = breaking_factor(constraint.utilisation, 64)
    # M/D/1: the mean wait is 300 s at a load of 300 / 301.
    assert k == pytest.approx(0.5 / 0.101 * 300 / 301)
    assert constraint.utilisation(k) == pytest.approx(1.0)
    said = "29.9 jobs/min arrive in queue large; it admits 30; mean wait 300 s"
    assert constraint.symptom(k) == said


def test_a_shorter_wait_is_passed_earlier_and_fixed_by_no_more_than_it_takes():
    given = replace(asked(KUEUE), jobs=jobs("large", 101, 10))
    grow = replace(given.grow, limits=GrowthLimits(admission_wait_s_most=2.0))
    [usual], [short] = constraints(given), constraints(replace(given, grow=grow))
    assert breaking_factor(short.utilisation, 64) == pytest.approx(0.5 / 0.101 * 2 / 3)
    setting = next(one for one in short.reliefs(20.0) if one.code == "setting")
    [then] = Admission().evaluated(setting.apply(state_of(replace(given, grow=grow))), "jobs")
    assert then.utilisation(20.0) <= 1 < usual.utilisation(20.0)


def test_one_loop_for_all_queues_feels_all_arrivals():
    work = [*jobs("large", 101, 10), *jobs("small", 11, 100)]
    [constraint] = constraints(
        replace(asked(Controller(kind="tenfold", cost_ms_per_job=1_000.0)), jobs=work)
    )
    assert constraint.resource == "tenfold"
    assert constraint.utilisation(1) == pytest.approx(0.112 * 601 / 600)


def test_more_teams_bring_queues_of_their_own():
    given = replace(asked(KUEUE), jobs=jobs("large", 101, 10))
    [constraint] = constraints(given, "teams")
    assert constraint.utilisation(8) == constraint.utilisation(1)
    all_in_one = replace(
        asked(Controller(kind="tenfold", cost_ms_per_job=1_000.0)), jobs=given.jobs
    )
    [constraint] = constraints(all_in_one, "teams")
    assert constraint.utilisation(8) == pytest.approx(8 * constraint.utilisation(1))


def test_a_history_under_slurm_is_admitted_as_its_conf_says():
    conf = SlurmPolicy(scheduler="builtin", jobs_started_max=4, interval_min_us=2_000_000)
    policy = Policy(name="slurm", slurm=conf)
    [constraint] = constraints(replace(asked(), policy=policy, jobs=jobs("large", 101, 10)))
    assert constraint.resource == "slurm"
    assert breaking_factor(constraint.utilisation, 64) == pytest.approx(2 / 0.101 * 1_200 / 1_201)


def test_work_of_a_mix_is_an_assumption():
    [constraint] = constraints(replace(asked(KUEUE), jobs=jobs("large", 101, 10), mix="philly"))
    assert constraint.grade == "assumed"


@pytest.mark.parametrize(
    ("given", "needs"),
    [
        (asked(), "`[[controller]]` in the grow file, or a slurm.conf as `--policy`"),
        (asked(Controller(kind="kueue")), "`cycles_per_min`, or a measured `cost_ms_per_job`"),
        (asked(KUEUE), "a job history, or measured arrivals in its queues"),
        (
            asked(Controller(kind="kueue", queue="deep", cycles_per_min=30.0)),
            "a job history, or measured arrivals in queue `deep`",
        ),
    ],
)
def test_what_is_missing_is_named(given: GrowInputs, needs: str):
    [constraint] = constraints(given)
    assert constraint.needs == needs


def test_an_axis_without_more_jobs_has_no_law():
    assert constraints(asked(KUEUE), "data") == []


def test_measured_arrivals_count_before_the_history_and_the_deepest_queue_decides():
    given = replace(
        asked(KUEUE),
        jobs=jobs("large", 101, 10),
        measured=[arriving("shallow", 1.0), arriving("deep", 15.0)],
    )
    [constraint] = constraints(given)
    assert constraint.resource == "kueue deep"
    assert constraint.utilisation(1) == pytest.approx(0.5 * 301 / 300)


@pytest.fixture
def grow(capsys: pytest.CaptureFixture[str]):
    def call(*words: object) -> dict[str, dict]:
        files = [EXAMPLE / "fleet.toml", "--grow", EXAMPLE / "grow.toml", "--axis", "jobs"]
        status = main(["grow", *map(str, files), *map(str, words), "--json"])
        captured = capsys.readouterr()
        assert (status, captured.err) == (0, "")
        return json.loads(captured.out)["answer"]

    return call


def test_the_report_of_kueue_in_production_comes_out_as_admission_rate(grow):
    answer = grow("--measured", EXAMPLE / "measured.csv")
    first = answer["first"]
    assert (first["layer"], first["resource"]) == ("admission", "kueue deep")
    assert first["k"] == pytest.approx(9.5 / 9.6 * 95 / 96, rel=1e-5)
    assert first["low"] < 1 < first["high"]
    assert first["symptom"].endswith("536 queued jobs wait 56 min")
    assert "compute" in [one["layer"] for one in answer["unknown"]]
    assert "admission" not in [one["layer"] for one in answer["unknown"]]


def test_shallow_queues_alone_are_not_taken_for_a_break(grow, tmp_path: Path):
    table = tmp_path / "measured.csv"
    table.write_text(
        "layer,resource,queue,factor,usage,unit\nadmission,kueue,shallow,1,0.4,jobs/min\n"
    )
    answer = grow("--measured", table)
    assert answer["first"] is None
    assert "admission" in [one["layer"] for one in answer["unknown"]]
