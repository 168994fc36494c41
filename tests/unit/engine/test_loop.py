"""The loop itself, with a world and a decider of a few lines each."""

from collections.abc import Sequence

from tenfold.engine.loop import RETRY_MS, run
from tenfold.fleet.fleet import Fleet, FleetView
from tenfold.model.actions import Action, StartJob
from tenfold.model.decision import NOTHING, Decision
from tenfold.model.events import (
    ActionOrdered,
    ActionRefused,
    Event,
    JobStarted,
    JobSubmitted,
    NodeJoined,
)
from tenfold.model.job.job import Slot
from tenfold.model.reason import Reason
from tenfold.model.units import Millis
from tenfold.testing.builders import job, nodes


class ListWorld:
    """Gives facts one moment at a time, and refuses the first orders."""

    def __init__(self, turns: Sequence[tuple[int, list[Event]]], refuses: int = 0) -> None:
        self.turns = list(turns)
        self.refuses = refuses
        self.if_alone: list[int | None] = []

    def wait(self, until_ms: Millis | None) -> tuple[Millis, Sequence[Event]] | None:
        self.if_alone.append(until_ms)
        if self.turns:
            at_ms, events = self.turns.pop(0)
            return Millis(at_ms), events
        return None if until_ms is None else (until_ms, ())

    def carry_out(self, actions: Sequence[Action], now_ms: Millis) -> Sequence[Event]:
        outcomes: list[Event] = []
        for action in actions:
            assert isinstance(action, StartJob)
            if self.refuses:
                self.refuses -= 1
                outcomes.append(ActionRefused(now_ms, action, Reason("busy", sentence="not now")))
            else:
                outcomes.append(JobStarted(now_ms, action.job_id))
        return outcomes


class FirstNode:
    """Starts whatever waits on the first node."""

    name = "first-node"

    def __init__(self) -> None:
        self.heard: list[list[type]] = []

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        self.heard.append([type(event) for event in news or ()])
        node = next(iter(view.nodes))
        starts = [StartJob(waits.id, (Slot(node, 1),)) for waits in view.pending.values()]
        return Decision(starts) if starts else NOTHING


class Pages:
    """A journal in memory."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def append(self, events: Sequence[Event]) -> None:
        self.events += events


def facts(*events: Event) -> list[tuple[int, list[Event]]]:
    return [(event.at_ms, [event]) for event in events]


def test_an_order_is_written_down_before_its_outcome():
    pages, decider = Pages(), FirstNode()
    world = ListWorld(facts(NodeJoined(Millis(0), nodes(1)[0]), JobSubmitted(Millis(5), job(0, 1))))
    run(world, Fleet(), [decider], journal=pages)
    kinds = [type(event) for event in pages.events]
    assert kinds == [NodeJoined, JobSubmitted, ActionOrdered, JobStarted]


def test_a_decider_hears_its_own_orders_and_their_outcomes_once():
    decider = FirstNode()
    world = ListWorld(
        facts(
            NodeJoined(Millis(0), nodes(1)[0]),
            JobSubmitted(Millis(5), job(0, 1)),
            JobSubmitted(Millis(6), job(1, 1)),
        )
    )
    run(world, Fleet(), [decider])
    assert decider.heard == [
        [NodeJoined],
        [JobSubmitted],
        [ActionOrdered, JobStarted, JobSubmitted],
    ]


def test_a_refused_order_is_thought_over_again_even_if_nothing_else_happens():
    for deciders in ([FirstNode()], [FirstNode(), FirstNode()]):
        fleet = Fleet()
        turns = facts(NodeJoined(Millis(0), nodes(1)[0]), JobSubmitted(Millis(5), job(0, 1)))
        world = ListWorld(turns, refuses=1)
        run(world, fleet, deciders)
        assert list(fleet.running) == ["job-0"]
        assert 5 + RETRY_MS in world.if_alone or len(deciders) == 2
