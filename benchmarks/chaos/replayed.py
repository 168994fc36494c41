"""Replay the journal of a soak: over every kill, the same facts bring the same decisions.

The record of a cycle is written with the facts that follow it, so a kill takes the last one
away while its orders stand. Where a new writer begins, such a cycle is closed here: its orders
and the state after them are known, and when it wished to be woken is not.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from tenfold.compose.policies import placing_decider
from tenfold.engine.decision_log import Cycle
from tenfold.engine.digest import fleet_digest
from tenfold.engine.loop import Decider
from tenfold.engine.recording import Line
from tenfold.engine.replay import replay
from tenfold.fleet.fleet import Fleet, FleetView
from tenfold.journal.read import lines_between, writers
from tenfold.journal.snapshots import restore
from tenfold.journal.store import open_store
from tenfold.model.actions import Action
from tenfold.model.decision import Decision
from tenfold.model.events import ActionOrdered, Event
from tenfold.model.policy.policy import Policy
from tenfold.model.units import Millis

CUT = "cut off"
"""The name that stands for the decider of a cycle whose record is gone."""


def difference(journal: Path, policy: Policy) -> str:
    """Say where a replay leaves its record; empty where it does not."""
    store = open_store(str(journal))
    try:
        offset = [writer.first_seq for writer in writers(store)]
        lines = list(closed(lines_between(store), offset))
        fleet = restore(store).fleet
    finally:
        store.close()
    cycles = [line for line in lines if isinstance(line, Cycle)]
    found = replay(lines, _Unwoken(placing_decider(policy), cycles))
    if found.difference is not None:
        return f"cycle {found.difference.cycle}: {found.difference.sentence}"
    same = fleet_digest(found.fleet) == fleet_digest(fleet)
    return "" if same else "the replay ends with another fleet than the journal"


def closed(lines: Iterator[Line], offset: Sequence[int]) -> Iterator[Line]:
    """Yield lines with a record for each cycle that a kill cut off after its orders."""
    fleet, seq = Fleet(), 0
    open_orders: list[Action] = []
    cut: list[Action] = []
    now_ms = Millis(0)
    for line in lines:
        if isinstance(line, Cycle):
            # What was cut off stands in the next record, too.
            yield replace(line, actions=line.actions[len(cut) :]) if cut else line
            open_orders, cut = [], []
            continue
        seq += 1
        if seq in offset and open_orders:
            waits, runs = len(fleet.pending), len(fleet.running)
            yield Cycle(now_ms, CUT, fleet.version, waits, runs, tuple(open_orders), None)
            cut, open_orders = [*cut, *open_orders], []
        yield line
        fleet.apply(line)
        now_ms = line.at_ms
        if isinstance(line, ActionOrdered):
            open_orders.append(line.action)


class _Unwoken:
    """A decider that does not say when to be woken where the record does not either."""

    def __init__(self, decider: Decider, cycles: Sequence[Cycle]) -> None:
        self.name = decider.name
        self._decider = decider
        self._cycles = iter(cycles)

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        decision = self._decider.decide(view, now_ms, news)
        is_cut = next(self._cycles).decider == CUT
        return Decision(decision.actions, None) if is_cut else decision
