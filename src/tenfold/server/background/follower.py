"""A copy of the fleet for the server, which follows the journal: pending reasons and `why`.

The loop's fleet belongs to the loop. Here the events are read again when a request needs them, and
a snapshot is kept for a short time: many requests share it, and none delays a decision.
"""

from collections.abc import Callable
from threading import Lock
from time import perf_counter

from msgspec import Struct
from msgspec.structs import replace

from tenfold.compose.policies import placing_decider
from tenfold.engine.loop import Decider
from tenfold.engine.obstacle import dependency_reason, obstacle_of
from tenfold.fleet.fleet import Fleet
from tenfold.journal.read import event_pages
from tenfold.journal.snapshots import EVERY, restore
from tenfold.journal.store import Store, last_seq
from tenfold.model.events import JobSubmitted
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.job.submission import Submission, admitted
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.policy.policy import Policy
from tenfold.model.reason import Reason, joined
from tenfold.model.units import Millis
from tenfold.study.why.never import FleetCheck
from tenfold.study.why.remedies import RemedySearch
from tenfold.study.why.why import (
    Explainer,
    Why,
    dependency_rules,
    eta_for,
    holders_in,
    why_under,
    with_forecast,
    with_smaller_first,
)

QUEUE_ASKED_MAX = 20
"""With more pending jobs, listings do not ask the policy why a job with room is pending."""
FREE = ("others-first", "next-pass")
"""Reasons of jobs for which there is room."""
SAME_MS = 1_000
"""How long the answers about a fleet that does not change are kept: they name times from now."""
KEPT_S = 0.2
KEPT_COSTS = 20
"""A snapshot is kept this many times as long as it took to make, to bound the cost."""


QUEUE_MAX = 500
"""With more pending jobs there is no forecast: it would take minutes next to the loop."""
LONG_QUEUE = f"more than {QUEUE_MAX} jobs are pending, too many for a forecast"
QUEUE_COUNTED_MAX = 20_000
"""With more, the jobs ahead of a job are not counted either: it would take seconds."""


class WaitAnswer(Struct, frozen=True, kw_only=True):
    """Why one job is pending."""

    why: Why
    is_brief: bool = False
    """Whether the queue was too long to search for fixes or to forecast."""


