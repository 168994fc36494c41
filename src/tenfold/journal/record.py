"""A journal as a record for replay: read while it is being written, and never modified.

If events were moved to bundles, the record begins with the snapshot at their end. It ends at one
event, whatever is written meanwhile. Orders at the end whose cycle is not written yet are closed as
for a control plane that was killed.
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
    """A record, and notes for its reader."""

    bundle: Bundle
    notes: tuple[str, ...] = ()


def record_of(store: Store, version: str = "") -> JournalRecord:
    """Return everything in a journal up to the current last event.

    `version` is that of the reading program, for the header.
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
    """Return the fleet before the first event, and a note about it."""
    if not exported:
        return None, []
    for seq in reversed(snapshots_of(connection)):
        found = fleet_at(store, seq)
        if isinstance(found, Fleet) and seq >= exported:
            files = connection.execute(select(EXPORTS.c.file).order_by(EXPORTS.c.last_seq))
            moved = ", ".join(f"`{file}`" for file in files.scalars())
            return found, [
                f"events 1 to {seq:,} were moved to {moved}; the replay starts from a snapshot"
            ]
    raise InputError(
        "journal-begins-late",
        f"events up to {exported:,} were exported, and the journal has no intact snapshot",
        "replay the exported bundles, or restore a backup",
    )


def fleet_after(store: Store, last: int, base: Fleet | None = None) -> Fleet:
    """Return the fleet after an event, from the newest snapshot as a restart would."""
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
                f"one of the events {page[0][0]:,} to {page[-1][0]:,} contradicts others: {error}",
                "restore the journal from a backup; do not edit it manually",
            ) from None
    return found


def _close_interrupted(lines: list[Line], end: Fleet) -> None:
    """Close a cycle in progress, which has orders but no record yet."""
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
    """Return spans from the first cycle on; unrecorded policies are assumed by name."""
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
    said = "the policy of the oldest cycles was not recorded: assumed from its name"
    return [*named, *stretches], [said] if named else []


def _start_delay_ms(lines: Sequence[Line]) -> int:
    """Return the median start delay: from the order until all members run."""
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
