"""Laws of policy files: windows that meet, and parts of the day."""

from hypothesis import given
from hypothesis import strategies as st

from tenfold.files.policy.tree import day_parts, quota_at
from tenfold.files.policy.windows import windows_overlap
from tenfold.model.ids import TeamId
from tenfold.model.job.terms import Hours, Window
from tenfold.model.policy.governance import TeamRules
from tenfold.model.units import DAY, HOUR, Millis

LONG = 2_000


@st.composite
def windows(draw: st.DrawFn) -> Window:
    start, lasts = draw(st.integers(-20, 40)), draw(st.integers(1, 8))
    every = draw(st.none() | st.integers(lasts, 12))
    return Window(
        id="w",
        start_ms=Millis(start),
        end_ms=Millis(start + lasts),
        every_ms=None if every is None else Millis(every),
    )


def moments(window: Window) -> set[int]:
    lasts = window.end_ms - window.start_ms
    step = window.every_ms or LONG
    starts = range(window.start_ms, LONG if window.every_ms else window.start_ms + 1, step)
    return {start + held for start in starts for held in range(lasts)}


@given(windows(), windows())
def test_windows_meet_exactly_where_they_share_a_moment(first: Window, second: Window):
    assert windows_overlap(first, second) == bool(moments(first) & moments(second))
    assert windows_overlap(first, second) == windows_overlap(second, first)


@given(st.integers(0, 23), st.integers(1, 24), st.integers(0, DAY - 1))
def test_hours_hold_for_as_long_as_they_last(start: int, lasts: int, at_ms: int):
    hours = Hours(Millis(start * HOUR), Millis((start + lasts) * HOUR))
    assert sum(end - begin for begin, end in day_parts(hours)) == lasts * HOUR
    team = TeamRules(id=TeamId("a"), quota={"any": 1}, hours=((hours, {"any": 2}),))
    inside = (at_ms - hours.from_ms) % DAY < lasts * HOUR
    assert quota_at(team, at_ms) == {"any": 2 if inside else 1}
