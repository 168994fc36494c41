"""Where a queue breaks is a fact of the demand, and not of how many days of it were recorded."""

from hypothesis import given, settings
from hypothesis import strategies as st

import growth_builders as made
from tenfold.model.growth.growth import GrowSpec, GrowthLimits
from tenfold.study.grow.constraint_set import simulated_constraints
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layer import break_of
from tenfold.study.grow.layers.jobs.queue import Queue
from tenfold.study.grow.runs.runs import Runs
from tenfold.study.grow.state import state_of
from tests.rigs.planted.jobs import jobs_of, policy_of
from tests.rigs.planted.plan import Work

DAY_S = 86_400.0
JOBS_PER_DAY = 6
SHORT_DAYS, LONG_DAYS = 8, 40
MOST = 5.0
ALIKE = 0.12


def breaks_at(days: int, load: float, wait_days: float, *, quota: int) -> float:
    """Return where jobs that come evenly to a few servers wait too long; 1 / load is full."""
    every_s = DAY_S / JOBS_PER_DAY
    work = Work(
        jobs=days * JOBS_PER_DAY,
        every_s=every_s,
        runs_s=round(load * 2 * every_s),
        quota_nodes=quota,
        is_run=True,
    )
    inputs = GrowInputs(
        fleet=made.fleet(nodes=8 if quota else 2),
        jobs=jobs_of(work),
        policy=policy_of(work),
        grow=GrowSpec(limits=GrowthLimits(wait_s_p90=wait_days * DAY_S)),
    )
    [queue] = simulated_constraints(
        state_of(inputs),
        Runs("jobs"),
        most=MOST,
        calibration=made.EXACT,
        layers=(Queue(),),
        seeds=(0, 1, 2),
    )
    found = break_of(queue, MOST).k
    assert found is not None
    return found


@settings(max_examples=6, deadline=None)
@given(
    load=st.floats(0.3, 0.7),
    wait_days=st.floats(0.75, 2.5),
    quota=st.sampled_from((0, 2)),
)
def test_a_short_history_breaks_where_a_long_one_does_when_its_servers_are_full(
    load: float, wait_days: float, quota: int
):
    short = breaks_at(SHORT_DAYS, load, wait_days, quota=quota)
    long = breaks_at(LONG_DAYS, load, wait_days, quota=quota)
    assert abs(short / long - 1) <= ALIKE
    assert abs(short * load - 1) <= ALIKE
