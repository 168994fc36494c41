from hypothesis import given
from hypothesis import strategies as st

from tenfold.gateway.admit.limits import OverLimit, TeamUse
from tenfold.model.service.routing import TeamLimits


def test_a_minute_of_requests_may_come_at_once_and_then_one_by_one():
    use = TeamUse(TeamLimits(name="a", requests_per_minute=60))
    assert [use.begin(0, 1) for _ in range(60)] == [None] * 60
    over = use.begin(0, 1)
    assert over == OverLimit("requests_per_minute", 60, 1.0)
    assert use.begin(1.0, 1) is None


def test_tokens_are_corrected_when_an_answer_ends():
    use = TeamUse(TeamLimits(name="a", tokens_per_minute=1_000))
    assert use.begin(0, 900) is None
    over = use.begin(0, 200)
    assert over is not None
    assert over.limit == "tokens_per_minute"
    use.end(900, 100)
    assert use.begin(0, 800) is None
    use.end(800, 5_000)
    over = use.begin(0, 1)
    assert over is not None
    assert over.retry_after_s > 60


def test_requests_at_a_time_are_limited_and_a_refused_one_costs_nothing():
    use = TeamUse(TeamLimits(name="a", concurrent_max=1, requests_per_minute=2))
    assert use.begin(0, 1) is None
    assert use.begin(0, 1) == OverLimit("concurrent_max", 1, 1.0)
    use.end(1, 1)
    assert use.begin(0, 1) is None


def test_without_limits_nothing_is_refused():
    use = TeamUse(TeamLimits(name="a"))
    assert all(use.begin(0, 10**9) is None for _ in range(100))


@given(
    st.integers(1, 1_000),
    st.lists(st.tuples(st.floats(0, 20), st.integers(1, 2_000)), min_size=1, max_size=80),
)
def test_no_more_than_a_minute_and_the_time_since_is_ever_granted(
    per_minute: int, asked: list[tuple[float, int]]
):
    use, now, granted, largest = (
        TeamUse(TeamLimits(name="a", tokens_per_minute=per_minute)),
        0,
        0,
        0,
    )
    for wait, tokens in asked:
        now += wait
        if use.begin(now, tokens) is None:
            granted += tokens
            largest = max(largest, tokens)
    assert granted <= per_minute * (1 + now / 60) + largest + 1e-6


def test_a_changed_limit_keeps_what_was_used():
    use = TeamUse(TeamLimits(name="a", requests_per_minute=10))
    for _ in range(10):
        assert use.begin(0, 1) is None
    use.update(TeamLimits(name="a", requests_per_minute=12))
    assert use.begin(0, 1) is None
    assert use.begin(0, 1) is None
    assert use.begin(0, 1) is not None
