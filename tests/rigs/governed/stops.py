"""The laws of stopping some for others: whom, for whom, and that it helps.

They read from the reason of a stop for whom it is, and so hold the reasons to be true as well.
"""

from collections.abc import Sequence

from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import ResizeJob, StartJob, StopJob
from tenfold.model.decision import Decision
from tenfold.model.events import (
    ActionRefused,
    Event,
    JobStopped,
    NodeCordoned,
    NodeJoined,
    NodeLost,
    NodeReturned,
)
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.reason import JobRef
from tenfold.model.units import DAY, HOUR, Millis
from tests.rigs.broken import hold
from tests.rigs.governed.quota import is_in
from tests.rigs.governed.quota_state import PLAIN, QuotaState

FOR_OTHERS = ("reclaimed", "outranked", "promise-due")


class _Made:
    """Room that is being made for a job."""

    def __init__(self, at_ms: Millis) -> None:
        self.at_ms = at_ms
        self.victims: list[JobId] = []


class StopLaws:
    """What must hold of stops, with what has to be remembered between them."""

    def __init__(self) -> None:
        self._gave_way: dict[tuple[JobId, JobId], Millis] = {}
        """(Who was stopped, for whom), and when."""
        self._made: dict[JobId, _Made] = {}
        """By job that room is being made for."""
        self._govern: GovernanceRules | None = None

    def hear(
        self,
        govern: GovernanceRules,
        view: Fleet,
        now_ms: Millis,
        news: Sequence[Event],
        decision: Decision,
    ) -> None:
        """Check that room that was made is used once it is there."""
        if self._govern is not govern:
            # Other rules: who was owed room yesterday may owe it today.
            self._govern = govern
            self._gave_way.clear()
            self._made.clear()
        if self._made and any(_disturbs(event) for event in news):
            self._made.clear()
        starts = [one.job_id for one in decision.actions if isinstance(one, StartJob)]
        if any(run.stopping for run in view.running.values()):
            # Room to come may be shared out another way than it was made.
            return
        for job_id, made in list(self._made.items()):
            del self._made[job_id]
            if (
                job_id not in view.pending
                or job_id in starts
                or _hours_passed(govern, made, now_ms)
            ):
                continue
            is_used = any(one not in made.victims for one in starts)
            hold(
                "nobody-is-stopped-in-vain",
                is_used,
                f"`{job_id}`, for which {made.victims} were stopped, waits at {now_ms} ms",
            )

    def judge(self, quota_state: QuotaState, decision: Decision) -> None:
        """Check the stops of a decision."""
        groups: dict[JobId, list[StopJob]] = {}
        for one in decision.actions:
            if isinstance(one, StopJob) and one.cause != "idle":
                run = quota_state.fleet.running[one.job_id]
                may = (run.job.terms or PLAIN).preemptible
                hold("who-may-not-be-stopped-is-not", may, f"{one} at {quota_state.now_ms} ms")
            if isinstance(one, StopJob) and _for_others(one):
                asker = _asker(one)
                self._may_be_stopped(quota_state, one, asker, decision)
                groups.setdefault(asker, []).append(one)
        self._rate(quota_state, groups)
        for number, (asker, stops) in enumerate(groups.items()):
            made = self._made[asker] = _Made(quota_state.now_ms)
            made.victims += [one.job_id for one in stops]
            if number == 0:
                _all_needed(quota_state, decision, asker, stops)

    def nobody_owed_waits(self, quota_state: QuotaState, decision: Decision) -> None:
        """Whoever is owed room displaces those who have it, as soon as they may be."""
        fleet, govern, now_ms = quota_state.fleet, quota_state.govern, quota_state.now_ms
        runs = fleet.running.values()
        if not govern.preempts or any(run.stopping or run.becoming for run in runs):
            return
        if govern.stops_per_hour and _recent(quota_state) >= govern.stops_per_hour:
            return
        eligible = [run for run in runs if quota_state.is_preemptible(run)]
        for job in _heads(fleet) if eligible else ():
            if now_ms - job.submitted_ms < govern.delay_ms or _gone(decision, job):
                continue
            for kind, amounts in quota_state.asks(job):
                going = [
                    one.job.id for one in eligible if quota_state.may_displace(job, amounts, one)
                ]
                is_home = quota_state.is_home(job, amounts, without=going)
                is_eligible = going and is_home and quota_state.fits(job, without=going, of=kind)
                hold(
                    "who-is-owed-room-gets-it",
                    not is_eligible,
                    f"`{job.id}` waits at {now_ms} ms, {going} could give way",
                )

    def _may_be_stopped(
        self, quota_state: QuotaState, stop: StopJob, asker: JobId, decision: Decision
    ) -> None:
        fleet, now_ms = quota_state.fleet, quota_state.now_ms
        run = fleet.running[stop.job_id]
        words = f"`{stop.job_id}` for `{asker}` at {now_ms} ms"
        hold("stops-are-for-who-waits", asker in fleet.pending, words)
        job = fleet.pending[asker]
        is_turned = (asker, stop.job_id) in self._gave_way
        hold("nobody-gives-way-in-turn", not is_turned, f"{words}, and the other way before")
        self._gave_way[stop.job_id, asker] = now_ms
        if stop.reason.code == "promise-due":
            return
        hold("runs-have-their-least-time", quota_state.is_preemptible(run), words)
        waited = now_ms - job.submitted_ms >= quota_state.govern.delay_ms
        hold("who-asks-has-waited", waited, words)
        before = _without_going(quota_state, decision, stop)
        owed = any(before.may_displace(job, amounts, run) for _, amounts in before.asks(job))
        hold("only-who-owes-room-is-stopped", owed, words)

    def _rate(self, quota_state: QuotaState, groups: dict[JobId, list[StopJob]]) -> None:
        """No more jobs are asked to make room once an hour's stops are used up."""
        most = quota_state.govern.stops_per_hour
        for stops in groups.values():
            if most and stops[0].reason.code != "promise-due":
                hold("stops-keep-to-their-rate", _recent(quota_state) < most, f"{stops[0]}")


