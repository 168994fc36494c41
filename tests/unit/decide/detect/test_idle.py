"""When a job idles: low use for a while, with a wide way back and no trust in gaps."""

import pytest

from tenfold.decide.detect.idle import IdleRule, IdleWatch, idle_change, idle_rule_of, observe
from tenfold.model.errors import InputError
from tenfold.model.units import MINUTE, SECOND, Millis

RULE = IdleRule()
STEP_MS = 15 * SECOND


def turns(uses: list[int], *, step_ms: int = STEP_MS, own_ms: int | None = None) -> list[int]:
    """Return after which looks something is told, where the first is 1 and busy is negative."""
    idle_watch: IdleWatch | None = None
    idles, told = False, []
    for number, use in enumerate(uses, 1):
        idle_watch = observe(idle_watch, use, Millis(number * step_ms), RULE, idles=idles)
        turn = idle_change(
            idle_watch, RULE, None if own_ms is None else Millis(own_ms), idles=idles
        )
        if turn is not None:
            idles = turn == "idles"
            told.append(number if idles else -number)
    return told


def test_a_job_idles_once_it_used_nothing_for_a_quarter_of_an_hour():
    assert turns([0] * 200) == [61]
    assert turns([49] * 61) == [61]
    assert turns([0] * 60) == []


def test_one_look_that_finds_it_in_use_begins_the_while_anew():
    assert turns([*[0] * 60, 50, *[0] * 60]) == []
    assert turns([*[0] * 60, 50, *[0] * 61]) == [122]


def test_a_job_that_idles_is_in_use_again_only_well_above_the_threshold():
    assert turns([*[0] * 61, *[99] * 50]) == [61]
    assert turns([*[0] * 61, 100]) == [61, -62]


def test_after_a_gap_the_while_begins_anew():
    idle_watch = observe(None, 0, Millis(0), RULE, idles=False)
    for number in range(1, 60):
        idle_watch = observe(idle_watch, 0, Millis(number * STEP_MS), RULE, idles=False)
    late = Millis(59 * STEP_MS + RULE.gap_ms_most + 1)
    idle_watch = observe(idle_watch, 0, late, RULE, idles=False)
    assert idle_watch.below_ms == late
    assert idle_change(idle_watch, RULE, None, idles=False) is None


def test_a_job_may_ask_for_less_time_and_never_for_more():
    assert turns([0] * 100, own_ms=1 * MINUTE) == [5]
    assert turns([0] * 100, own_ms=60 * MINUTE) == [61]


def test_a_rule_that_is_off_flags_nothing_and_still_lets_go():
    off = idle_rule_of(0, 5)
    idle_watch = IdleWatch(Millis(90 * MINUTE), Millis(0))
    assert idle_change(idle_watch, off, None, idles=False) is None
    assert idle_change(IdleWatch(Millis(0), None), off, None, idles=True) == "is-used"


def test_the_rule_is_made_of_what_people_write():
    rule = idle_rule_of(600, 2.5)
    assert (rule.after_ms, rule.idle_milli, rule.busy_milli) == (10 * MINUTE, 25, 50)


@pytest.mark.parametrize("given", [(-1, 5), (float("nan"), 5), (60, 0), (60, 51), (1e12, 5)])
def test_a_rule_that_makes_no_sense_is_refused(given: tuple[float, float]):
    with pytest.raises(InputError):
        idle_rule_of(*given)
