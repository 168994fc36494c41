"""The loop that simulation and the live control plane share: events in, actions out.

A world supplies time and events and carries out actions; deciders make choices; only events
change the fleet. An order is itself an event, recorded before it is carried out: after a crash
it is known what may be in progress, and nothing is ordered twice.
"""

from collections.abc import Sequence
from typing import Protocol

from tenfold.fleet.fleet import Fleet, FleetView
from tenfold.model.actions import Action
from tenfold.model.decision import Decision
from tenfold.model.events import ActionOrdered, ActionRefused, Event
from tenfold.model.units import SECOND, Millis

RETRY_MS = SECOND
"""From a refused order to the next decision, if no event comes first."""


class Decider(Protocol):
    """A choice made from the view alone.

    `news` is a hint, not an input: the events applied since the last call, in order, so that
    caches can be updated. Without it (`None`), or where it does not cover the gap between
    versions, a decider rebuilds from the view and decides the same.
    """

    @property
    def name(self) -> str:
        """Its name in the decision log."""
        ...

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        """Return what to do at `now_ms`."""
        ...


class World(Protocol):
    """What a cycle depends on: time, events, and carrying out actions."""

    def wait(self, until_ms: Millis | None) -> tuple[Millis, Sequence[Event]] | None:
        """Return the next moment with its events, or `until_ms` without one; `None` at the end."""
        ...

    def carry_out(self, actions: Sequence[Action], now_ms: Millis) -> Sequence[Event]:
        """Start actions; return the outcomes known at once. Others come with `wait`."""
        ...


class Journal(Protocol):
    """Where events are stored before they take effect."""

    def append(self, events: Sequence[Event]) -> None:
        """Store events durably, in order."""
        ...


class Witness(Protocol):
    """Observes every cycle: the decision log, invariants under test, a progress bar."""

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        """Observe one decision, after its orders were carried out."""
        ...


def run(
    world: World,
    fleet: Fleet,
    deciders: Sequence[Decider],
    *,
    journal: Journal | None = None,
    witnesses: Sequence[Witness] = (),
) -> None:
    """Run the deciders until the world ends."""
    if len(deciders) == 1:
        _run_one(world, fleet, deciders[0], journal, witnesses)
    else:
        _run_many(world, fleet, deciders, journal, witnesses)


def _run_one(
    world: World,
    fleet: Fleet,
    decider: Decider,
    journal: Journal | None,
    witnesses: Sequence[Witness],
) -> None:
    """The common case, inlined: a simulation of a million jobs spends its time here."""
    wait, carry_out, apply_all, decide = (
        world.wait,
        world.carry_out,
        fleet.apply_all,
        decider.decide,
    )
    done: list[Event] = []
    """Orders and outcomes of the last iteration, which the decider has not seen yet."""
    wake_ms: Millis | None = None
    while (iteration := wait(wake_ms)) is not None:
        now_ms, events = iteration
        if journal is not None:
            journal.append(events)
        apply_all(events)
        decision = decide(fleet, now_ms, [*done, *events] if done else events)
        done = []
        wake_ms = decision.wake_at_ms
        actions = decision.actions
        if actions:
            orders = [ActionOrdered(now_ms, action) for action in actions]
            if journal is not None:
                journal.append(orders)
            apply_all(orders)
            outcomes = carry_out(actions, now_ms)
            if journal is not None and outcomes:
                journal.append(outcomes)
            apply_all(outcomes)
            done = [*orders, *outcomes]
            for outcome in outcomes:
                if type(outcome) is ActionRefused:
                    wake_ms = _sooner(wake_ms, now_ms)
        for witness in witnesses:
            witness.cycle(fleet, now_ms, decider, decision)


def _run_many(
    world: World,
    fleet: Fleet,
    deciders: Sequence[Decider],
    journal: Journal | None,
    witnesses: Sequence[Witness],
) -> None:
    unseen: list[list[Event]] = [[] for _ in deciders]
    wakes: list[Millis | None] = [None for _ in deciders]

    def record(events: Sequence[Event]) -> None:
        if journal is not None and events:
            journal.append(events)
        fleet.apply_all(events)
        for waiting in unseen:
            waiting.extend(events)

    while (iteration := world.wait(_earliest(wakes))) is not None:
        now_ms, events = iteration
        record(events)
        for place, decider in enumerate(deciders):
            news, unseen[place] = unseen[place], []
            decision = decider.decide(fleet, now_ms, news)
            wakes[place] = decision.wake_at_ms
            if decision.actions:
                record([ActionOrdered(now_ms, action) for action in decision.actions])
                outcomes = world.carry_out(decision.actions, now_ms)
                record(outcomes)
                if any(isinstance(outcome, ActionRefused) for outcome in outcomes):
                    wakes[place] = _sooner(wakes[place], now_ms)
            for witness in witnesses:
                witness.cycle(fleet, now_ms, decider, decision)


def _sooner(wake_ms: Millis | None, now_ms: Millis) -> Millis:
    """Return when to decide after a refused order: soon, since no event may follow."""
    again_ms = Millis(now_ms + RETRY_MS)
    return again_ms if wake_ms is None else min(wake_ms, again_ms)


def _earliest(wakes: Sequence[Millis | None]) -> Millis | None:
    return min((wake for wake in wakes if wake is not None), default=None)
