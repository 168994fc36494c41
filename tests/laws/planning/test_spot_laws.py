"""What holds for every availability of spot capacity, task and policy."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.model.spot import SpotPolicyName, SpotTask
from tenfold.sim.spot import Availability
from tenfold.study.spot.run import run_policy

NAMES = st.sampled_from(("tenfold", "on-demand", "greedy", "uniform-progress"))
STEPS_S = st.integers(30, 7_200).map(float)
TRACES = st.lists(st.tuples(STEPS_S, st.booleans()), min_size=2, max_size=40)


@settings(max_examples=30, deadline=None)
@given(
    TRACES,
    NAMES,
    st.floats(0.1, 30.0),
    st.floats(0.0, 1.0),
    st.sampled_from((0.0, 60.0, 300.0, 900.0)),
    st.floats(1.0, 10.0),
)
def test_a_deadline_that_can_be_met_is_met_at_no_less_than_the_bound(
    steps: list[tuple[float, bool]],
    name: SpotPolicyName,
    work_h: float,
    slack: float,
    changeover_s: float,
    price: float,
):
    work_s = work_h * 3_600
    task = SpotTask(
        work_s=work_s,
        deadline_s=work_s * (1 + slack) + changeover_s,
        changeover_s=changeover_s,
        ondemand_price=price,
        spot_price=1.0,
    )
    trace = Availability(
        np.array([lasts for lasts, _ in steps]), np.array([is_up for _, is_up in steps])
    )
    found = run_policy(name, task, trace, range(len(steps)))
    assert found.deadlines_missed == 0
    assert found.cost_ratio_to_ondemand >= found.lower_bound - 1e-9
    assert found.changeovers >= 1
    worked_s = (found.spot_h + found.ondemand_h) * 3_600
    assert worked_s <= work_s + found.changeovers * changeover_s + 1
    assert worked_s >= work_s - 1
