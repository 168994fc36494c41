"""Replay a recorded run through the loop: the same events must lead to the same decisions.

The world of a replay returns recorded events and outcomes at their recorded times. The decider
is asked again, and its answer is compared with the record before anything is carried out, so the
first difference is reported with the state in which it arose.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from tenfold.engine.decision_log import Cycle, cycle_of
from tenfold.engine.loop import Decider, run
from tenfold.engine.policy_spans import PolicyTimeline
from tenfold.engine.recording import Line, LoopIteration, Step, iterations_of
from tenfold.fleet.fleet import Fleet, FleetView
from tenfold.model.actions import (
    Action,
    RefuseJob,
    ReserveStart,
    ResizeJob,
    StartJob,
    decision_key,
    same_decisions,
)
from tenfold.model.decision import Decision
from tenfold.model.events import KIND_OF, ActionOrdered, Event
from tenfold.model.job.job import Slot
from tenfold.model.units import Millis


class StateCounts(Struct, frozen=True, kw_only=True):
    """What a decider saw, in numbers."""

    version: int
    pending: int
    ordered: int
    running: int
    nodes_up: int
    gpus_free: int
    """On nodes that are up."""


class Difference(Struct, frozen=True, kw_only=True):
    """The first place where a replay differs from its record."""

    cycle: int
    """Cycles are counted from 1."""
    at_ms: Millis
    what: Literal["actions", "wake", "state"]
    sentence: str
    recorded: tuple[Action, ...]
    decided: tuple[Action, ...]
    seen: StateCounts


class ReplayResult(Struct, frozen=True, kw_only=True):
    """The result of a replay."""

    cycles: int
    orders: int
    fleet: Fleet
    difference: Difference | None = None


class InvalidRecord(Struct, frozen=True, kw_only=True):
    """A recorded event that cannot follow from those before it."""

    place: int
    """Its position among the lines, from 0."""
    sentence: str


class ReplayWorld:
    """Returns what was recorded, iteration by iteration."""

    def __init__(self, iterations: Iterable[LoopIteration]) -> None:
        self._iterations = iter(iterations)
        self._steps: Iterator[Step] = iter(())
        self.step: Step | None = None
        """The recorded step that the current decision is compared with."""
        self.cycles = 0

    def wait(self, until_ms: Millis | None) -> tuple[Millis, Sequence[Event]] | None:
        """Return the next recorded moment with its events."""
        iteration = next(self._iterations, None)
        if iteration is None:
            return None
        self._steps = iter(iteration.steps)
        return iteration.at_ms, iteration.facts

    def next_step(self) -> Step:
        """Advance to the step of the next decider in this iteration."""
        self.step = next(self._steps)
        self.cycles += 1
        return self.step

    def carry_out(self, actions: Sequence[Action], now_ms: Millis) -> Sequence[Event]:
        """Return the recorded outcomes; the actions are known to be the same."""
        assert self.step is not None, "nothing is carried out before it is decided"
        return self.step.outcomes


class _Differs(Exception):
    def __init__(self, difference: Difference) -> None:
        super().__init__(difference.sentence)
        self.difference = difference


class _Checked:
    """A decider whose every answer is compared with the record."""

    def __init__(self, decider: Decider | PolicyTimeline, world: ReplayWorld) -> None:
        self.name = "in turn" if isinstance(decider, PolicyTimeline) else decider.name
        self._decider = decider
        self._world = world
        self.orders = 0

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        """Decide, and stop the replay if the record differs."""
        cycle = self._world.next_step().cycle
        decider = self._decider
        if isinstance(decider, PolicyTimeline):
            decider, is_fresh = decider.decider(self._world.cycles, cycle, view.version)
            news = None if is_fresh else news
        decision = decider.decide(view, now_ms, news)
        decided = tuple(decision.actions)
        if not same_decisions(decided, cycle.actions):
            self._differ("actions", _actions_differ(cycle.actions, decided), view, decided)
        if decision.wake_at_ms != cycle.wake_at_ms and not cycle.is_cut:
            sentence = (
                f"next wake-up differs: recorded {_when(cycle.wake_at_ms)}, "
                f"replayed {_when(decision.wake_at_ms)}"
            )
            self._differ("wake", sentence, view, decided)
        self.orders += len(decided)
        return decision

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        """Compare the state after a cycle with its record."""
        assert self._world.step is not None, "a cycle ends after its step"
        recorded = self._world.step.cycle
        found = cycle_of(fleet, now_ms, decider, decision)
        for name in ("version", "pending", "running"):
            before, now = getattr(recorded, name), getattr(found, name)
            if before != now:
                sentence = (
                    f"`{name}` after the cycle differs: recorded {before:,}, replayed {now:,}"
                )
                self._differ("state", sentence, fleet, found.actions)

    def _differ(
        self,
        what: Literal["actions", "wake", "state"],
        sentence: str,
        view: FleetView,
        decided: tuple[Action, ...],
    ) -> None:
        assert self._world.step is not None, "a difference is always to a recorded step"
        cycle = self._world.step.cycle
        raise _Differs(
            Difference(
                cycle=self._world.cycles,
                at_ms=cycle.at_ms,
                what=what,
                sentence=sentence,
                recorded=cycle.actions,
                decided=decided,
                seen=_state_counts(view),
            )
        )


def replay(
    lines: Iterable[Line], decider: Decider | PolicyTimeline, base: Fleet | None = None
) -> ReplayResult:
    """Replay recorded events with a new decider, up to the first difference.

    `base` is the fleet before the first event, and is changed; without it that fleet is empty.
    """
    world, fleet = ReplayWorld(iterations_of(lines)), base or Fleet()
    checked = _Checked(decider, world)
    difference = None
    try:
        run(world, fleet, [checked], witnesses=[checked])
    except _Differs as found:
        difference = found.difference
    return ReplayResult(
        cycles=world.cycles, orders=checked.orders, fleet=fleet, difference=difference
    )


def rebuild(lines: Iterable[Line], base: Fleet | None = None) -> Fleet | InvalidRecord:
    """Apply recorded events one by one; return the fleet, or the first invalid record."""
    fleet = base or Fleet()
    now_ms: Millis | None = None
    for place, line in enumerate(lines):
        if isinstance(line, Cycle):
            # Events may be reported late; cycles never go back in time.
            if now_ms is not None and line.at_ms < now_ms:
                sentence = f"the cycle is {now_ms - line.at_ms:,} ms earlier than the one before it"
                return InvalidRecord(place=place, sentence=sentence)
            now_ms = line.at_ms
            continue
        try:
            fleet.apply(line)
        except KeyError as unknown:
            sentence = (
                f"`{KIND_OF[type(line)]}` does not apply to `{unknown.args[0]}` in this state"
            )
            return InvalidRecord(place=place, sentence=sentence)
        except AssertionError as broken:
            return InvalidRecord(place=place, sentence=str(broken))
    return fleet


def lines_before(lines: Sequence[Line], place: int) -> Sequence[Line]:
    """Return the part of a record that can be replayed up to an invalid line.

    An invalid order was never decided: its cycle is the last one worth replaying.
    """
    if isinstance(lines[place], ActionOrdered):
        for at in range(place, len(lines)):
            if isinstance(lines[at], Cycle):
                return lines[: at + 1]
    return lines[:place]


def _actions_differ(recorded: Sequence[Action], decided: Sequence[Action]) -> str:
    for before, now in zip(recorded, decided, strict=False):
        if decision_key(before) != decision_key(now):
            return f"recorded: {describe(before)}; replayed: {describe(now)}"
    if len(recorded) > len(decided):
        return f"only recorded: {describe(recorded[len(decided)])}"
    return f"only replayed: {describe(decided[len(recorded)])}"


def describe(action: Action) -> str:
    """Return an action as the end of `it would ...`."""
    if isinstance(action, StartJob):
        return f"start `{action.job_id}` on {_nodes(action.slots)}"
    if isinstance(action, RefuseJob):
        return f"reject `{action.job_id}`"
    if isinstance(action, ResizeJob):
        return f"resize `{action.job_id}` to {_nodes(action.slots)} ({action.reason.code})"
    if isinstance(action, ReserveStart):
        when = f"{_when(action.start_ms)} on {_nodes(action.slots)}"
        return f"reserve a start for `{action.job_id}` {when}"
    return f"stop `{action.job_id}` ({action.reason.code})"


def _nodes(slots: Sequence[Slot]) -> str:
    names = ", ".join(f"`{slot.node}`" for slot in slots[:4])
    return names + (f" and {len(slots) - 4} more" if len(slots) > 4 else "")


def _when(at_ms: Millis | None) -> str:
    return "never" if at_ms is None else f"at {at_ms:,} ms"


def _state_counts(view: FleetView) -> StateCounts:
    up = [node_id for node_id, state in view.states.items() if state == "up"]
    return StateCounts(
        version=view.version,
        pending=len(view.pending),
        ordered=len(view.orders),
        running=len(view.running),
        nodes_up=len(up),
        gpus_free=sum(view.gpus_free[node_id] for node_id in up),
    )
