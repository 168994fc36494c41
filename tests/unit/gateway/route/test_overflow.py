from typing import NamedTuple

from tenfold.gateway.route.overflow import Spending, choose_place, expected_wait_s, usd_micros_of


class Somewhere(NamedTuple):
    cost: int
    left: int | None = None
    outstanding: int = 0
    requests_max: int = 2
    after_wait_s: float = 5.0
    usable: bool = True

    def usd_micros(self, input_tokens: int, output_tokens: int) -> int:
        return self.cost * (input_tokens + output_tokens)

    def usd_micros_left(self, now_s: float) -> int | None:
        return self.left

    def is_usable(self, now_s: float) -> bool:
        return self.usable


def test_the_cheapest_place_with_room_and_budget_is_chosen():
    places = [Somewhere(9), Somewhere(1, left=10), Somewhere(2, outstanding=2), Somewhere(3)]
    assert choose_place(places, 6, (10, 10), 0) == 3
    assert choose_place(places, 6, (5, 5), 0) == 1


def test_nothing_goes_away_while_the_wait_is_short_or_nothing_answers():
    assert choose_place([Somewhere(1)], 4.9, (1, 1), 0) is None
    assert choose_place([Somewhere(1, usable=False)], 50, (1, 1), 0) is None
    assert choose_place([], 50, (1, 1), 0) is None


def test_spending_is_that_of_the_last_hour():
    spending = Spending()
    spending.add(0, 70)
    spending.add(1_800, 30)
    assert spending.total(3_000) == 100
    assert spending.total(3_600) == 30
    spending.add(3_600, -10)
    assert spending.total(3_700) == 20
    assert spending.total(100_000) == 0


def test_waits_and_prices():
    assert expected_wait_s(8, 4, 3.0) == 6.0
    assert expected_wait_s(8, 0, 3.0) == 0.0
    assert usd_micros_of(2_000_000, 0.5) == 1_000_000
