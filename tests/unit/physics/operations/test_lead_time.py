"""Lead times of several stages."""

import pytest

from tenfold.physics.operations.lead_time import total_of


def test_one_stage_has_the_quantiles_it_was_given():
    total = total_of([(14, 26)])
    assert total.quantile(0.5) == pytest.approx(14, rel=0.005)
    assert total.quantile(0.9) == pytest.approx(26, rel=0.005)
    assert total.within(26) == pytest.approx(0.9, abs=0.005)


def test_not_all_stages_are_late_at_once():
    stages = [(2, 4), (20, 40), (2, 4), (1, 2), (1, 2)]
    total = total_of(stages)
    assert total.quantile(0.5) > sum(p50 for p50, _ in stages)
    assert total.quantile(0.9) < sum(p90 for _, p90 in stages)


def test_no_stages_take_no_time():
    assert total_of([]).quantile(0.9) == 0
    assert total_of([(0, 0)]).within(0) == 1


def test_a_stage_that_never_varies_takes_what_it_takes():
    assert total_of([(5, 5)]).quantile(0.9) == pytest.approx(5, abs=0.05)
