"""What holds for every curve and every job that can wait."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tenfold.decide.shift.release import release_at
from tenfold.model.facts.intensity import curve_of
from tenfold.model.units import HOUR, MINUTE, Millis
from tenfold.testing.builders import job

curves = st.lists(st.integers(0, 500), min_size=1, max_size=30).map(curve_of)
moments = st.integers(0, 5 * 24 * HOUR).map(Millis)
spans = st.integers(1, 30 * HOUR).map(Millis)
slacks = st.sampled_from([1.0, 1.5, 2.0, 3.3])


@given(curves, moments, spans, spans, slacks)
def test_a_release_is_never_early_never_late_and_never_worse_than_another_moment(
    curve, now_ms, limit_ms, more_ms, slack
):
    deadline_ms = Millis(now_ms + limit_ms + more_ms)
    held = replace(job(1, 1), limit_ms=limit_ms, deadline_ms=deadline_ms)
    at_ms = release_at(held, now_ms, curve, slack=slack)
    latest_ms = deadline_ms - slack * limit_ms
    assert now_ms <= at_ms <= max(now_ms, latest_ms)
    chosen = curve.area(at_ms, at_ms + limit_ms)
    for other in range(now_ms, int(latest_ms) + 1, 17 * MINUTE):
        taken = curve.area(other, other + limit_ms)
        assert chosen < taken or (chosen == taken and at_ms <= other)


@given(curves, moments, spans, spans)
def test_later_by_a_period_everything_is_later_by_a_period(curve, now_ms, limit_ms, more_ms):
    period_ms = curve.period_ms

    def released(after_ms: int) -> int:
        deadline_ms = Millis(now_ms + limit_ms + more_ms + after_ms)
        held = replace(job(1, 1), limit_ms=limit_ms, deadline_ms=deadline_ms)
        return release_at(held, Millis(now_ms + after_ms), curve)

    assert released(period_ms) == released(0) + period_ms
