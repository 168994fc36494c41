"""Elastic jobs: they start with what is free, grow when nothing waits, and shrink first."""

from collections.abc import Iterator

from msgspec.structs import replace

from tenfold.decide.place.allocate.session import Session
from tenfold.decide.place.queue.pending_queues import Option
from tenfold.decide.place.quota.allocations import Allocation
from tenfold.decide.place.state.scheduler_state import SchedulerState
from tenfold.fleet.capacity import Slots
from tenfold.model.actions import ResizeJob
from tenfold.model.fleet.constraints import Level
from tenfold.model.job.job import Run, Shape, Slot
from tenfold.model.job.terms import Terms
from tenfold.model.reason import Reason
from tenfold.model.units import MINUTE

GROW_MS = 10 * MINUTE
"""Elastic jobs grow at multiples of this interval, because each resize costs a restart."""
GROWN = Reason("grown")


def sizes(shape: Shape, terms: Terms) -> Iterator[Shape]:
    """Yield the sizes below its request that an elastic job may start with, largest first."""
    per = shape.gpus_per_node or 1
    gpus = shape.gpus
    while (gpus := max(gpus // 2 // per * per, terms.least_gpus)) < shape.gpus:
        yield _sized(shape, gpus)
        if gpus == terms.least_gpus:
            return


def _sized(shape: Shape, gpus: int) -> Shape:
    return replace(shape, gpus=gpus, key=f"{shape.key} as {gpus}")


def gpus_of(slots: Slots) -> int:
    """Return the number of GPUs in slots."""
    return sum(slot.gpus for slot in slots)


def grow(session: Session) -> None:
    """Grow elastic jobs into capacity that no pending job needs."""
    state, now_ms = session.state, session.now_ms
    if not state.allocations.elastic or state.resizing:
        return
    small = [allocation for allocation in state.elastic() if _may_grow(allocation)]
    if not small:
        return
    if now_ms % GROW_MS == 0:
        running = session.view.running
        runs = [running[one.job.id] for one in small if one.job.id in running]
        for run in sorted(runs, key=_started):
            slots = _grown(state, run) if run.becoming is None else None
            if slots is not None:
                session.actions.append(ResizeJob(run.job.id, slots, GROWN))
    # A job that is about to start also grows then, and no other event may come before.
    session.wakes.append(now_ms - now_ms % GROW_MS + GROW_MS)


def shrink(session: Session, shape: Shape, option: Option) -> Slots | None:
    """Shrink elastic jobs until a shape fits, and return its slots; None if it never fits."""
    scratch = session.state.scratch
    shrunk: dict[Run, Slots] = {}
    found: Slots | None = None
    with scratch.trial():
        for run, slots in _steps(session):
            surplus = _difference(shrunk.get(run, run.slots), slots)
            scratch.release(surplus, run.job.shape)
            shrunk[run] = slots
            found = scratch.claim_in(shape, option.accelerator)
            if found is not None:
                break
    if found is None:
        return None
    for run, slots in shrunk.items():
        why = Reason("shrunk", {"accelerator": option.accelerator})
        session.actions.append(ResizeJob(run.job.id, slots, why))
    return found


def _steps(session: Session) -> Iterator[tuple[Run, Slots]]:
    """Yield elastic runs one step smaller each time, down to their minimum, newest first."""
    for allocation in _shrinkable(session):
        run = session.view.running[allocation.job.id]
        least = _least(run)
        if len(run.slots) == 1:
            for gpus in range(run.slots[0].gpus - 1, least[0].gpus - 1, -1):
                yield run, (Slot(run.slots[0].node, gpus),)
        else:
            for members in range(len(run.slots) - 1, len(least) - 1, -1):
                yield run, run.slots[:members]


def _shrinkable(session: Session) -> list[Allocation]:
    """Return allocations of elastic jobs above their minimum, newest first."""
    running = session.view.running
    found = [
        allocation
        for allocation in session.state.elastic()
        if not allocation.stopping
        and (run := running.get(allocation.job.id)) is not None
        and run.becoming is None
        and gpus_of(_least(run)) < gpus_of(run.slots)
    ]
    return sorted(found, key=_newest)


def _least(run: Run) -> Slots:
    """Return the slots of a run at its minimum: fewer members, or fewer GPUs on its only node."""
    least = run.job.terms.least_gpus if run.job.terms else 0
    if len(run.slots) == 1:
        return (Slot(run.slots[0].node, max(least, 1)),)
    kept: list[Slot] = []
    for slot in run.slots:
        if kept and sum(each.gpus for each in kept) >= least:
            break
        kept.append(slot)
    return tuple(kept)


def _difference(slots: Slots, fewer: Slots) -> Slots:
    left = {slot.node: slot.gpus for slot in fewer}
    return tuple(
        Slot(slot.node, slot.gpus - left.get(slot.node, 0))
        for slot in slots
        if slot.gpus > left.get(slot.node, 0)
    )


def _may_grow(allocation: Allocation) -> bool:
    terms = allocation.job.terms
    return (
        terms is not None
        and gpus_of(allocation.slots) < terms.most_gpus
        and not allocation.stopping
    )


def _grown(state: SchedulerState, run: Run) -> Slots | None:
    """Claim the next size of a run and return all its slots; None where it cannot grow."""
    held = state.allocations.held[run.job.id]
    added = _added(state, run)
    if added is None or not state.capacity.has((added,), run.job.shape):
        return None
    amounts = state.amounts((added,), state.accelerator(added.node))
    if state.tree.obstacle(held.team, amounts) is not None:
        return None
    state.capacity.take((added,), run.job.shape)
    state.tree.add(held.team, amounts, 1)
    if run.slots[0].node == added.node:
        return (Slot(added.node, run.slots[0].gpus + added.gpus),)
    return (*run.slots, added)


def _added(state: SchedulerState, run: Run) -> Slot | None:
    """Return what a run adds next: GPUs on its only node, or one more member."""
    terms, shape, first = run.job.terms, run.job.shape, run.slots[0]
    assert terms is not None
    growth_left = terms.most_gpus - gpus_of(run.slots)
    node_index, number = state.capacity.place[first.node]
    if shape.gpus_per_node is None:
        more = min(growth_left, node_index.free[number]) if len(run.slots) == 1 else 0
        return Slot(first.node, more) if more and node_index.is_open[number] else None
    per = max(slot.gpus for slot in run.slots)
    where = shape.where
    level: Level = where.within if where is not None and where.how == "required" else ""
    domain_of = state.capacity.domain_of
    domain = domain_of(first.node, level) if level else ""
    mine = {slot.node for slot in run.slots}
    for other in node_index.each(per) if per <= growth_left else ():
        name = node_index.names[other]
        if name not in mine and (not level or domain_of(name, level) == domain):
            return Slot(name, per)
    return None


def _started(run: Run) -> tuple[int, int, int]:
    return run.started_ms, run.job.submitted_ms, run.job.seq


def _newest(allocation: Allocation) -> tuple[int, int, int]:
    return -allocation.started_ms, -allocation.job.submitted_ms, -allocation.job.seq
