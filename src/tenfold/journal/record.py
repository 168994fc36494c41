"""A journal as a record to be replayed: read while others write, and never written.

Where events were moved into bundles, the record begins with the snapshot that they end with.
What is read ends at one event, whatever is written meanwhile. Orders at that end whose cycle is
not written yet are closed as those of a controller that was killed.
"""

from collections.abc import Sequence
from statistics import median

from msgspec import UNSET, Struct
from sqlalchemy import Connection, select

from tenfold.engine.decision_log import Cycle
from tenfold.engine.digest import fleet_digest
from tenfold.engine.policy_spans import PolicySpan
from tenfold.engine.recording import Line, events_of
from tenfold.files.records.replay_bundle import Bundle, BundleEnd, BundleHeader
from tenfold.fleet.fleet import Fleet
from tenfold.fleet.image import image_of
from tenfold.journal.policies import stretches_from
from tenfold.journal.read import event_pages, lines_between
from tenfold.journal.snapshots import exported_until, fleet_at, snapshots_of
from tenfold.journal.store import Store, last_seq
from tenfold.journal.tables import EXPORTS
from tenfold.model.actions import Action, StartJob
from tenfold.model.errors import InputError
from tenfold.model.events import ActionOrdered, Event, JobStarted
from tenfold.model.ids import JobId
from tenfold.model.policy.policy import POLICIES, Policy


class JournalRecord(Struct, frozen=True, kw_only=True):
    """A record, and what its reader should know."""

    bundle: Bundle
    notes: tuple[str, ...] = ()


def record_of(store: Store, version: str = "") -> JournalRecord:
    """Return all that a journal tells of, up to the event that is the last one now.

    `version` is that of the program that reads it, for the header.
    """
    with store.reading() as connection:
        last, exported = last_seq(connection), exported_until(connection)
        base, notes = _base(store, connection, exported)
        first = (base.version if base is not None else 0) + 1
        stretches = stretches_from(connection, first, last)
    image = UNSET if base is None else image_of(base)
    lines = list(lines_between(store, first, last))
    end = fleet_after(store, last, base)
    _close_interrupted(lines, end)
    stretches, named = _complete_stretches(lines, stretches)
    header = BundleHeader(
        tenfold=version,
        policy=stretches[-1].policy if stretches else Policy(),
        settings={"start_delay_ms": _start_delay_ms(lines)},
        nodes=len(end.nodes),
        gpus=sum(node.gpus for node in end.nodes.values()),
        stretches=tuple(stretches),
        base=image,
    )
    cycles = sum(isinstance(line, Cycle) for line in lines)
    counted = BundleEnd(events=len(lines) - cycles, cycles=cycles, fleet=fleet_digest(end))
    bundle = Bundle(file=str(store.file or store.name), header=header, lines=lines, end=counted)
    return JournalRecord(bundle=bundle, notes=(*notes, *named))


def _base(store: Store, connection: Connection, exported: int) -> tuple[Fleet | None, list[str]]:
    """Return the fleet that the events begin with, and what is said about it."""
    if not exported:
        return None, []
    for seq in reversed(snapshots_of(connection)):
        found = fleet_at(store, seq)
        if isinstance(found, Fleet) and seq >= exported:
            files = connection.execute(select(EXPORTS.c.file).order_by(EXPORTS.c.last_seq))
            said = f"events up to {seq:,} are not in the journal any more: begun from a snapshot"
            return found, [
                f"{said}; they are in {', '.join(f'`{file}`' for file in files.scalars())}"
            ]
    raise InputError(
        "journal-begins-late",
        f"events up to {exported:,} were exported, and no snapshot of the journal holds",
        "replay the bundles that they were moved into, or restore a backup",
    )


def fleet_after(store: Store, last: int, base: Fleet | None = None) -> Fleet:
    """Return the fleet after an event as a restart would find it: by the newest snapshot."""
    with store.reading() as connection:
        seqs = [seq for seq in snapshots_of(connection) if seq <= last]
    found = base.fork() if base is not None else Fleet()
    for seq in seqs:
        snapshot = fleet_at(store, seq)
        if isinstance(snapshot, Fleet):
            found = snapshot
            break
    for page in event_pages(store, found.version, last):
        try:
            found.apply_all([event for _, event in page])
        except (KeyError, AssertionError) as error:
            raise InputError(
                "impossible-fact",
                f"an event from {page[0][0]:,} to {page[-1][0]:,} cannot have happened: {error}",
                "restore the journal from a backup; it is not meant to be changed by hand",
            ) from None
    return found


def _close_interrupted(lines: list[Line], end: Fleet) -> None:
    """Close a cycle that has its orders and not its record, because it is under way."""
    orders = _open_orders(lines)
    if orders:
        actions: tuple[Action, ...] = tuple(order.action for order in orders)
        waits, runs = len(end.pending), len(end.running)
        cut = Cycle(orders[0].at_ms, "", end.version, waits, runs, actions, is_cut=True)
        lines.append(cut)


def _open_orders(lines: Sequence[Line]) -> list[ActionOrdered]:
    orders: list[ActionOrdered] = []
    for line in reversed(lines):
        if isinstance(line, Cycle):
            break
        if isinstance(line, ActionOrdered):
            orders.append(line)
    return orders[::-1]


def _complete_stretches(
    lines: Sequence[Line], stretches: Sequence[PolicySpan]
) -> tuple[list[PolicySpan], list[str]]:
    """Return stretches that begin with the first cycle; where none was noted, by name alone."""
    until = stretches[0].first_cycle if stretches else None
    if until == 1 or (until is not None and not lines):
        return list(stretches), []
    named: list[PolicySpan] = []
    number = 0
    for line in lines:
        if not isinstance(line, Cycle):
            continue
        number += 1
        if until is not None and number >= until:
            break
        before = named[-1].policy.name if named else None
        for name in POLICIES:
            if line.decider == name != before:
                at = 1 if before is None else number
                first_event = 1 if before is None else line.version
                policy = Policy(name=name)
                named.append(PolicySpan(first_cycle=at, first_event=first_event, policy=policy))
    said = "by which policy was decided is not noted for the oldest cycles: taken by its name alone"
    return [*named, *stretches], [said] if named else []


def _start_delay_ms(lines: Sequence[Line]) -> int:
    """Return what a start took here, from its order to its members running: the median."""
    ordered: dict[JobId, int] = {}
    took: list[int] = []
    for event in events_of(lines):
        _note_start(event, ordered, took)
    return round(median(took)) if took else 0


def _note_start(event: Event, ordered: dict[JobId, int], took: list[int]) -> None:
    if isinstance(event, ActionOrdered):
        if isinstance(event.action, StartJob):
            ordered[event.action.job_id] = event.at_ms
    elif isinstance(event, JobStarted) and event.job_id in ordered:
        took.append(event.at_ms - ordered.pop(event.job_id))
