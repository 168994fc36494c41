"""Waits that a history recorded come before simulated ones."""

from msgspec.structs import replace

import growth_builders as made
from tenfold.model.growth.growth import GrowSpec, GrowthLimits
from tenfold.model.job.job import Job
from tenfold.model.policy.policy import Policy
from tenfold.model.units import HOUR, Millis
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
