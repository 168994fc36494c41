"""The book of waits: follows a run, and learns how far its own forecasts may be trusted.

Each wait that is followed gets a P50 and a P90 when it begins. Once it is known whether the
job started by then, the share of waits that P50 or P90 is read at moves a step: up where the
job was late, down where it was not, in such proportion that steps cancel out when half, or
nine in ten, start in time. So the shares hold in the long run whatever the policy does.

Nothing here is known before it happened, and nothing costs a run without a book. A wait
begins when a moment is over and the job is still pending: one that displaces others starts
within the moment of its submission and never waits. A start counts when it is ordered.
"""

from collections import deque
from heapq import heapify, heappop, heappush
from math import log2

from msgspec import Struct

from tenfold.engine.loop import Decider
from tenfold.fleet.fleet import NEVER_RAN, Fleet, FleetView
from tenfold.model.actions import RefuseJob, StartJob
from tenfold.model.decision import Decision
from tenfold.model.ids import JobId
from tenfold.model.job import WHOLE, Job
from tenfold.model.units import HOUR, MINUTE, Millis
from tenfold.study.eta_waits import SHORTEST_MS, Traits, Waits

SHARES = (0.5, 0.9)
STEPS = (0.05, 0.12)
"""Halvings by which one late start moves the bound, less what those in time take back."""
STEADY, SMALLEST_STEP = 3_000, 0.25
"""After so many bounds were judged, steps shrink with their number, to this part at least:
the longer the record, the less a burst of waits that share one fate should say."""
LEAST_BITS, MOST_BITS = 0.02, (4.0, 12.0)
"""Many bounds may pass unmet before the first is judged; steps must end somewhere."""
COLD = (-1.0, 2.0)
"""Before anything was seen: half the pace of the queue, and four times it."""
FARTHEST = log2(100 * 365 * 24 * HOUR)
AGAIN = 2.0
"""A job that was displaced is as far from one that never ran as four times its size."""
STARTS = 1_024
FEWEST_STARTS, MOST_STARTS = 20, 1_000
FOLLOWED = 10_000
"""Waits followed at once; the next ones are let go."""
SLACK = 1_000
UNFOLLOWED = -1


class Outcome(Struct, frozen=True, kw_only=True):
    """What was forecast when a wait began, and when it was over."""

    job_id: JobId
    first: bool
    """The job had never run before."""
    began_ms: Millis
    p50_ms: int
    p90_ms: int
    started_ms: Millis


class _Followed(Struct, frozen=True):
    job: Job
    first: bool
    began_ms: Millis
    traits: Traits
    bounds: tuple[int, int]