class FleetSnapshot:
    """The fleet as of a moment ago; thread-safe."""

    def __init__(self, fleet: Fleet, at_ms: Millis, policy: Policy) -> None:
        self.fleet = fleet
        self.at_ms = at_ms
        self._policy = policy
        self._govern = (policy.govern or GovernanceRules()) if policy.name == "governed" else None
        self._explainer: Explainer | None = None
        self._reasons: dict[str, Reason] = {}
        self._check: FleetCheck | None = None
        self._lock = Lock()
        self.asking_s = 0.0
        """Time spent on finding reasons so far."""

    def reason(self, job_id: str) -> Reason | None:
        """Return why a job is pending, without fixes; None if it is not pending."""
        job = self.fleet.pending.get(JobId(job_id))
        if job is None:
            return None
        return (
            dependency_reason(self.fleet, job) or self._waits_for_nodes(job) or self._reason_of(job)
        )

    def why(self, job_id: str, seek: RemedySearch, *, with_eta: bool) -> WaitAnswer | None:
        """Return why a job is pending and what would start it; None if it is not pending."""
        job = self.fleet.pending.get(JobId(job_id))
        if job is None:
            return None
        return self._explain(self.fleet.fork(), job, seek, with_eta=with_eta)

    def dry_run(self, submission: Submission, seek: RemedySearch, *, with_eta: bool) -> WaitAnswer:
        """Return what would happen to a submission; for an array, to its first member."""
        fleet = self.fleet.fork()
        held = [one.job for jobs in (fleet.running, fleet.orders) for one in jobs.values()]
        number = 1 + max((one.seq for one in (*fleet.pending.values(), *held)), default=0)
        job = admitted(submission, number, self.at_ms)[0].job
        fleet.apply(JobSubmitted(self.at_ms, job))
        return self._explain(fleet, job, seek, with_eta=with_eta)

    def _explain(self, fleet: Fleet, job: Job, seek: RemedySearch, *, with_eta: bool) -> WaitAnswer:
        if (reason := self._waits_for_nodes(job)) is not None:
            why = Why(job_id=job.id, team=job.team, at_ms=self.at_ms, state="waits", reason=reason)
            return WaitAnswer(why=why)
        waiting = len(fleet.pending)
        is_long = waiting > QUEUE_MAX
        if waiting > QUEUE_COUNTED_MAX or (is_long and self._govern is not None):
            brief = self._brief(fleet, job)
            return WaitAnswer(
                why=replace(brief, eta_unknown=LONG_QUEUE if with_eta else ""), is_brief=True
            )
        if self._govern is None:
            found = why_under(fleet, job, self.at_ms, self._decider)
            found = with_smaller_first(fleet, job, found, self._policy.name)
        else:
            found = Explainer(fleet, self._govern, self.at_ms).why(job, seek)
        dependency = dependency_reason(fleet, job)
        if dependency is not None:
            found = replace(
                found, reason=dependency, rules=dependency_rules(fleet, job, dependency)
            )
        if is_long and with_eta:
            return WaitAnswer(why=replace(found, eta_unknown=LONG_QUEUE), is_brief=True)
        if with_eta:
            found = with_forecast(found, eta_for(fleet, found, self.at_ms, self._decider))
        return WaitAnswer(why=found)

    def _brief(self, fleet: Fleet, job: Job) -> Why:
        """Return why a job is pending from what it requests and what is free, without the queue."""
        if self._govern is not None:
            return Explainer(fleet, self._govern, self.at_ms).why(job, "none")
        found = obstacle_of(fleet, job, self.at_ms)
        return Why(
            job_id=job.id,
            team=job.team,
            at_ms=self.at_ms,
            state="never" if found.never else "waits",
            reason=dependency_reason(fleet, job) or found.reason,
            holders=holders_in(fleet, job.shape),
            reservation=fleet.reservations.get(job.id),
        )

    def _waits_for_nodes(self, job: Job) -> Reason | None:
        """Return why a job that waits for nodes to join can never start on those of today."""
        if job.terms is None or job.terms.allow_pending is not True:
            return None
        with self._lock:
            check = self._check
            if check is None:
                nodes = self.fleet.nodes.values()
                check = self._check = FleetCheck(nodes, self._policy, self.at_ms)
            reasons = check.never_for(job)
        return joined(reasons) if reasons else None

    def _reason_of(self, job: Job) -> Reason:
        with self._lock:
            start = perf_counter()
            try:
                if self._govern is not None:
                    if self._explainer is None:
                        self._explainer = Explainer(self.fleet, self._govern, self.at_ms)
                    return self._explainer.reason(job)
                key = job.shape.key
                found = self._reasons.get(key) or self._reasons.get(job.id)
                if found is None:
                    found = obstacle_of(self.fleet, job, self.at_ms).reason
                    if found.code in FREE and len(self.fleet.pending) <= QUEUE_ASKED_MAX:
                        # There is room: only the policy knows what the job waits for.
                        key = job.id
                        found = obstacle_of(self.fleet, job, self.at_ms, self._decider()).reason
                    self._reasons[key] = found
                return found
            finally:
                self.asking_s += perf_counter() - start

    def _decider(self) -> Decider:
        return placing_decider(self._policy)


class Follower:
    """Keeps a fleet up to date with the journal, on demand."""

    def __init__(self, store: Store, policy: Policy, now_ms: Callable[[], int]) -> None:
        self._store = store
        self.policy = policy
        self._now_ms = now_ms
        self._lock = Lock()
        self._fleet: Fleet | None = None
        self._moment: FleetSnapshot | None = None
        self._made_s = 0.0
        self._cost_s = 0.0

    def snapshot(self, seq: int = 0) -> FleetSnapshot:
        """Return a recent snapshot, not older than event `seq`.

        It reads the journal, so never call it on the event loop of the server.
        """
        with self._lock:
            start, kept = perf_counter(), self._moment
            if kept is not None and kept.fleet.version >= seq and self._is_fresh(kept, start):
                return kept
            fleet = self._caught_up()
            now_ms = Millis(self._now_ms())
            if (
                kept is None
                or kept.fleet.version != fleet.version
                or now_ms - kept.at_ms >= SAME_MS
            ):
                kept = FleetSnapshot(fleet.fork(), now_ms, self.policy)
            self._moment, self._made_s = kept, perf_counter()
            self._cost_s = self._made_s - start
            return kept

    def _is_fresh(self, kept: FleetSnapshot, now_s: float) -> bool:
        kept_s = max(KEPT_S, KEPT_COSTS * (self._cost_s + kept.asking_s))
        return now_s - self._made_s < kept_s

    def _caught_up(self) -> Fleet:
        fleet, self._fleet = self._fleet, None
        if fleet is not None:
            with self._store.reading() as connection:
                behind = last_seq(connection) - fleet.version
            if behind < EVERY and _advanced(self._store, fleet):
                self._fleet = fleet
                return fleet
        # Far behind, or the events in between were exported: start from a snapshot.
        self._fleet = restore(self._store).fleet
        return self._fleet


def _advanced(store: Store, fleet: Fleet) -> bool:
    for page in event_pages(store, fleet.version):
        if page[0][0] != fleet.version + 1:
            return False
        fleet.apply_all([event for _, event in page])
    return True
