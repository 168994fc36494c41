"""A service is scaled live as `tenfold sim autoscale` says: the same requests, the same decisions.

Live, time passes 20 times as fast, so a machine that is busy elsewhere adds seconds to each
request. Then it is tried again more slowly; a machine that is late with requests or with timers
even then is no place for the comparison.
"""

import numpy as np
import pytest

from benchmarks.autoscale.live import OVER_MAX, Compared, compare, requests

SPEEDS = (20.0, 10.0, 5.0)
MINUTES, SEED = 30.0, 2
LATE_MS_MAX = 1_000
"""Of one request in a hundred, in the faster time; requests take ten seconds."""
LAG_MS_MAX = 200
"""Of one timer in a hundred, in the faster time: a replica waits on one for each token."""


@pytest.mark.timeout(1_800)
def test_the_same_requests_lead_to_the_same_decisions_and_cost():
    trace = requests(MINUTES, SEED)
    seen: list[Compared] = []
    for speed in SPEEDS:
        seen.append(compare(trace, speed))
        assert set(seen[-1].live.statuses) == {200}
        if seen[-1].is_same_order and abs(seen[-1].over) <= OVER_MAX:
            return
    late_ms, lag_ms = (
        float(np.percentile(found, 99)) for found in (seen[-1].live.late_ms, seen[-1].live.lag_ms)
    )
    if late_ms > LATE_MS_MAX or lag_ms > LAG_MS_MAX:
        pytest.skip(
            f"requests are sent {late_ms:.0f} ms late and timers are {lag_ms:.0f} ms late: "
            "this machine is too busy"
        )
    raise AssertionError([(one.over, one.live.targets, one.sim_targets) for one in seen])
