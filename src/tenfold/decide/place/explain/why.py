"""Why a pending job does not start: the first constraint that blocks it, with counts.

Constraints are checked in the order of the policy: the job's own terms, whether it can ever fit,
reservations, quotas and limits, windows, free capacity, fair share order. Answers are cached by
team, priority and shape, so a thousand equivalent jobs cost one.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from tenfold.decide.place.explain.holders import (
    Holders,
    QuotaUsage,
    UsageIndex,
    holders_on,
    quota_usage,
)
from tenfold.decide.place.explain.quota import (
    is_fleet_full,
    obstacles,
    open_types,
    quota_reason,
)
from tenfold.decide.place.explain.settled import HeldBack, Refused, Reserved, Settled, Starts
from tenfold.decide.place.explain.windows import (
    hours_reason,
    off_peak_from,
    own_windows,
    window_reason,
)
from tenfold.decide.place.queue.pending_queues import JobClass
from tenfold.decide.place.quota.allocations import PLAIN
from tenfold.decide.place.state.scheduler_state import ReservedGang, SchedulerState
from tenfold.fleet.capacity import Slots
from tenfold.fleet.obstacle import FreeCapacity, fits, free_capacity, needs, obstacle_to
from tenfold.model.job.job import BackfillReservation, Job, Shape
from tenfold.model.reason import JobRef, Reason, joined
from tenfold.model.units import Millis


def governed_free_capacity(
    state: SchedulerState, shape: Shape, accelerators: Sequence[str]
) -> FreeCapacity:
    """Return the counts for the kind of node, among these types, that comes closest."""
    kept = (slot.node for each in state.reserved.values() for slot in each.reservation.slots)
    return free_capacity(state.capacity, shape, accelerators, kept, state.windows.open)


def capacity_reason(
    state: SchedulerState, shape: Shape, accelerators: Sequence[str], room: FreeCapacity
) -> Reason:
    """Return the first thing that blocks a shape which its team's quota allows."""
    if fits(state.capacity, shape, accelerators):
        return Reason("others-first")
    if state.reserved and _fits_unreserved(state, shape, accelerators):
        first = min(state.reserved.values(), key=lambda each: each.reservation.start_ms)
        fields = needs(room)
        fields["kept"], fields["job"] = room.nodes_kept, JobRef(first.job.id, first.job.team)
        fields["more"] = len(state.reserved) - 1
        return Reason("kept-for-a-promise", fields)
    return obstacle_to(state.capacity, shape, accelerators, room)


def _fits_unreserved(state: SchedulerState, shape: Shape, accelerators: Sequence[str]) -> bool:
    """Return whether a shape would fit if nothing were reserved for others."""
    with state.scratch.trial():
        for each in state.reserved.values():
            state.scratch.unhide(state.capacity.around(each.reservation.slots))
        return fits(state.capacity, shape, accelerators)


STARTS = Reason("starts-now")


class Blocked(Struct, frozen=True, kw_only=True):
    """What blocks a pending job."""

    reason: Reason
    room: FreeCapacity | None = None
    holders: Holders = Holders()
    standing: tuple[QuotaUsage, ...] = ()
    promise: BackfillReservation | None = None
    slots: Slots = ()
    """Where it starts, if it does."""
    ahead: int = 0
    """Jobs of its team, priority and shape that are ahead of it."""
    is_repair: bool = False
    """It lost a node to a failure, and starts before all others."""
    not_before_ms: Millis | None = None
    """It cannot start earlier because of a window or off-peak hours, whatever is released."""


