"""Backfill as Slurm does it: plan each job in order, and let later jobs use the gaps.

A job that cannot start now gets a reservation of whole nodes from the time at which enough
running jobs reach their limits. A job behind it may start only on nodes that no reservation
needs before its own limit, so it never delays a job planned before it.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tenfold.decide.place.slurm.select import NodeFilter, choose
from tenfold.fleet.capacity import Capacity, Slots
from tenfold.fleet.scratch import Scratch
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Job, Shape
from tenfold.model.units import SECOND, Millis

STEP_MS = 30 * SECOND
"""Slurm releases jobs that end close together in one step: this far apart, then doubling."""


class Candidate(NamedTuple):
    """A pending job as backfill sees it."""

    job: Job
    limit_ms: Millis
    in_partition: NodeFilter


class Ending(NamedTuple):
    """What a running job releases at its limit at the latest."""

    at_ms: int
    place: tuple[int, int, JobId]
    """When it was submitted, to break ties."""
    slots: Slots
    shape: Shape


class Reservation(NamedTuple):
    """Whole nodes reserved for a planned job."""

    begin_ms: int
    end_ms: int
    nodes: frozenset[NodeId]


class Horizon(NamedTuple):
    """How far ahead and how finely to plan."""

    window_ms: Millis
    resolution_ms: Millis


class BackfillPass:
    """One pass over the queue. Starts are allocated on `capacity`."""

    def __init__(
        self, capacity: Capacity, endings: Sequence[Ending], horizon: Horizon, now_ms: Millis
    ) -> None:
        self._capacity = capacity
        self._endings = sorted(endings, key=lambda one: one[:2])
        self._horizon = horizon
        self._now_ms = now_ms
        self.reservations: list[Reservation] = []

    def place_or_reserve(self, candidate: Candidate) -> Slots | None:
        """Return where the job starts now; otherwise plan it within the window."""
        start_ms: int | None = self._now_ms
        while start_ms is not None and start_ms <= self._now_ms + self._horizon.window_ms:
            found, start_ms = self._try(candidate, start_ms)
            if found is None:
                continue
            begin_ms, slots = found
            if begin_ms <= self._now_ms:
                self._start(candidate, slots)
                return slots
            if begin_ms <= self._now_ms + self._horizon.window_ms:
                self.reservations.append(self._reservation(begin_ms, candidate, slots))
            return None
        return None

    def could_start(self, candidate: Candidate) -> bool:
        """Return whether the job fits now on nodes not reserved within its limit."""
        usable = self._usable(candidate, self._now_ms)
        return choose(self._capacity, candidate.job.shape, usable) is not None

    def _usable(self, candidate: Candidate, from_ms: int) -> NodeFilter:
        reserved = self._reserved_nodes(from_ms, from_ms + candidate.limit_ms)
        in_partition = candidate.in_partition
        if not reserved:
            return in_partition
        return lambda node: in_partition(node) and node not in reserved

    def _try(
        self, candidate: Candidate, from_ms: int
    ) -> tuple[tuple[int, Slots] | None, int | None]:
        """Return the start found from `from_ms` on, or None and the next time to try."""
        later_ms = min((r.end_ms for r in self.reservations if r.end_ms > from_ms), default=None)
        found = self._first_fit(candidate.job.shape, self._usable(candidate, from_ms))
        if found is None:
            return None, later_ms
        begin_ms, slots = max(from_ms, found[0]), found[1]
        if begin_ms <= self._now_ms:
            return (begin_ms, slots), None
        if later_ms is not None and begin_ms > later_ms:
            # Nodes reserved for others until then may be available sooner.
            return None, later_ms
        planned = self._reservation(begin_ms, candidate, slots)
        if not planned.nodes.isdisjoint(self._reserved_nodes(planned.begin_ms, planned.end_ms)):
            again_ms = begin_ms
            if begin_ms == from_ms:
                again_ms += max(self._horizon.resolution_ms, SECOND)
            return None, again_ms
        return (begin_ms, slots), None

    def _reserved_nodes(self, begin_ms: int, end_ms: int) -> frozenset[NodeId]:
        """Return the nodes reserved at any time in the interval."""
        return frozenset[NodeId]().union(
            *(
                one.nodes
                for one in self.reservations
                if one.begin_ms <= end_ms and one.end_ms > begin_ms
            )
        )

    def _first_fit(self, shape: Shape, usable: NodeFilter) -> tuple[int, Slots] | None:
        """Return when the job fits on these nodes as running jobs end, and where."""
        capacity = self._capacity
        slots = choose(capacity, shape, usable)
        if slots is not None:
            return self._now_ms, slots
        scratch = Scratch(capacity)
        with scratch.trial():
            for group in self._groups(usable):
                for one in group:
                    scratch.release(one.slots, one.shape)
                slots = choose(capacity, shape, usable)
                if slots is not None:
                    return group[-1].at_ms, slots
        return None

    def _groups(self, usable: NodeFilter) -> Iterator[list[Ending]]:
        """Yield the running jobs on these nodes by end, in steps that double.

        The steps begin at the end of the first job, rounded up. Jobs on other nodes are
        skipped, but only a job on these nodes closes a step; Slurm does the same.
        """
        ends, reach_ms, barrier_ms = self._endings, STEP_MS, -1
        group: list[Ending] = []
        for place, one in enumerate(ends):
            if not any(usable(slot.node) for slot in one.slots):
                continue
            if barrier_ms < 0:
                barrier_ms = (one.at_ms // STEP_MS + 1) * STEP_MS
            group.append(one)
            later = ends[place + 1].at_ms if place + 1 < len(ends) else None
            if later is not None and later > barrier_ms + reach_ms:
                while later > barrier_ms + reach_ms:
                    reach_ms *= 2
                yield group
                group = []
        if group:
            yield group

    def _start(self, candidate: Candidate, slots: Slots) -> None:
        job = candidate.job
        self._capacity.take(slots, job.shape)
        self._endings.append(
            Ending(
                self._now_ms + candidate.limit_ms,
                (job.submitted_ms, job.seq, job.id),
                slots,
                job.shape,
            )
        )
        self._endings.sort(key=lambda one: one[:2])

    def _reservation(self, begin_ms: int, candidate: Candidate, slots: Slots) -> Reservation:
        step = max(1, self._horizon.resolution_ms)
        end_ms = begin_ms + candidate.limit_ms
        return Reservation(
            begin_ms // step * step,
            -(-end_ms // step) * step,
            frozenset(slot.node for slot in slots),
        )
