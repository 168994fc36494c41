"""Jobs that fail are moved, and deciders remember no more than the view tells."""

from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from tenfold.compose.policies import placing_decider
from tenfold.fleet.check import check
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import StartJob
from tenfold.model.events import (
    ActionOrdered,
    Event,
    JobEnded,
    JobStarted,
    JobStopped,
    JobSubmitted,
    NodeJoined,
)
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, PoolId, SiteId
from tenfold.model.job.failures import AttemptFailure
from tenfold.model.job.job import Job, shape_of
from tenfold.model.policy.policy import Policy, PolicyName
from tenfold.model.units import SECOND, Millis

POLICIES = ("fifo", "las", "fair", "tenfold", "governed")
steps = st.lists(
    st.tuples(st.sampled_from(("submit", "crash", "complete")), st.integers(0, 11)), max_size=30
)


def fact(fleet: Fleet, step: tuple[str, int], now_ms: Millis) -> Event | None:
    """Return what a step comes to, if it can be."""
    kind, number = step
    if kind == "submit":
        gpus = number % 8 + 1 if number < 10 else 16
        job = Job(id=JobId(f"job-{now_ms}"), shape=shape_of(gpus), submitted_ms=now_ms, seq=now_ms)
        return JobSubmitted(now_ms, job)
    if not fleet.running:
        return None
    run = list(fleet.running.values())[number % len(fleet.running)]
    if kind == "complete":
        return JobEnded(now_ms, run.job.id)
    failure = AttemptFailure(1, "lost", now_ms, run.slots[number % len(run.slots)].node)
    return JobStopped(now_ms, run.job.id, "node-lost", Millis(0), UNSET, failure)


@given(steps, st.sampled_from(POLICIES))
@settings(max_examples=60, deadline=None)
def test_a_fresh_decider_moves_jobs_as_a_warm_one_does(steps: list[tuple[str, int]], name: str):
    policy = Policy(name=cast("PolicyName", name))
    fleet, warm = Fleet(), placing_decider(policy)
    news: list[Event] = []
    for number in range(1, 5):
        node = Node(id=NodeId(f"n{number}"), pool=PoolId("p"), site=SiteId("s"), gpus=8)
        news.append(NodeJoined(Millis(0), node))
    fleet.apply_all(news)
    for turn, step in enumerate(steps, start=1):
        now_ms = Millis(turn * SECOND)
        told = fact(fleet, step, now_ms)
        if told is None:
            continue
        fleet.apply(told)
        decision = warm.decide(fleet, now_ms, [*news, told])
        fresh = placing_decider(policy).decide(fleet, now_ms, None)
        assert list(fresh.actions) == list(decision.actions)
        news = []
        for action in decision.actions:
            news.append(ActionOrdered(now_ms, action))
            if isinstance(action, StartJob):
                news.append(JobStarted(now_ms, action.job_id))
        fleet.apply_all(news)
        check(fleet)
