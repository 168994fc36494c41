"""Backfill as Slurm does it: plan each job in order, and let later jobs use the gaps.

A job that cannot start now gets a reservation of whole nodes from the time at which enough
running jobs reach their limits. A job behind it may start only on nodes that no reservation
needs before its own limit, so it never delays a job planned before it.
"""

from bisect import bisect_right
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
    nodes: int
    """One bit for each node; a pass assigns the bits."""


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
        """By end."""
        self._ends_ms: list[int] = []
        self._bits: dict[NodeId, int] = {}
        self._fits: dict[tuple[str, NodeFilter, int], tuple[int, Slots] | None] = {}
        """When and where a shape first fits beside some reserved nodes, until a job starts."""
        self._beyond: dict[tuple[str, NodeFilter, Millis], bool] = {}
        """What cannot be planned within the window, until a job starts or is planned."""

    def place_or_reserve(self, candidate: Candidate) -> Slots | None:
        """Return where the job starts now; otherwise plan it within the window."""
        key = (candidate.job.shape.key, candidate.in_partition, candidate.limit_ms)
        if key in self._beyond:
            return None
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
                self._reserve(self._reservation(begin_ms, candidate, slots))
                return None
            break
        self._beyond[key] = True
        return None

    def could_start(self, candidate: Candidate) -> bool:
        """Return whether the job fits now on nodes not reserved within its limit."""
        reserved = self._reserved_nodes(self._now_ms, self._now_ms + candidate.limit_ms)
        usable = self._usable(candidate.in_partition, reserved)
        return choose(self._capacity, candidate.job.shape, usable) is not None

    def _usable(self, in_partition: NodeFilter, reserved: int) -> NodeFilter:
        if not reserved:
            return in_partition
        nodes = {node: True for node, bit in self._bits.items() if bit & reserved}
        return lambda node: node not in nodes and in_partition(node)

    def _try(
        self, candidate: Candidate, from_ms: int
    ) -> tuple[tuple[int, Slots] | None, int | None]:
        """Return the start found from `from_ms` on, or None and the next time to try."""
        later = bisect_right(self._ends_ms, from_ms)
        later_ms = self._ends_ms[later] if later < len(self._ends_ms) else None
        found = self._fit(candidate, self._reserved_nodes(from_ms, from_ms + candidate.limit_ms))
        if found is None:
            return None, later_ms
        begin_ms, slots = max(from_ms, found[0]), found[1]
        if begin_ms <= self._now_ms:
            return (begin_ms, slots), None
        if later_ms is not None and begin_ms > later_ms:
            # Nodes reserved for others until then may be available sooner.
            return None, later_ms
        planned = self._reservation(begin_ms, candidate, slots)
        if planned.nodes & self._reserved_nodes(planned.begin_ms, planned.end_ms):
            again_ms = begin_ms
            if begin_ms == from_ms:
                again_ms += max(self._horizon.resolution_ms, SECOND)
            return None, again_ms
        return (begin_ms, slots), None

    def _reserved_nodes(self, begin_ms: int, end_ms: int) -> int:
        """Return the nodes reserved at any time in the interval."""
        nodes = 0
        for place in range(bisect_right(self._ends_ms, begin_ms), len(self._ends_ms)):
            reserved_ms, _, reserved = self.reservations[place]
            if reserved_ms <= end_ms:
                nodes |= reserved
        return nodes

    def _fit(self, candidate: Candidate, reserved: int) -> tuple[int, Slots] | None:
        """Return when and where the job first fits beside reserved nodes."""
        shape, in_partition = candidate.job.shape, candidate.in_partition
        key = (shape.key, in_partition, reserved)
        if key not in self._fits:
            self._fits[key] = self._first_fit(shape, self._usable(in_partition, reserved))
        return self._fits[key]

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
        self._fits.clear()
        self._beyond.clear()

    def _reserve(self, reservation: Reservation) -> None:
        place = bisect_right(self._ends_ms, reservation.end_ms)
        self.reservations.insert(place, reservation)
        self._ends_ms.insert(place, reservation.end_ms)
        self._beyond.clear()

    def _reservation(self, begin_ms: int, candidate: Candidate, slots: Slots) -> Reservation:
        step = max(1, self._horizon.resolution_ms)
        end_ms = begin_ms + candidate.limit_ms
        nodes = 0
        for slot in slots:
            nodes |= self._bits.setdefault(slot.node, 1 << len(self._bits))
        return Reservation(begin_ms // step * step, -(-end_ms // step) * step, nodes)
