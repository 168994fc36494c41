"""Explain why a job is pending, and find the cheapest change that would start it now.

`Explainer` answers for many jobs at one time: the scheduler state is built once, and reasons are
cached by team, priority and shape. Fixes are tested on forks with a fresh decider each, which is
expensive: request none if only the reason is needed.
"""

from collections.abc import Callable
from heapq import nlargest

from msgspec import Struct, field
from msgspec.structs import replace

from tenfold.decide.place.explain.holders import SHOWN, Holders, JobUsage, QuotaUsage, TeamUsage
from tenfold.decide.place.explain.rules import Rule, rules_of
from tenfold.decide.place.explain.settled import Settled
from tenfold.decide.place.explain.why import Blocked, Reasons
from tenfold.decide.place.explain.windows import own_windows
from tenfold.decide.place.quota.allocations import PLAIN
from tenfold.engine.loop import Decider
from tenfold.engine.obstacle import obstacle_of
from tenfold.fleet.fleet import Fleet, FleetView
from tenfold.fleet.obstacle import FreeCapacity
from tenfold.fleet.view import job_ref
from tenfold.model.actions import StartJob, StopJob
from tenfold.model.api.jobs import Outcome
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import WHOLE, BackfillReservation, Job, Run, Shape, Slot
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.policy.policy import PolicyName
from tenfold.model.reason import JobRef, Reason, Value
from tenfold.model.units import Millis
from tenfold.study.eta.eta import Eta, Forecast, NoForecast, eta_of, not_before
from tenfold.study.why.remedies import Remedy, RemedySearch, cheapest_of, remedies
from tenfold.study.why.trial import Trials


def holders_in(view: FleetView, shape: Shape) -> Holders:
    """Return the teams and jobs that hold GPUs of suitable types, largest first."""
    by_team: dict[TeamId, int] = {}
    sized: list[tuple[int, int, int, Run]] = []
    for run in view.running.values():
        accelerator = view.nodes[run.slots[0].node].accelerator
        gpus = sum(slot.milli or slot.gpus * WHOLE for slot in run.slots)
        if gpus and (not shape.accelerators or accelerator in shape.accelerators):
            by_team[run.job.team] = by_team.get(run.job.team, 0) + gpus
            sized.append((gpus, -run.started_ms, -run.job.seq, run))
    teams = sorted(by_team.items(), key=lambda item: (-item[1], item[0]))
    return Holders(
        teams=tuple(TeamUsage(team=team, gpus_milli=gpus) for team, gpus in teams),
        jobs=tuple(
            JobUsage(
                job_id=run.job.id,
                team=run.job.team,
                gpus_milli=gpus,
                since_ms=run.started_ms,
                preemptible=(run.job.terms or PLAIN).preemptible,
                stopping=run.stopping,
            )
            for gpus, _, _, run in nlargest(SHOWN, sized, key=lambda item: item[:3])
        ),
    )


class Why(Struct, frozen=True, kw_only=True):
    """The full explanation for one pending job."""

    job_id: JobId
    team: TeamId
    at_ms: Millis
    state: Outcome
    """Whether it starts in this cycle, waits, or will be rejected."""
    reason: Reason
    """The first constraint that blocks it."""
    ahead: int | None = None
    """Jobs ahead of it: similar ones of its team, or, under other policies, all of them."""
    is_repair: bool = False
    free_capacity: FreeCapacity | None = field(default=None, name="room")
    holders: Holders = Holders()
    standing: tuple[QuotaUsage, ...] = ()
    reservation: BackfillReservation | None = field(default=None, name="promise")
    slots: tuple[Slot, ...] = ()
    """Where it starts, if at all."""
    remedies: tuple[Remedy, ...] = ()
    """Fixes that would start it now, cheapest first; each was tested."""
    cheapest: Remedy | None = None
    eta: Eta | None = None
    not_before_ms: Millis | None = None
    """Earliest start that a window or off-peak hours allow."""
    rules: tuple[Rule, ...] = ()
    """Rules that keep capacity from it, and when they end."""
    eta_unknown: str = ""
    """Why there is no forecast, where one was tried."""


class Explainer:
    """Explains pending jobs at one time under the governed policy."""

    def __init__(self, fleet: Fleet, govern: GovernanceRules, now_ms: Millis) -> None:
        self._now_ms = now_ms
        self._settled = Settled(fleet, govern, now_ms)
        self._reasons = Reasons(self._settled)
        self._trials = Trials(fleet, self._settled)

    def reason(self, job: Job) -> Reason:
        """Return only the first constraint that blocks a job; similar jobs share the answer."""
        return self._reasons.blocked(job).reason

    def why(self, job: Job, seek: RemedySearch = "cheapest") -> Why:
        """Return why a job is pending, and what would start it."""
        blocked = self._reasons.blocked(job)
        found: tuple[Remedy, ...] = ()
        if seek != "none" and not blocked.slots:
            job_class, every = self._settled.class_of(job), seek == "every"
            found = remedies(self._trials, job, job_class, blocked, every=every)
        return self._answer(job, blocked, found)

    def _answer(self, job: Job, blocked: Blocked, found: tuple[Remedy, ...]) -> Why:
        return Why(
            job_id=job.id,
            team=job.team,
            at_ms=self._now_ms,
            state=_state(blocked, self._settled, job),
            reason=blocked.reason,
            ahead=blocked.ahead,
            is_repair=blocked.is_repair,
            free_capacity=blocked.room,
            holders=blocked.holders,
            standing=blocked.standing,
            reservation=blocked.promise,
            slots=blocked.slots,
            remedies=found,
            cheapest=cheapest_of(found),
            not_before_ms=blocked.not_before_ms,
            rules=() if blocked.slots else self._rules(job, blocked),
        )

    def _rules(self, job: Job, blocked: Blocked) -> tuple[Rule, ...]:
        known = self._settled.state.residency.apply(job)
        with own_windows(self._settled, known):
            return rules_of(self._settled, known, blocked.reason)


