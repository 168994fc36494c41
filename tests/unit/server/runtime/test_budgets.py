"""Budgets: who may take how much, and how limits are written."""

import asyncio

import pytest

from tenfold.model.errors import InputError
from tenfold.server.runtime.budgets import BURST_S, Budget, Flow, Limits, RateLimit, limits_of

ONE, TWO, OTHER = Flow("red", "r1"), Flow("red", "r2"), Flow("blue", "b1")


def taken(budget: Budget, flow: Flow) -> int:
    count = 0
    while budget.take(flow) is None:
        count += 1
    return count


def test_a_token_gets_a_quarter_a_team_half_and_all_of_them_the_whole():
    budget = Budget("streams", 100, Limits())
    assert [taken(budget, flow) for flow in (ONE, TWO, Flow("red", "r3"))] == [25, 25, 0]
    assert taken(budget, OTHER) == 25
    assert taken(budget, Flow("green", "g")) == 25
    refused = budget.take(Flow("grey", "x"))
    assert refused is not None
    assert (refused.whose, budget.used) == ("server", 100)
    budget.give(ONE)
    assert budget.take(ONE) is None


def test_who_holds_nothing_may_take_more_than_a_share():
    budget = Budget("body_mib", 8, Limits())
    assert budget.take(ONE, 6) is None
    assert budget.take(ONE, 1) is not None
    assert budget.take(OTHER, 2) is None


def test_a_waiting_one_is_served_when_enough_is_given_back():
    async def waited() -> int:
        budget = Budget("response_mib", 8, Limits())
        budget.take(ONE, 8)
        waiting = asyncio.create_task(budget.wait(ONE, 2))
        await asyncio.sleep(0)
        assert not waiting.done()
        budget.give(ONE, 8)
        await waiting
        return budget.used

    assert asyncio.run(waited()) == 2


def test_a_rate_allows_a_burst_and_says_how_long_to_wait():
    now = [0.0]
    rates = RateLimit(Limits(requests_per_second=40), lambda: now[0])
    count = 0
    while (refused := rates.take(ONE)) is None:
        count += 1
    assert count == pytest.approx(10 * BURST_S, abs=1)
    exceeded, wait_s = refused
    assert (exceeded.whose, 0 < wait_s <= 0.1) == ("token", True)
    assert rates.take(OTHER) is None
    now[0] += wait_s + 0.001
    assert rates.take(ONE) is None


def test_limits_are_names_and_numbers():
    limits = limits_of(["streams=512", "team-share=1", "body-mib=0.5e1"])
    assert (limits.streams, limits.team_share, limits.body_mib) == (512, 1, 5)


@pytest.mark.parametrize(
    "wrong", ["strems=1", "streams", "streams=", "streams=0", "streams=1.5", "team-share=2", "=1"]
)
def test_a_wrong_limit_is_refused_with_a_hint(wrong: str):
    with pytest.raises(InputError) as refused:
        limits_of([wrong])
    assert refused.value.field == "--limit"
    assert refused.value.hint
