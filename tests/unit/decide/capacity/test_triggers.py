"""When triggers fire: thresholds, days, hysteresis and cool-down."""

from tenfold.decide.capacity.triggers import DayFigures, TriggerRule, firings, lint_rules

BUSY = TriggerRule(
    name="busy", kind="utilisation", above=0.8, clears_below=0.6, for_days=2, cool_down_days=0
)


def days(*values: float) -> list[DayFigures]:
    return [DayFigures(day=at, utilisation=value) for at, value in enumerate(values)]


def fired(rule: TriggerRule, *values: float) -> list[int]:
    return [one.day for one in firings([rule], days(*values))]


def test_a_rule_fires_after_its_days_above_the_threshold():
    assert fired(BUSY, 0.9, 0.7, 0.9, 0.9, 0.9) == [3]
    assert firings([BUSY], days(0.5, 0.9, 0.9))[0].since == 1


def test_a_value_at_the_threshold_is_not_above_it():
    assert fired(BUSY, 0.8, 0.8, 0.8) == []


def test_it_does_not_fire_again_until_the_value_has_cleared():
    assert fired(BUSY, 0.9, 0.9, 0.7, 0.9, 0.9) == [1]
    assert fired(BUSY, 0.9, 0.9, 0.6, 0.9, 0.9) == [1, 4]


def test_it_does_not_fire_again_during_its_cool_down():
    rule = TriggerRule(name="busy", kind="utilisation", above=0.8, cool_down_days=4)
    assert fired(rule, 0.9, 0.1, 0.9, 0.1, 0.1, 0.9) == [0, 5]


def test_a_day_without_the_figure_changes_nothing():
    seen = [DayFigures(day=0, utilisation=0.9), DayFigures(day=1), *days(0, 0, 0.9)[2:]]
    assert [one.day for one in firings([BUSY], seen)] == [2]


def test_a_threshold_without_evidence_is_doubtful():
    good = TriggerRule(name="good", kind="queue", above=4, evidence="load test of October")
    assert lint_rules([good]) == []
    assert [one.code for one in lint_rules([BUSY])] == ["no-evidence"]


def test_a_rule_that_clears_at_its_threshold_or_never_fires_is_doubtful():
    flapping = TriggerRule(name="a", kind="queue", above=4, clears_below=4, evidence="x")
    never = TriggerRule(name="b", kind="utilisation", above=1.2, evidence="x")
    codes = [one.code for one in lint_rules([flapping, never])]
    assert codes == ["no-hysteresis", "never-fires"]