def why(
    fleet: Fleet, govern: GovernanceRules, job: Job, now_ms: Millis, seek: RemedySearch = "cheapest"
) -> Why:
    """Return why one job is pending, and what would start it; see `Explainer` for many."""
    return Explainer(fleet, govern, now_ms).why(job, seek)


def why_under(fleet: Fleet, job: Job, now_ms: Millis, decider_of: Callable[[], Decider]) -> Why:
    """Return why a job is pending under a policy without teams."""
    decision = decider_of().decide(fleet, now_ms, None)
    for action in decision.actions:
        if isinstance(action, StartJob) and action.job_id == job.id:
            return Why(
                job_id=job.id,
                team=job.team,
                at_ms=now_ms,
                state="starts",
                reason=Reason("starts-now"),
                slots=action.slots,
            )
    found = obstacle_of(fleet, job, now_ms, decider_of())
    start = _start_by_preempting(fleet, job, now_ms, decider_of())
    return Why(
        job_id=job.id,
        team=job.team,
        at_ms=now_ms,
        state="never" if found.never else "waits",
        reason=found.reason,
        ahead=found.ahead,
        free_capacity=found.room,
        holders=holders_in(fleet, job.shape),
        rules=() if start is None else (start,),
    )


def _start_by_preempting(fleet: Fleet, job: Job, now_ms: Millis, decider: Decider) -> Rule | None:
    """Return which jobs a policy stops for a pending job, now or when it ranks jobs next."""
    decision = decider.decide(fleet, now_ms, None)
    at_ms = now_ms
    if not decision.actions and decision.wake_at_ms is not None:
        at_ms = decision.wake_at_ms
        decision = decider.decide(fleet, at_ms, ())
    victims = [
        action.job_id
        for action in decision.actions
        if isinstance(action, StopJob)
        and isinstance(ref := action.reason.fields.get("job"), JobRef)
        and ref.id == job.id
    ]
    if not victims:
        return None
    fields: dict[str, Value] = {"job": job_ref(fleet, victims[0]), "more": len(victims) - 1}
    if at_ms > now_ms:
        fields["in_ms"] = at_ms - now_ms
    return Rule(reason=Reason("starts-by-preempting", fields), until_ms=at_ms)


NO_RESERVED_START = ("tenfold", "las", "fair", "edf", "srtf", "srsf")
"""Policies that pass over a job that does not fit, and reserve nothing for it."""
SHORT_OF_ROOM = ("too-few-free", "room-scattered", "cpus-or-memory-short", "others-first")


def with_smaller_first(fleet: FleetView, job: Job, found: Why, policy: PolicyName) -> Why:
    """Return an explanation that says that smaller jobs start first, where nothing prevents it."""
    if policy not in NO_RESERVED_START or found.reason.code not in SHORT_OF_ROOM:
        return found
    size = _size_milli(job.shape)
    if size <= WHOLE:
        return found
    smaller = sum(_size_milli(other.shape) < size for other in fleet.pending.values())
    if not smaller and found.reason.fields.get("nodes", 1) == 1:
        return found
    rule = Rule(reason=Reason("smaller-first", {"policy": policy, "smaller": smaller}))
    return replace(found, rules=(*found.rules, rule))


def _size_milli(shape: Shape) -> int:
    return shape.milli or shape.gpus * WHOLE


def dependency_rules(fleet: FleetView, job: Job, reason: Reason) -> tuple[Rule, ...]:
    """Return the dependency as the rule that holds a job back, until its time limits at most."""
    ends: list[int] = []
    for name in job.terms.after if job.terms is not None else ():
        run = fleet.running.get(name)
        if run is not None and run.job.limit_ms is not None:
            ends.append(run.started_ms + run.job.limit_ms)
        elif any(name in jobs for jobs in (fleet.pending, fleet.orders, fleet.running, fleet.held)):
            return (Rule(reason=reason),)
    return (Rule(reason=reason, until_ms=Millis(max(ends)) if ends else None),)


def eta_for(
    fleet: Fleet, answer: Why, now_ms: Millis, decider_of: Callable[[], Decider]
) -> Forecast | None:
    """Return when a pending job is expected to start, by simulating the fleet ahead."""
    if answer.state != "waits" or answer.job_id not in fleet.pending:
        return None
    for rule in answer.rules:
        if rule.reason.code == "starts-by-preempting" and rule.until_ms is not None:
            basis = "starts no later than the next preemption pass; uncalibrated"
            return Eta(p50_ms=rule.until_ms, p90_ms=rule.until_ms, basis=basis)
    # A simulation may not have reached the end of a window.
    return not_before(eta_of(fleet, answer.job_id, now_ms, decider_of), answer.not_before_ms)


def with_forecast(answer: Why, forecast: Forecast | None) -> Why:
    """Return an answer with a forecast, or with why there is none."""
    if isinstance(forecast, NoForecast):
        return replace(answer, eta_unknown=forecast.reason)
    return replace(answer, eta=forecast)


def _state(blocked: Blocked, settled: Settled, job: Job) -> Outcome:
    if blocked.slots:
        return "starts"
    return "never" if settled.is_refused(job) else "waits"
