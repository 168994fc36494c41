from hypothesis import given
from hypothesis import strategies as st

from tenfold.gateway.route.rollback import SLOTS, Totals, Window, judge
from tenfold.model.service.routing import Rollback

RULE = Rollback(requests_min=20, error_percent_max=5, miss_percent_max=20)


def test_a_canary_is_judged_by_what_it_does_worse_than_the_others():
    bad = judge(Totals(20, 2, 0), Totals(1_000, 0, 0), RULE)
    assert bad is not None
    assert (bad.cause, bad.requests, bad.percent, bad.percent_others) == ("errors", 20, 10, 0)
    assert judge(Totals(20, 2, 0), Totals(1_000, 60, 0), RULE) is None
    late = judge(Totals(100, 0, 30), Totals(100, 0, 5), RULE)
    assert late is not None
    assert late.cause == "objective"


def test_too_few_requests_are_no_verdict():
    assert judge(Totals(19, 19, 19), Totals(), RULE) is None
    assert judge(Totals(20, 20, 0), Totals(), RULE) is not None


@given(st.lists(st.tuples(st.floats(0, 30), st.booleans(), st.booleans()), max_size=60))
def test_a_window_counts_what_is_in_it(counted: list[tuple[float, bool, bool]]):
    window, now = Window(10), 0.0
    at: list[tuple[float, bool, bool]] = []
    for wait, failed, late in counted:
        now += wait
        window.count(now, failed=failed, late=late)
        at.append((now, failed, late))
    totals = window.totals(now)
    inside = [one for one in at if one[0] > now - 10 + 10 / SLOTS]
    perhaps = [one for one in at if one[0] > now - 10 - 10 / SLOTS]
    assert len(inside) <= totals.requests <= len(perhaps)
    assert sum(one[1] for one in inside) <= totals.errors <= sum(one[1] for one in perhaps)
