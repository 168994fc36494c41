"""What must hold for every run: noise is not a regression, and a regression is not noise."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.decide.detect.ranks import blocks, chance_of_larger
from tenfold.decide.detect.regression import judge_steps
from tenfold.decide.detect.verdict import AlarmRule
from tenfold.model.baseline import Steps

RULE = AlarmRule()
seeds = st.integers(0, 2**32 - 1)
counts = st.integers(20, 200)
noises = st.floats(0.001, 0.08)
samples = st.lists(st.floats(1e-3, 1e3), min_size=8, max_size=40)


def run(seed: int, count: int, noise: float, median_s: float = 0.5) -> Steps:
    """Steps with a long tail to the slow side, as timings have."""
    dice = np.random.default_rng(seed)
    values = median_s * np.exp(noise * dice.standard_t(4, count))
    return Steps(count=count, step_s=tuple(values.tolist()))


@settings(max_examples=200)
@given(st.tuples(seeds, seeds).filter(lambda pair: pair[0] != pair[1]), counts, noises)
def test_the_same_noise_rings_no_alarm(pair: tuple[int, int], count: int, noise: float):
    before, after = run(pair[0], count, noise), run(pair[1], count, noise)
    # At 15% medians of such noise are four deviations apart; no draw may get there.
    assert not judge_steps(before, after, AlarmRule(slower_by=0.15)).alarm


def test_false_alarms_stay_below_what_the_rule_allows():
    """A thousand pairs of alike runs, at the usual rule; drawn the same way each time."""
    alarms = 0
    for seed in range(1000):
        noise = 0.02 + 0.10 * (seed % 10) / 10
        before, after = run(2 * seed, 40, noise), run(2 * seed + 1, 40, noise)
        alarms += judge_steps(before, after, RULE).alarm
    assert alarms <= 10


@settings(max_examples=100)
@given(seeds, st.integers(30, 200), noises, st.floats(1.5, 10))
def test_a_slowdown_beyond_noise_always_rings(seed: int, count: int, noise: float, factor: float):
    before, after = run(seed, count, noise), run(seed + 1, count, noise, 0.5 * factor)
    assert judge_steps(before, after, RULE).alarm


@given(samples)
def test_a_run_is_no_slower_than_itself(values: list[float]):
    one = Steps(count=len(values), step_s=tuple(values))
    said = judge_steps(one, one, RULE)
    assert said.outcome == "same"


@given(samples, samples, st.floats(0.01, 100))
def test_the_verdict_does_not_depend_on_the_unit(before, after, scale: float):
    def of(factor: float):
        old, new = [[value * factor for value in one] for one in (before, after)]
        return judge_steps(
            Steps(count=len(old), step_s=tuple(old)), Steps(count=len(new), step_s=tuple(new)), RULE
        )

    # Powers of two alone leave every bit of a fraction where it was.
    power = 2.0 ** round(np.log2(scale))
    assert of(1.0).outcome == of(power).outcome


@given(samples, samples)
def test_the_chances_of_both_directions_cover_all_deals(before, after):
    old, new = blocks(before), blocks(after)
    up, down = chance_of_larger(old, new), chance_of_larger(new, old)
    assert 0 < up <= 1
    assert up + down >= 1 - 1e-12
