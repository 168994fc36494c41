"""A world by chance: anything that may happen does, at any moment.

Nodes join late, are cordoned and lost; jobs are taken back while they wait; orders are refused,
or take effect much later; runs end when they please, and sessions idle in between. After so
many turns of chance it lets everything come to its end. Nothing here takes the time it should:
for that there is `sim`.
"""

from collections.abc import Sequence
from random import Random

from msgspec.structs import replace

from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import Action, ReserveStart, ResizeJob, StartJob, StopJob
from tenfold.model.events import (
    ActionOrdered,
    ActionRefused,
    Event,
    JobBusy,
    JobCancelled,
    JobEnded,
    JobIdled,
    JobRefused,
    JobResized,
    JobStarted,
    JobStopped,
    JobSubmitted,
    NodeCordoned,
    NodeJoined,
    NodeLost,
    NodeReturned,
)
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, JobStatus, Run
from tenfold.model.reason import Reason
from tenfold.model.units import MINUTE, SECOND, Millis

GAPS_MS = (0, 1, SECOND, 30 * SECOND, MINUTE, 7 * MINUTE)
REFUSED = Reason("refused-by-chance", sentence="the world would not have it")


class ChanceWorld:
    """Supplies facts by the dice; a mirror of the fleet tells which facts are possible."""

    def __init__(
        self, dice: Random, nodes: Sequence[Node], jobs: Sequence[Job], *, turns: int
    ) -> None:
        self._dice = dice
        self._nodes = list(nodes)
        self._jobs = list(jobs)
        self._turns = turns
        self._now_ms = 0
        self._mirror = Fleet()
        self._stops: dict[JobId, StopJob] = {}
        self._resizes: dict[JobId, ResizeJob] = {}

    def wait(self, until_ms: Millis | None) -> tuple[Millis, Sequence[Event]] | None:
        """Return the next fact, or the moment that was asked for where it comes first."""
        is_over = self._turns <= 0
        next_ms = self._now_ms + self._dice.choice(GAPS_MS)
        if until_ms is not None and until_ms < next_ms:
            self._now_ms = max(self._now_ms, until_ms)
            return self._at(), ()
        before_ms, self._now_ms = self._now_ms, next_ms
        self._turns -= 1
        events = self._ending() if is_over else self._chance()
        if is_over and not events:
            self._now_ms = before_ms if until_ms is None else until_ms
            return None if until_ms is None else (until_ms, ())
        self._mirror.apply_all(events)
        return self._at(), events

    def carry_out(self, actions: Sequence[Action], now_ms: Millis) -> Sequence[Event]:
        """Carry out some actions at once and keep the others for later."""
        outcomes: list[Event] = []
        self._mirror.apply_all([ActionOrdered(now_ms, action) for action in actions])
        for action in actions:
            at_once = self._dice.random() < 0.5
            if isinstance(action, StartJob):
                if at_once:
                    outcomes.append(JobStarted(now_ms, action.job_id))
            elif isinstance(action, StopJob):
                self._stops[action.job_id] = action
                if at_once:
                    outcomes.append(self._stopped(action.job_id, now_ms))
            elif isinstance(action, ResizeJob):
                self._resizes[action.job_id] = action
                if at_once:
                    outcomes.append(self._resized(action.job_id, now_ms))
            elif not isinstance(action, ReserveStart):
                outcomes.append(JobRefused(now_ms, action.job_id, action.reasons))
        self._mirror.apply_all(outcomes)
        return outcomes

    def _ending(self) -> list[Event]:
        """Return what brings the end nearer: all nodes up, all jobs in, then over."""
        mirror, now = self._mirror, self._at()
        if self._nodes or self._jobs:
            joined: list[Event] = [NodeJoined(now, node) for node in self._nodes]
            joined += [JobSubmitted(now, self._came(job)) for job in self._jobs]
            self._nodes, self._jobs = [], []
            return joined
        for node_id, state in mirror.states.items():
            if state != "up":
                return [NodeReturned(now, node_id)]
        for job_id in mirror.orders:
            return [JobStarted(now, job_id)]
        for job_id in self._resizes:
            return [self._resized(job_id, now)]
        for job_id, run in mirror.running.items():
            return [self._stopped(job_id, now) if run.stopping else self._over(job_id, now)]
        return []

    def _chance(self) -> list[Event]:
        """Return one thing that may happen now, with all that follows at once."""
        mirror, dice, now = self._mirror, self._dice, self._at()
        kind = dice.randrange(12)
        if kind <= 3 and self._jobs:
            count = dice.randint(1, 3)
            came, self._jobs = self._jobs[:count], self._jobs[count:]
            return [JobSubmitted(now, self._came(job)) for job in came]
        if (kind == 4 or not mirror.nodes) and self._nodes:
            return [NodeJoined(now, self._nodes.pop(0))]
        if kind == 5 and mirror.pending:
            return [JobCancelled(now, dice.choice(list(mirror.pending)))]
        if kind in (6, 7) and mirror.nodes:
            return self._trouble()
        if kind in (8, 9) and mirror.orders:
            return [self._outcome(dice.choice(list(mirror.orders)))]
        if mirror.running:
            job_id = dice.choice(list(mirror.running))
            return [self._go_on(job_id, mirror.running[job_id])]
        return []

    def _go_on(self, job_id: JobId, run: Run) -> Event:
        """Let a run be resized, stopped or over; a session may idle, or be used again."""
        dice, now = self._dice, self._at()
        if job_id in self._resizes and dice.random() < 0.7:
            if dice.random() < 0.7:
                return self._resized(job_id, now)
            return ActionRefused(now, self._resizes.pop(job_id), REFUSED)
        if run.stopping:
            if dice.random() < 0.7:
                return self._stopped(job_id, now)
            return ActionRefused(now, self._stops.pop(job_id), REFUSED)
        terms = run.job.terms
        if terms is not None and terms.kind == "interactive" and dice.random() < 0.7:
            if job_id in self._mirror.idle:
                return JobBusy(now, job_id)
            return JobIdled(now, job_id, now)
        return self._over(job_id, now)

    def _outcome(self, job_id: JobId) -> Event:
        """Let a start succeed, fail or be refused."""
        order, luck = self._mirror.orders[job_id], self._dice.random()
        if luck < 0.6:
            return JobStarted(self._at(), job_id)
        if luck < 0.8:
            return JobStopped(self._at(), job_id, "start-failed", self._saved(job_id))
        return ActionRefused(self._at(), StartJob(job_id, order.slots), REFUSED)

    def _trouble(self) -> list[Event]:
        """Cordon or lose a node that is up, or bring back one that is not."""
        mirror, now = self._mirror, self._at()
        node_id = self._dice.choice(list(mirror.nodes))
        if mirror.states[node_id] != "up":
            return [NodeReturned(now, node_id)]
        if self._dice.random() < 0.5:
            return [NodeCordoned(now, node_id)]
        events: list[Event] = [NodeLost(now, node_id)]
        for kept in (mirror.orders, mirror.running):
            for job_id, held in kept.items():
                if any(slot.node == node_id for slot in held.slots):
                    self._stops.pop(job_id, None)
                    self._resizes.pop(job_id, None)
                    events.append(JobStopped(now, job_id, "node-lost", self._saved(job_id)))
        for job_id, action in list(self._resizes.items()):
            if any(slot.node == node_id for slot in action.slots):
                events.append(ActionRefused(now, self._resizes.pop(job_id), REFUSED))
        return events

    def _stopped(self, job_id: JobId, now_ms: Millis) -> JobStopped | JobEnded:
        """Let a stop be done; a session that idles is over with that."""
        cause = self._stops.pop(job_id).cause
        if cause == "idle":
            return self._over(job_id, now_ms, "cancelled")
        self._resizes.pop(job_id, None)
        return JobStopped(now_ms, job_id, cause, self._saved(job_id))

    def _over(self, job_id: JobId, now_ms: Millis, status: JobStatus = "completed") -> JobEnded:
        self._resizes.pop(job_id, None)
        self._stops.pop(job_id, None)
        return JobEnded(now_ms, job_id, status)

    def _resized(self, job_id: JobId, now_ms: Millis) -> JobResized:
        del self._resizes[job_id]
        return JobResized(now_ms, job_id)

    def _saved(self, job_id: JobId) -> Millis:
        past = self._mirror.past.get(job_id)
        return past.progress_ms if past else Millis(0)

    def _came(self, job: Job) -> Job:
        """Return the job as submitted now."""
        return replace(job, submitted_ms=self._at())

    def _at(self) -> Millis:
        return Millis(self._now_ms)
