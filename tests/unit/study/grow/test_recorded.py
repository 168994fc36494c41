"""Waits that a history recorded come before simulated ones."""

import pytest
from msgspec.structs import replace

import growth_builders as made
from tenfold.compose.fleet import OpenFleet
from tenfold.model.growth.growth import GrowSpec, GrowthLimits
from tenfold.model.ids import PoolId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.policy.policy import Policy
from tenfold.model.units import HOUR, Millis
from tenfold.physics.layout import lay_out
from tenfold.study.grow.analyse import analyse
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layers.jobs.queue import Queue
from tenfold.study.grow.question import GrowQuestion
from tenfold.study.grow.recorded import recorded_waits
from tenfold.testing.builders import job

QUESTION = GrowQuestion(axis="jobs", to=(2.0,), seeds=1)
LAYERS = (Queue(),)


def even(load: float, nodes: int = 8) -> list[Job]:
    """Jobs alike at even times over three days."""
    gap_s = 7_200 / nodes / load
    return [job(n, 8, at_s=n * gap_s, runs_s=7_200) for n in range(int(3 * 86_400 / gap_s))]


def waiting(jobs: list[Job], hours: float) -> GrowInputs:
    """A history in which every job waited so long."""
    return GrowInputs(
        fleet=made.fleet(nodes=8),
        jobs=jobs,
        starts_ms={one.id: Millis(round(one.submitted_ms + hours * HOUR)) for one in jobs},
        policy=Policy(name="fifo"),
        grow=GrowSpec(limits=GrowthLimits(wait_s_p90=4 * 3_600)),
    )


def test_recorded_waits_over_the_limit_are_the_first_line():
    answer = analyse(waiting(even(0.5), 6), QUESTION, layers=LAYERS)
    assert answer.sentence.startswith(
        "over its limit today: Queue wait, recorded P90 wait 6.0 h weighted by GPU time "
        "(limit 4 h); OK only up to 0."
    )
    assert answer.first is not None
    assert (answer.first.layer, answer.first.grade) == ("queue", "measured")
    assert answer.first.k is not None
    assert answer.first.k <= 1
    assert "recorded P90 wait 6.0 h" in answer.first.symptom


def test_recorded_waits_within_the_limit_overrule_a_simulation_that_is_over():
    """The simulation is not calibrated, and what happened shows that today is fine."""
    answer = analyse(waiting(even(1.6), 1), QUESTION, layers=LAYERS)
    assert answer.first is None
    [queue] = [row for row in answer.layers if row.layer == "queue"]
    assert queue.k is None or queue.k > 1
    assert "today" not in answer.sentence


def test_both_waits_are_named_where_they_differ():
    answer = analyse(waiting(even(0.5), 2), QUESTION, layers=LAYERS)
    assert "wait time off by 100% (recorded 2.0 h, simulated 0 min)" in answer.calibration.sentence


def test_a_history_without_starts_recorded_no_waits():
    inputs = waiting(even(0.5), 6)
    assert recorded_waits(replace(inputs, starts_ms={})) is None
    assert recorded_waits(replace(inputs, mix="some")) is None


def test_a_wait_that_the_simulation_does_not_show_is_not_fixed_by_nodes():
    """Half of the fleet was idle while jobs waited: nothing shows that more nodes would help."""
    answer = analyse(waiting(even(0.5), 6), QUESTION, layers=LAYERS)
    [row] = answer.rows
    assert row.relief is None
    assert row.sentence.startswith("no known fix: the simulation does not show this wait")


def test_waits_of_weeks_on_an_overloaded_fleet_break_where_the_gpus_are_enough():
    """They last as long as the history, so their length says nothing of how much is too much."""
    answer = analyse(waiting(even(1.6), 600), QUESTION, layers=LAYERS)
    assert answer.first is not None
    assert answer.first.k == pytest.approx(1 / 1.6, rel=0.1)
    [row] = answer.rows
    assert row.relief is not None


def test_a_recorded_wait_that_the_simulation_shows_has_a_fix():
    answer = analyse(waiting(even(1.3), 12), QUESTION, layers=LAYERS)
    [row] = answer.rows
    assert row.grade == "measured"
    assert row.relief is not None


def of_two_types(waits_h: dict[str, float]) -> GrowInputs:
    """A history in which the jobs of each type waited so long; a few want A100, most H100."""
    opened = made.fleet()
    [whole] = opened.spec.pools
    pools = tuple(
        replace(whole, id=PoolId(name), accelerator=name, nodes=4, node_names=f"{name}-[1-4]")
        for name in waits_h
    )
    spec = replace(opened.spec, pools=pools)
    jobs = [
        replace(one, shape=shape_of(8, accelerators=("A100" if place % 16 == 0 else "H100",)))
        for place, one in enumerate(job(n, 8, at_s=n * 900, runs_s=1_800) for n in range(600))
    ]
    return GrowInputs(
        fleet=OpenFleet(spec=spec, layout=lay_out(spec), catalogue=opened.catalogue),
        jobs=jobs,
        starts_ms={
            one.id: Millis(round(one.submitted_ms + waits_h[one.shape.accelerators[0]] * HOUR))
            for one in jobs
        },
        policy=Policy(name="fifo"),
        grow=GrowSpec(limits=GrowthLimits(wait_s_p90=4 * 3_600)),
    )


def test_recorded_waits_of_one_type_are_the_first_line():
    """Too few jobs ask for the short type to move the waits of all jobs."""
    answer = analyse(of_two_types({"H100": 0.0, "A100": 6.0}), QUESTION, layers=LAYERS)
    assert answer.sentence.startswith(
        "over its limit today: Queue wait, recorded P90 wait 6.0 h for jobs on A100 (limit 4 h); "
    )
    assert answer.first is not None
    assert answer.first.resource == "jobs on A100"
    assert answer.first.symptom == "recorded P90 wait 6.0 h for jobs on A100 (limit 4 h)"
    over = [row.resource for row in answer.layers if row.k is not None and row.k <= 1]
    assert over == ["jobs on A100"]