class Reasons:
    """Reasons for the jobs that are pending at one moment."""

    def __init__(self, settled: Settled) -> None:
        self.settled = settled
        self._state = settled.state
        self._known: dict[tuple[object, ...], Blocked] = {}
        self._usage_index = UsageIndex(settled.state)

    def blocked(self, job: Job) -> Blocked:
        """Return what blocks a pending job."""
        settled = self.settled
        job = self._state.residency.apply(job)
        outcome = settled.outcome(job)
        if isinstance(outcome, Starts):
            return Blocked(reason=STARTS, slots=outcome.slots, standing=self._quota_usage(job))
        if isinstance(outcome, Refused):
            return Blocked(reason=joined(outcome.reasons), standing=self._quota_usage(job))
        if isinstance(outcome, HeldBack):
            return self._held_back(job, outcome.reason)
        if isinstance(outcome, Reserved):
            return self._reserved(outcome.reserved)
        key = self._key(job)
        known = self._known.get(key)
        if known is None:
            with own_windows(settled, job):
                known = self._known[key] = self._queued(outcome.job_class, job)
        if outcome.is_repair:
            return replace(known, is_repair=True)
        return (
            replace(known, ahead=settled.ahead(job)) if len(outcome.job_class.queue) > 1 else known
        )

    def _key(self, job: Job) -> tuple[object, ...]:
        """Return a cache key: jobs with the same key have the same reason."""
        key = (job.team, job.priority, job.shape.key)
        if not self.settled.govern.windows:
            return key
        # Before a window, the time limit and whether the job can be stopped matter.
        return (*key, job.limit_ms, (job.terms or PLAIN).preemptible)

    def _queued(self, job_class: JobClass, job: Job) -> Blocked:
        state = self._state
        held = quota_usage(state, job_class)
        met = obstacles(state, job_class)
        binding = next((each for each in met if not is_fleet_full(state, each)), None)
        if binding is not None:
            limit = quota_reason(state, job_class, binding)
            reason = hours_reason(self.settled, job_class, binding, limit)
            return Blocked(
                reason=reason, holders=self._usage_index.under(binding[0]), standing=held
            )
        types = open_types(state, job_class) or [name for name, _ in job_class.options]
        room = governed_free_capacity(state, job_class.shape, types)
        window = window_reason(self.settled, job, types, room)
        if window is not None:
            return Blocked(
                reason=window.reason, room=room, standing=held, not_before_ms=window.not_before_ms
            )
        reason = capacity_reason(state, job_class.shape, types, room)
        if reason.code == "others-first" and met:
            # Reservations count as used before their gangs hold anything.
            reason = Reason("kept-for-a-promise")
        elif reason.code == "others-first" and self.settled.stops:
            reason = Reason("others-first", {"freeing": "yes"})
        return Blocked(
            reason=reason,
            room=room,
            holders=self._holders_of(job_class, types, room),
            standing=held,
        )

    def _held_back(self, job: Job, reason: Reason) -> Blocked:
        """Return which of its own terms holds a job back, and until when if known."""
        from_ms, now_ms = None, self.settled.now_ms
        if reason.code == "off-peak":
            from_ms = off_peak_from(self.settled.govern, now_ms)
        if from_ms is not None:
            reason = Reason("off-peak", {"in_ms": from_ms - now_ms})
        return Blocked(reason=reason, standing=self._quota_usage(job), not_before_ms=from_ms)

    def _holders_of(self, job_class: JobClass, types: list[str], room: FreeCapacity) -> Holders:
        where = job_class.shape.where
        if room.domain and where is not None:
            return holders_on(self._state, self._state.capacity.domains(where.within)[room.domain])
        return self._usage_index.of_types(types)

    def _reserved(self, reserved: ReservedGang) -> Blocked:
        state, reservation = self._state, reserved.reservation
        nodes = list(dict.fromkeys(slot.node for slot in reservation.slots))
        holders = holders_on(state, nodes)
        busy = sum(1 for node in nodes if any(True for _ in state.allocations.on(node)))
        return Blocked(
            reason=Reason("promised", {"nodes": len(nodes), "busy": busy}),
            holders=holders,
            standing=quota_usage(state, reserved.job_class),
            promise=reservation,
        )

    def _quota_usage(self, job: Job) -> tuple[QuotaUsage, ...]:
        return quota_usage(self._state, self.settled.class_of(job))
