"""The exact tests against scipy and against counting by hand."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binomtest, mannwhitneyu

from tenfold.decide.detect.ranks import (
    BLOCKS_MAX,
    blocks,
    chance_of_larger,
    chance_of_signs,
    median,
    noise,
)


@pytest.mark.parametrize(("before", "now"), [(5, 7), (8, 8), (12, 9), (30, 30)])
def test_without_ties_it_is_the_exact_mann_whitney_test(before: int, now: int):
    dice = np.random.default_rng(before)
    old, new = dice.normal(size=before), dice.normal(0.4, size=now)
    exact = mannwhitneyu(new, old, alternative="greater", method="exact").pvalue
    assert chance_of_larger(list(old), list(new)) == pytest.approx(exact, rel=1e-12)


def test_with_ties_it_counts_every_deal():
    old, new = [1.0, 2.0, 2.0, 3.0], [2.0, 3.0, 3.0]
    pool = np.array([*old, *new])
    ranks = np.array([(pool < one).sum() + ((pool == one).sum() + 1) / 2 for one in pool])
    seen = ranks[len(old) :].sum()
    deals = [ranks[list(chosen)].sum() for chosen in combinations(range(7), 3)]
    expected = sum(deal >= seen for deal in deals) / len(deals)
    assert chance_of_larger(old, new) == pytest.approx(expected, rel=1e-12)


def test_all_larger_is_as_unlikely_as_it_can_be():
    assert chance_of_larger([1.0] * 8, [2.0] * 8) == pytest.approx(1 / 12_870)
    assert chance_of_larger([2.0] * 8, [1.0] * 8) == 1.0
    assert chance_of_larger([1.0] * 8, [1.0] * 8) == 1.0
    assert chance_of_larger([], [1.0]) == 1.0


def test_signs_are_tosses_of_a_coin():
    assert chance_of_signs(7, 1) == pytest.approx(binomtest(7, 8, alternative="greater").pvalue)
    assert chance_of_signs(0, 0) == 1.0


def test_the_noise_is_that_of_normal_values_and_blind_to_outliers():
    values = np.random.default_rng(3).normal(10, 2, size=20_000)
    assert noise(list(values)) == pytest.approx(2, rel=0.05)
    values[:2000] = 1e9
    assert noise(list(values)) == pytest.approx(2, rel=0.25)
    assert median([3.0, 1.0, 2.0]) == 2.0


def test_blocks_keep_order_and_all_values():
    assert blocks([1.0, 2.0, 3.0]) == [1.0, 2.0, 3.0]
    made = blocks([float(at) for at in range(3000)])
    assert len(made) == BLOCKS_MAX
    assert made == sorted(made)
    assert made[0] == 49.5
    assert blocks([]) == []
