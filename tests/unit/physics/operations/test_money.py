"""Dollars: exact months, effective hours, tokens, and owning against renting."""

import numpy as np
import pytest

from tenfold.physics.arrays import Floats
from tenfold.physics.operations.money import (
    Ownership,
    Price,
    break_even_utilisation,
    effective_usd_per_gpu_hour,
    month,
    owned_usd_per_hour,
    payback_months,
    usd_micros,
    usd_per_million_tokens,
    utilisation_gain,
)

MONTH = {"gpus": 35_000, "storage": 5_000, "network": 3_000, "tooling": 2_000}
OWN = Ownership(
    capital_usd=np.array([40_000.0]),
    life_years=np.array([4.0]),
    salvage_share=np.array([0.1]),
    capital_rate=np.array([0.08]),
    power_kw=np.array([1.2]),
    usd_per_kwh=np.array([0.1]),
    running_usd_per_year=np.array([2_000.0]),
)


def one(value: float) -> Floats:
    return np.array([float(value)])


def test_the_example_month_totals_exactly_45000_dollars():
    bill = month(MONTH)
    assert bill.total_usd_micros == 45_000_000_000
    assert bill.lines_usd_micros["gpus"] == 35_000_000_000


def test_15_percent_better_utilisation_is_priced_as_cash_and_as_work():
    gain = utilisation_gain(month(MONTH), 0.15)
    assert gain.extra_work_usd_micros == 6_750_000_000
    assert gain.same_work_saved_usd_micros == 5_869_565_217
    assert utilisation_gain(month(MONTH), 0.0).same_work_saved_usd_micros == 0


def test_cents_that_floats_cannot_hold_add_up_exactly():
    assert month({str(n): 0.1 for n in range(10)}).total_usd_micros == 1_000_000


def test_dollars_become_whole_micros():
    found = usd_micros(np.array([0.0000014, 2.5, -1.0]))
    assert found.dtype == np.int64
    assert found.tolist() == [1, 2_500_000, -1_000_000]


def test_idle_hours_and_lost_work_raise_the_price_of_a_useful_hour():
    owned = Price("owned", 1_000_000, utilisation=0.5)
    spot = Price("spot", 1_000_000, goodput=0.8)
    assert effective_usd_per_gpu_hour(owned) == pytest.approx(2.0)
    assert effective_usd_per_gpu_hour(spot) == pytest.approx(1.25)


def test_a_cheap_rate_that_idles_costs_more_than_a_dear_one_that_does_not():
    reserved = Price("reserved", 2_000_000, utilisation=0.5)
    on_demand = Price("on-demand", 3_000_000)
    assert effective_usd_per_gpu_hour(on_demand) == pytest.approx(3.0)
    assert effective_usd_per_gpu_hour(reserved) == pytest.approx(4.0)


def test_dollars_per_million_tokens():
    found = usd_per_million_tokens(one(8), one(1000), Price("on-demand", 3_600_000))
    assert found[0] == pytest.approx(8 * 3.6 / 3600 / 1000 * 1e6)


def test_break_even_has_its_closed_form():
    rent = one(3.0)
    annuity = 0.08 / (1 - 1.08**-4)
    fixed = (40_000 * (1 - 0.1 * 1.08**-4) * annuity + 2_000) / 8766
    assert break_even_utilisation(OWN, rent)[0] == pytest.approx(fixed / (3.0 - 0.12))


def test_at_break_even_owning_and_renting_cost_the_same():
    rent = one(3.0)
    share = break_even_utilisation(OWN, rent)
    fixed, variable = owned_usd_per_hour(OWN)
    assert fixed + share * variable == pytest.approx(share * rent)


def test_rent_below_the_price_of_power_is_never_beaten():
    assert break_even_utilisation(OWN, one(0.1))[0] == np.inf


def test_money_that_costs_nothing_is_written_off_in_equal_parts():
    free = Ownership(one(40_000), one(4), one(0), one(0), one(0), one(0), one(0))
    assert owned_usd_per_hour(free)[0][0] == pytest.approx(10_000 / 8766)


def test_at_break_even_the_capital_is_paid_back_in_its_life():
    free = Ownership(one(40_000), one(4), one(0), one(0), one(1.2), one(0.1), one(2_000))
    busy = break_even_utilisation(free, one(3.0))
    assert payback_months(free, one(3.0), busy)[0] == pytest.approx(48)
    assert payback_months(free, one(3.0), busy * 1.5)[0] < 48


def test_interest_puts_the_payback_off_and_can_put_it_off_for_ever():
    def months(rate: float, busy: float = 1.0) -> float:
        dear = Ownership(one(40_000), one(4), one(0), one(rate), one(0), one(0), one(0))
        return float(payback_months(dear, one(1.0), one(busy))[0])

    assert months(0.0) < months(0.1) < np.inf
    assert months(0.5) == np.inf
    assert months(0.0, busy=0.5) == pytest.approx(2 * months(0.0))


def test_running_costs_above_the_rent_are_never_paid_back():
    dear = Ownership(one(1), one(4), one(0), one(0), one(0), one(0), one(50_000))
    assert payback_months(dear, one(3.0), one(1.0))[0] == np.inf
