"""Why a waiting job does not start: the first constraint in its way, with counts.

The order is that in which the decider asks: the job's own terms, whether it can ever be
held, what was promised, quotas and limits, windows, room, and whose turn it is. Answers are
kept by team, priority and shape, so that a thousand jobs alike cost one.
"""

from msgspec import Struct
from msgspec.structs import replace

from tenfold.decide.place.explain.capacity import governed_room, room_reason
from tenfold.decide.place.explain.holders import (
    Census,
    Holders,
    Standing,
    holders_on,
    standings,
)
from tenfold.decide.place.explain.quota import (
    is_all_taken,
    obstacles,
    open_types,
    quota_reason,
)
from tenfold.decide.place.explain.settled import HeldBack, Kept, Never, Settled, Starts
from tenfold.decide.place.explain.windows import (
    hours_reason,
    off_peak_from,
    own_windows,
    window_reason,
)
from tenfold.decide.place.queue.pending_queues import Class
from tenfold.decide.place.quota.allocations import PLAIN
from tenfold.decide.place.state.scheduler_state import Promised
from tenfold.fleet.capacity import Slots
from tenfold.fleet.obstacle import Room
from tenfold.model.job.job import Job, Promise
from tenfold.model.reason import Reason, joined
from tenfold.model.units import Millis

STARTS = Reason("starts-now")


class Blocked(Struct, frozen=True, kw_only=True):
    """What stands between a waiting job and its start."""

    reason: Reason
    room: Room | None = None
    holders: Holders = Holders()
    standing: tuple[Standing, ...] = ()
    promise: Promise | None = None
    slots: Slots = ()
    """Where it starts, if it does."""
    ahead: int = 0
    """Jobs of its team, priority and shape that go before it."""
    is_repair: bool = False
    """It was broken by a failure, and goes before all others."""
    not_before_ms: Millis | None = None
    """A window or its hours let it start no sooner, whatever is given back."""


class Reasons:
    """Reasons for the jobs that wait at one moment."""

    def __init__(self, settled: Settled) -> None:
        self.settled = settled
        self._books = settled.books
        self._known: dict[tuple[object, ...], Blocked] = {}
        self._census = Census(settled.books)

    def blocked(self, job: Job) -> Blocked:
        """Return what is in the way of a waiting job."""
        settled = self.settled
        fate = settled.fate(job)
        if isinstance(fate, Starts):
            return Blocked(reason=STARTS, slots=fate.slots, standing=self._standing(job))
        if isinstance(fate, Never):
            return Blocked(reason=joined(fate.reasons), standing=self._standing(job))
        if isinstance(fate, HeldBack):
            return self._held_back(job, fate.reason)
        if isinstance(fate, Kept):
            return self._promised(fate.promised)
        key = self._key(job)
        known = self._known.get(key)
        if known is None:
            with own_windows(settled, job):
                known = self._known[key] = self._in_line(fate.cls, job)
        if fate.is_repair:
            return replace(known, is_repair=True)
        return replace(known, ahead=settled.ahead(job)) if len(fate.cls.line) > 1 else known

    def _key(self, job: Job) -> tuple[object, ...]:
        """Return what tells a job's reason from those of others."""
        key = (job.team, job.priority, job.shape.key)
        if not self.settled.govern.windows:
            return key
        # Before a window it counts how long a job may run, and whether it can be stopped.
        return (*key, job.limit_ms, (job.terms or PLAIN).preemptible)

    def _in_line(self, cls: Class, job: Job) -> Blocked:
        books = self._books
        held = standings(books, cls)
        met = obstacles(books, cls)
        binding = next((each for each in met if not is_all_taken(books, each)), None)
        if binding is not None:
            told = quota_reason(books, cls, binding)
            reason = hours_reason(self.settled, cls, binding, told)
            return Blocked(reason=reason, holders=self._census.under(binding[0]), standing=held)
        types = open_types(books, cls) or [name for name, _ in cls.options]
        room = governed_room(books, cls.shape, types)
        window = window_reason(self.settled, job, types, room)
        if window is not None:
            return Blocked(
                reason=window.reason, room=room, standing=held, not_before_ms=window.not_before_ms
            )
        reason = room_reason(books, cls.shape, types, room)
        if reason.code == "others-first" and met:
            # Promises count as held before their gangs hold anything.
            reason = Reason("kept-for-a-promise")
        elif reason.code == "others-first" and self.settled.stops:
            reason = Reason("others-first", {"freeing": "yes"})
        return Blocked(
            reason=reason, room=room, holders=self._holding(cls, types, room), standing=held
        )

    def _held_back(self, job: Job, reason: Reason) -> Blocked:
        """Return which of its own terms holds a job back, and until when if that is known."""
        from_ms, now_ms = None, self.settled.now_ms
        if reason.code == "off-peak":
            from_ms = off_peak_from(self.settled.govern, now_ms)
        if from_ms is not None:
            reason = Reason("off-peak", {"in_ms": from_ms - now_ms})
        return Blocked(reason=reason, standing=self._standing(job), not_before_ms=from_ms)

    def _holding(self, cls: Class, types: list[str], room: Room) -> Holders:
        where = cls.shape.where
        if room.domain and where is not None:
            return holders_on(self._books, self._books.capacity.domains(where.within)[room.domain])
        return self._census.of_types(types)

    def _promised(self, promised: Promised) -> Blocked:
        books, promise = self._books, promised.promise
        nodes = list(dict.fromkeys(slot.node for slot in promise.slots))
        holders = holders_on(books, nodes)
        busy = sum(1 for node in nodes if any(True for _ in books.holdings.on(node)))
        return Blocked(
            reason=Reason("promised", {"nodes": len(nodes), "busy": busy}),
            holders=holders,
            standing=standings(books, promised.cls),
            promise=promise,
        )

    def _standing(self, job: Job) -> tuple[Standing, ...]:
        return standings(self._books, self.settled.class_of(job))
