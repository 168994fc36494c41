"""Reliefs of what only runs can tell: the same runs are made again, and the layer breaks later."""

from msgspec.structs import replace

import growth_builders as made
from tenfold.compose.fleet import OpenFleet
from tenfold.model.facts.failure_law import FailureLaw
from tenfold.model.growth.growth import Axis, GrowSpec, GrowthLimits
from tenfold.model.job.job import Job
from tenfold.model.job.traffic import Traffic, WorkProfile
from tenfold.model.policy.policy import Policy
from tenfold.physics.layout import lay_out
from tenfold.study.grow.constraint_set import simulated_constraints
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layer import Constraint, break_of
from tenfold.study.grow.runs.runs import Runs, runs_for
from tenfold.study.grow.state import State, state_of
from tenfold.testing.builders import job

HOUR = 3_600
FAULTS = FailureLaw(
    name="own", faults_per_1000_node_days=900.0, repair_h_median=1.0, repair_h_mean=1.0
)


def constraint_of(state: State, runs: Runs, layer: str, most: float) -> Constraint:
    constraints = simulated_constraints(state, runs, most=most, calibration=made.EXACT)
    return next(constraint for constraint in constraints if constraint.layer == layer)


def relieved(
    inputs: GrowInputs, axis: Axis, layer: str, most: float = 3.0
) -> dict[str, tuple[float | None, float | None]]:
    """Return the breaking factor before and after each relief, by its code."""
    state, runs = state_of(inputs), runs_for(inputs, axis, most=most)
    constraint = constraint_of(state, runs, layer, most)
    before = break_of(constraint, most).k
    return {
        relief.code: (
            before,
            break_of(constraint_of(relief.apply(state), runs, layer, most), most).k,
        )
        for relief in constraint.reliefs(most)
    }


def further(found: tuple[float | None, float | None]) -> bool:
    before, after = found
    return before is not None and (after is None or after > 1.05 * before)


def hourly(count: int, gpus: int, runs_h: float, team: str = "", profile: str = "") -> list[Job]:
    return [
        replace(job(n, gpus, at_s=n * HOUR, runs_s=runs_h * HOUR, team=team), profile=profile)
        for n in range(count)
    ]


def test_saves_that_come_sooner_leave_less_to_lose_with_a_node():
    """Gangs of four nodes that grow to eight are hit twice as often."""
    inputs = GrowInputs(
        fleet=made.fleet(nodes=32),
        jobs=hourly(120, 32, 6.0),
        failures=FAULTS,
        policy=Policy(name="fifo"),
        grow=GrowSpec(limits=GrowthLimits(lost_share_most=0.08)),
    )
    found = relieved(inputs, "job-size", "failures")
    assert list(found) == ["saves"]
    assert further(found["saves"])


def test_parts_by_weight_let_the_small_team_have_its_own():
    """One team fills the fleet first come, first served; the other's jobs stand behind its line."""
    large = [
        replace(one, id=f"l{one.id}", team="large")
        for one in (job(n, 8, at_s=n * 600, runs_s=4 * HOUR) for n in range(700))
    ]
    small = [
        replace(one, id=f"s{one.id}", team="small")
        for one in (job(n, 8, at_s=n * 2_400, runs_s=4 * HOUR) for n in range(175))
    ]
    jobs = sorted([*large, *small], key=lambda one: one.submitted_ms)
    jobs = [replace(one, seq=place) for place, one in enumerate(jobs)]
    inputs = GrowInputs(
        fleet=made.fleet(nodes=32),
        jobs=jobs,
        policy=Policy(name="fifo"),
        grow=GrowSpec(limits=GrowthLimits(fairness_least=0.97)),
    )
    found = relieved(inputs, "jobs", "governance")
    assert further(found["quota"])


def test_shelves_and_uplinks_are_tried_on_jobs_that_slow_each_other_down():
    """Gangs read more of the tier than it gives as they grow; uplinks carry nothing."""
    opened = made.fleet(nodes=32, tiers=(made.tier(gb_per_s=4),))
    fabric = replace(opened.spec.fabrics[0], oversubscription=2.0)
    spec = replace(opened.spec, fabrics=(fabric,))
    traffic = Traffic(read_bytes_per_s_per_gpu=25e6, read_share=1.0, tier="fast")
    inputs = GrowInputs(
        fleet=OpenFleet(spec=spec, layout=lay_out(spec), catalogue=made.catalogue()),
        jobs=hourly(120, 32, 4.0, profile="reads"),
        profiles={"reads": WorkProfile(traffic=traffic)},
    )
    found = relieved(inputs, "jobs", "contention")
    assert sorted(found) == ["shelves", "uplinks"]
    assert further(found["shelves"])
    assert not further(found["uplinks"])
