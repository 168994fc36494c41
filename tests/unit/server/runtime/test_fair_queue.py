"""Slots go to the team with the fewest, nobody is forgotten, and no slot is lost."""

import asyncio
from collections import Counter
from random import Random

import pytest

from tenfold.server.runtime.budgets import Flow, Limits
from tenfold.server.runtime.fair_queue import FairQueue, QueueFull, RequestSlot

RED, BLUE = Flow("red", "r1"), Flow("blue", "b1")


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_team_that_comes_late_does_not_wait_behind_a_storm():
    async def served() -> list[str]:
        queue, order = FairQueue(2, 1_024, Limits()), list[str]()

        async def one(flow: Flow) -> None:
            slot = await queue.slot(flow)
            order.append(flow.team)
            await settle()
            slot.release()

        storm = [asyncio.create_task(one(RED)) for _ in range(50)]
        await settle()
        blue = asyncio.create_task(one(BLUE))
        await asyncio.gather(blue, *storm)
        return order

    assert asyncio.run(served()).index("blue") < 4


def test_one_team_never_holds_all_slots():
    async def held() -> tuple[int, RequestSlot]:
        queue = FairQueue(8, 1_024, Limits())
        waiting = [asyncio.create_task(queue.slot(RED)) for _ in range(20)]
        await settle()
        return sum(one.done() for one in waiting), await queue.slot(BLUE)

    assert asyncio.run(held())[0] == 4


def test_tokens_of_one_team_take_turns():
    async def served() -> list[str]:
        queue, order = FairQueue(1, 1_024, Limits(team_share=1)), list[str]()

        async def one(flow: Flow) -> None:
            slot = await queue.slot(flow)
            order.append(flow.token)
            slot.release()

        first = await queue.slot(BLUE)
        tasks = [asyncio.create_task(one(Flow("red", name))) for name in ["a"] * 5 + ["b"] * 2]
        await settle()
        first.release()
        await asyncio.gather(*tasks)
        return order

    assert asyncio.run(served())[:4] == ["a", "b", "a", "b"]


def test_a_full_line_is_refused_and_others_are_not():
    async def refused() -> str:
        queue = FairQueue(1, 8, Limits())
        slots = [asyncio.create_task(queue.slot(RED)) for _ in range(3)]
        await settle()
        assert queue.waiting == 2
        with pytest.raises(QueueFull) as full:
            await queue.slot(RED)
        asyncio.create_task(queue.slot(BLUE))  # noqa: RUF006
        await settle()
        assert queue.waiting == 3
        for one in slots:
            one.cancel()
        return full.value.exceeded.whose

    assert asyncio.run(refused()) == "token"


def test_no_slot_is_lost_when_requests_are_cancelled_at_any_moment():
    async def run(seed: int) -> None:
        dice, queue, served = Random(seed), FairQueue(3, 1_024, Limits()), Counter[str]()

        async def one(flow: Flow) -> None:
            slot = await queue.slot(flow)
            try:
                served[flow.team] += 1
                for _ in range(dice.randrange(4)):
                    await asyncio.sleep(0)
            finally:
                slot.release()
                slot.release()

        tasks: list[asyncio.Task[None]] = []
        for _ in range(100):
            flow = Flow(dice.choice("abc"), dice.choice("xy"))
            tasks.append(asyncio.create_task(one(flow)))
            if dice.random() < 0.5:
                dice.choice(tasks).cancel()
            if dice.random() < 0.3:
                await asyncio.sleep(0)
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (queue.busy, queue.waiting) == (0, 0)
        assert sum(served.values()) > 0

    for seed in range(50):
        asyncio.run(run(seed))
