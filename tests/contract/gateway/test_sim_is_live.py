"""A service is scaled live as `tenfold sim autoscale` says: the same requests, the same decisions.

Live, time passes 20 times as fast, so a machine that is busy elsewhere adds seconds to each
request. Then it is tried again at half the speed; a machine that cannot even send requests at
their times is no place for the comparison.
"""

import numpy as np
import pytest

from benchmarks.autoscale.live import OVER_MAX, Compared, compare, requests

SPEEDS = (20.0, 10.0)
MINUTES, SEED = 30.0, 2
LATE_MS_MAX = 1_000
"""Of one request in a hundred, in the faster time; requests take ten seconds."""


@pytest.mark.timeout(1_800)
def test_the_same_requests_lead_to_the_same_decisions_and_cost():
    trace = requests(MINUTES, SEED)
    seen: list[Compared] = []
    for speed in SPEEDS:
        seen.append(compare(trace, speed))
        assert set(seen[-1].live.statuses) == {200}
        if seen[-1].is_same_order and abs(seen[-1].over) <= OVER_MAX:
            return
    late_ms = float(np.percentile(seen[-1].live.late_ms, 99))
    if late_ms > LATE_MS_MAX:
        pytest.skip(f"requests are sent {late_ms:.0f} ms late: this machine is too busy")
    raise AssertionError([(one.over, one.live.targets, one.sim_targets) for one in seen])