class EtaBook:
    """Follows a run as a witness. `every` thins out the waits that are followed."""

    def __init__(self, *, every: int = 1, outcomes: int = 1_000) -> None:
        self.outcomes: deque[Outcome] = deque(maxlen=outcomes)
        """The latest waits that ended in a start."""
        self._every = every
        self._met = 0
        self._judged = {False: 0, True: 0}
        self._waits = Waits()
        self._bits = {again: [-log2(1 - share) for share in SHARES] for again in (False, True)}
        """Halvings at which P50 and P90 are read, for jobs that never ran and for others."""
        self._starts: deque[int] = deque(maxlen=STARTS)
        self._kinds: dict[tuple[str, int], int] = {}
        self._waiting: dict[JobId, int] | None = None
        """Every job that waits, with the number of its wait; None before the first cycle."""
        self._followed: dict[int, _Followed] = {}
        self._due: list[tuple[int, int, int]] = []
        """Bounds to come: (ms, number of the wait, place in `SHARES`)."""

    @property
    def known(self) -> int:
        """Waits that forecasts now rest on."""
        return self._waits.known

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        """Take note of starts, of bounds that passed, and of new waits."""
        self._pass_bounds(now_ms)
        pending = fleet.pending
        back: dict[JobId, None] = {}
        for action in decision.actions:
            if isinstance(action, StartJob):
                if action.job_id in pending:
                    back[action.job_id] = None
                else:
                    self._starts.append(now_ms)
                    self._leave(action.job_id, now_ms, started=True)
            elif isinstance(action, RefuseJob):
                self._leave(action.job_id, now_ms, started=False)
        if decision.wake_at_ms == now_ms:
            return
        if self._waiting is None:
            # How long these have waited, and what for, nobody saw.
            self._waiting = dict.fromkeys(pending, UNFOLLOWED)
            return
        for job in self._newly(fleet, back):
            self._begin(fleet, job, now_ms)
        if len(self._waiting) != len(pending):
            self._reconcile(fleet, now_ms)

    def forecast(self, view: FleetView, job: Job, now_ms: Millis) -> tuple[int, int]:
        """Return P50 and P90 of the moment at which a waiting job starts."""
        number = (self._waiting or {}).get(job.id, UNFOLLOWED)
        followed = self._followed.get(number)
        if followed is not None:
            return self._bounds(followed.traits, followed.began_ms, now_ms)
        past = view.past.get(job.id)
        began_ms = past.stopped_ms if past else job.submitted_ms
        return self._bounds(self._traits(view, job), min(began_ms, now_ms), now_ms)

    def _bounds(self, traits: Traits, began_ms: int, now_ms: int) -> tuple[int, int]:
        curve = self._waits.curve(traits, now_ms)
        waited_ms = now_ms - began_ms
        if curve is None:
            logs = [max(traits.pace, log2(max(1, waited_ms))) + step for step in COLD]
        else:
            logs = [curve.wait(bits, waited_ms) for bits in self._bits[traits.again > 0]]
        p50, p90 = (began_ms + round(2 ** min(log, FARTHEST)) for log in logs)
        p50 = max(p50, now_ms)
        return p50, max(p50, p90)

    def _traits(self, view: FleetView, job: Job) -> Traits:
        shape, pending = job.shape, max(1, len(view.pending))
        past = view.past.get(job.id, NEVER_RAN)
        kin = self._kinds.setdefault((job.team, job.priority), len(self._kinds))
        return Traits(
            gpus=log2(max(shape.gpus, shape.milli / WHOLE, 1 / 8)),
            again=AGAIN if past.runs else 0.0,
            ran=log2(1 + past.ran_ms / MINUTE),
            pending=log2(pending),
            pace=log2(self._pace_ms(pending)),
            kin=kin,
        )

    def _pace_ms(self, pending: int) -> float:
        """Return how long starting as many as wait takes, as starts went of late."""
        count = min(len(self._starts), max(FEWEST_STARTS, min(pending, MOST_STARTS)))
        if not count:
            return float(HOUR)
        took_ms = self._starts[-1] - self._starts[-count]
        return max(SHORTEST_MS, pending * took_ms / count)

    def _newly(self, fleet: Fleet, back: dict[JobId, None]) -> list[Job]:
        """Return who began to wait: the last of those pending, for they are kept in order."""
        waiting = self._waiting or {}
        new: list[Job] = []
        for job in reversed(fleet.pending.values()):
            if job.id not in waiting:
                new.append(job)
            elif job.id not in back:
                break
        return new[::-1]

    def _begin(self, view: FleetView, job: Job, now_ms: Millis) -> None:
        assert self._waiting is not None
        self._met += 1
        if self._met % self._every or len(self._followed) >= FOLLOWED:
            self._waiting[job.id] = UNFOLLOWED
            return
        traits = self._traits(view, job)
        bounds = self._bounds(traits, now_ms, now_ms)
        number = self._waiting[job.id] = self._waits.begin(traits, now_ms)
        self._followed[number] = _Followed(job, job.id not in view.past, now_ms, traits, bounds)
        for place, bound in enumerate(bounds):
            heappush(self._due, (bound, number, place))
        if len(self._due) > 4 * len(self._followed) + SLACK:
            # Bounds of jobs that started long before them would pile up.
            self._due = [due for due in self._due if due[1] in self._followed]
            heapify(self._due)

    def _leave(self, job_id: JobId, now_ms: Millis, *, started: bool) -> None:
        number = (self._waiting or {}).pop(job_id, UNFOLLOWED)
        followed = self._followed.pop(number, None)
        if followed is None:
            return
        self._waits.end(number, now_ms, started=started)
        if not started or now_ms == followed.began_ms:
            return
        for place, bound in enumerate(followed.bounds):
            if now_ms <= bound:
                self._learn(followed, place, late=False)
        p50_ms, p90_ms = followed.bounds
        self.outcomes.append(
            Outcome(
                job_id=job_id,
                first=followed.first,
                began_ms=followed.began_ms,
                p50_ms=p50_ms,
                p90_ms=p90_ms,
                started_ms=now_ms,
            )
        )

    def _pass_bounds(self, now_ms: Millis) -> None:
        """Count those late who still wait after their bound."""
        due = self._due
        while due and due[0][0] < now_ms:
            _, number, place = heappop(due)
            if (followed := self._followed.get(number)) is not None:
                self._learn(followed, place, late=True)

    def _learn(self, followed: _Followed, place: int, *, late: bool) -> None:
        again = not followed.first
        self._judged[again] += 1
        part = max(SMALLEST_STEP, min(1.0, STEADY / self._judged[again]))
        step = STEPS[place] * part * (late - (1 - SHARES[place]))
        bits = self._bits[again]
        bits[place] = min(max(bits[place] + step, LEAST_BITS), MOST_BITS[place])

    def _reconcile(self, view: FleetView, now_ms: Millis) -> None:
        """Let go of jobs that were taken back, and meet those that were overlooked."""
        assert self._waiting is not None
        for job_id in [job_id for job_id in self._waiting if job_id not in view.pending]:
            self._leave(job_id, now_ms, started=False)
        for job_id in view.pending:
            self._waiting.setdefault(job_id, UNFOLLOWED)