def _without_going(quota_state: QuotaState, decision: Decision, stop: StopJob) -> QuotaState:
    """Return how everybody stands without what those hold who are being stopped."""
    found = quota_state.before(decision, stop)
    going = {one.job_id for one in decision.actions if isinstance(one, StopJob)}
    for job_id, run in found.fleet.running.items():
        if run.stopping or job_id in going:
            found.forget(run)
    return found


def _all_needed(
    quota_state: QuotaState, decision: Decision, asker: JobId, stops: Sequence[StopJob]
) -> None:
    """The first for whom others are stopped fits then, and not if one of them stayed."""
    fleet, actions = quota_state.fleet, decision.actions
    if any(run.stopping or run.becoming for run in fleet.running.values()):
        return
    if any(isinstance(one, ResizeJob) for one in actions):
        return
    job = fleet.pending[asker]
    now = quota_state.before(decision, stops[0])
    is_due = stops[0].reason.code == "promise-due"
    if any(isinstance(one, StopJob) and not _for_others(one) for one in actions):
        # What others leave of themselves may be for somebody whose turn came before.
        return
    gone = [one.job_id for one in stops]
    words = f"{gone} for `{asker}` at {quota_state.now_ms} ms"
    if is_due:
        helps = now.promise_fits(job, without=gone)
    else:
        helps = now.fits(job, without=gone, until_windows=True)
    hold("nobody-is-stopped-in-vain", helps, words)
    for stays in gone:
        others = [one for one in gone if one != stays]
        if is_due:
            is_vain = now.promise_fits(job, without=others)
        else:
            is_vain = any(
                now.fits(job, without=others, of=kind)
                and now.is_home(job, amounts, without=others)
                and all(now.may_displace(job, amounts, fleet.running[one]) for one in others)
                for kind, amounts in now.asks(job)
            )
        hold("nobody-is-stopped-in-vain", not is_vain, f"{words}: not `{stays}`")


def _for_others(stop: StopJob) -> bool:
    return stop.reason.code in FOR_OTHERS


def _heads(fleet: Fleet) -> list[Job]:
    """Return the first who waits of each team, priority and shape, without those promised."""
    found: dict[object, Job] = {}
    for job in sorted(fleet.pending.values(), key=lambda one: (one.submitted_ms, one.seq)):
        terms = job.terms or PLAIN
        if job.id in fleet.reservations or terms.after or terms.array_most or terms.off_peak:
            continue
        if not job.shape.gpus or job.shape.cpus_milli or job.shape.memory_mib:
            continue
        found.setdefault((job.team, job.priority, job.shape.key), job)
    return list(found.values())


def _gone(decision: Decision, job: Job) -> bool:
    return any(one.job_id == job.id for one in decision.actions)


def _recent(quota_state: QuotaState) -> int:
    return sum(1 for at_ms in quota_state.fleet.evictions if at_ms > quota_state.now_ms - HOUR)


def _asker(stop: StopJob) -> JobId:
    job = stop.reason.fields.get("job")
    hold("stops-say-for-whom", isinstance(job, JobRef), f"{stop}")
    assert isinstance(job, JobRef)
    return job.id


def _disturbs(event: Event) -> bool:
    """Return whether a fact may change what room was made for."""
    if isinstance(event, JobStopped):
        return event.cause != "preempted"
    changes = (NodeJoined, NodeLost, NodeReturned, NodeCordoned, ActionRefused)
    return isinstance(event, changes)


def _hours_passed(govern: GovernanceRules, made: _Made, now_ms: Millis) -> bool:
    """Return whether quotas or off-peak hours are others than when room was made."""
    hours = [*govern.off_peak, *(each for team in govern.teams for each, _ in team.hours)]
    moments = [(at_ms + govern.timezone_ms) % DAY for at_ms in (made.at_ms, now_ms)]
    return any(len({is_in(each, moment) for moment in moments}) > 1 for each in hours)
