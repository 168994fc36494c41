"""The rules that keep capacity from a pending job, and when each of them ends.

A job that its quota entitles to capacity may have to wait because a rule protects the jobs that
hold it. For each such rule, the protected jobs are counted over all teams. The end of a rule is
the time from which the job could start if nothing else changed; it is found with the decider's
own search for victims. Time limits bound the wait where nothing can be preempted.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from tenfold.decide.place.explain.quota import obstacles, open_types, shortfall
from tenfold.decide.place.explain.settled import Settled
from tenfold.decide.place.preempt.reclaim import Reclaim
from tenfold.decide.place.queue.pending_queues import JobClass, Option
from tenfold.decide.place.queue.preemption_eligibility import PreemptionEligibility
from tenfold.decide.place.quota.allocations import PLAIN, Allocation
from tenfold.decide.place.quota.team_tree import Obstacle, Team
from tenfold.decide.place.reserve.backfill_reservation import ExpectedEnds
from tenfold.fleet.fleet import NEVER_RAN
from tenfold.fleet.obstacle import fits
from tenfold.model.job.job import WHOLE, Job
from tenfold.model.reason import JobRef, Reason, TeamRef, Value
from tenfold.model.units import HOUR, Millis

CAPACITY = ("too-few-free", "room-scattered", "wrong-domain", "rack-power", "cpus-or-memory-short")
"""Reasons that end when other jobs do."""
LIMITS = ("quota-exceeded", "borrow-limit", "parent-limit", "not-lent")
TIMED = {"window": ("left_ms", "until_ms"), "quota-hours": ("in_ms",), "off-peak": ("in_ms",)}
"""Reasons that say themselves when they end, with the fields that do."""


class Rule(Struct, frozen=True, kw_only=True):
    """A rule that keeps capacity from a job."""

    reason: Reason
    until_ms: Millis | None = None
    """When it ends, or lets the job start, if nothing else changes; None if that is not known."""


def rules_of(settled: Settled, job: Job, reason: Reason) -> tuple[Rule, ...]:
    """Return the rules that keep capacity from a pending job; first the one that its reason is."""
    return tuple(_rules(settled, job, reason))


def _rules(settled: Settled, job: Job, reason: Reason) -> Iterator[Rule]:
    code, job_class = reason.code, settled.class_of(job)
    if code in TIMED:
        spans = (reason.fields.get(name) for name in TIMED[code])
        ends = [settled.now_ms + span for span in spans if isinstance(span, int)]
        yield Rule(reason=reason, until_ms=Millis(ends[0]) if ends else None)
    elif code == "kept-for-a-promise":
        yield from _reservation(settled)
    elif code in LIMITS:
        met = obstacles(settled.state, job_class)
        until_ms = _limit_until(settled, met[0]) if met else None
        yield Rule(reason=reason, until_ms=until_ms)
        yield from _protections(settled, job, job_class)
    elif code in CAPACITY:
        if _is_above_quota(settled, job_class):
            yield Rule(reason=Reason("above-quota", {"team": TeamRef(job.team)}))
        yield from _protections(settled, job, job_class)
        until_ms = _time_limits(settled, job_class)
        if until_ms is not None:
            fields: dict[str, Value] = {"in_ms": until_ms - settled.now_ms}
            yield Rule(reason=Reason("time-limits", fields), until_ms=until_ms)


def _reservation(settled: Settled) -> Iterator[Rule]:
    """Yield the reserved start that nodes are kept for."""
    reserved = settled.state.reserved.values()
    first = min(reserved, key=lambda each: each.reservation.start_ms, default=None)
    if first is not None:
        start_ms = first.reservation.start_ms
        fields: dict[str, Value] = {
            "job": JobRef(first.job.id, first.job.team),
            "nodes": len({slot.node for slot in first.reservation.slots}),
            "in_ms": max(0, start_ms - settled.now_ms),
        }
        yield Rule(reason=Reason("reserved-start", fields), until_ms=start_ms)


def _limit_until(settled: Settled, met: Obstacle) -> Millis | None:
    """Return when jobs that count towards a limit have reached their own time limits."""
    short = shortfall(settled.state, met)
    ends: list[tuple[int, int]] = []
    for each in _limited(settled):
        if short.team in each.team.path:
            amount = sum(amount for number, amount in each.amounts if number == short.number)
            ends.append((_limit_ms(each), amount))
    left = short.by
    for at_ms, amount in sorted(ends):
        left -= amount
        if left <= 0:
            return Millis(max(at_ms, settled.now_ms))
    return None


def _time_limits(settled: Settled, job_class: JobClass) -> Millis | None:
    """Return when running jobs with time limits leave enough room; None if they never do."""
    state = settled.state
    types = open_types(state, job_class) or [name for name, _ in job_class.options]
    ends = ExpectedEnds(_limited(settled), settled.now_ms)
    return ends.first(state.scratch, lambda: fits(state.capacity, job_class.shape, types))


def _limited(settled: Settled) -> list[Allocation]:
    return [
        each
        for each in settled.state.allocations.held.values()
        if each.job.limit_ms is not None and not each.stopping
    ]


def _limit_ms(allocation: Allocation) -> int:
    assert allocation.job.limit_ms is not None, "only jobs with a time limit are asked"
    return allocation.started_ms + allocation.job.limit_ms


def _protections(settled: Settled, job: Job, job_class: JobClass) -> Iterator[Rule]:
    """Yield the rules that protect jobs which the job could otherwise preempt."""
    state, govern, now_ms = settled.state, settled.govern, settled.now_ms
    eligible = PreemptionEligibility(state.tree, state.allocations, preempts=True)
    if not eligible.is_eligible(job_class):
        return
    search = _Unprotected(settled, settled.now_ms)
    victims = search.candidates(job, job_class.team, job_class.options)
    if not victims:
        return
    if not govern.preempts:
        yield Rule(reason=Reason("no-preemption", _counted(victims)))
        return
    if (until_ms := job.submitted_ms + govern.delay_ms) > now_ms:
        fields: dict[str, Value] = {"in_ms": until_ms - now_ms}
        yield Rule(reason=Reason("preemption-delay", fields), until_ms=Millis(until_ms))
    yield from _hourly(settled)
    fixed = [each for each in victims if not (each.job.terms or PLAIN).preemptible]
    if fixed:
        yield Rule(reason=Reason("not-preemptible", _counted(fixed)))
    young = [
        each
        for each in victims
        if each not in fixed and state.allocations.preemptible_from_ms(each) > now_ms
    ]
    if young:
        until_ms = _helps_from(settled, job, job_class, young)
        fields = _counted(young) | {"in_ms": until_ms - now_ms}
        yield Rule(reason=Reason("minimum-run", fields), until_ms=Millis(until_ms))
    worn = [each for each in victims if each not in fixed and _is_worn(settled, each)]
    if worn:
        most: dict[str, Value] = {"most": govern.stops_per_job}
        yield Rule(reason=Reason("preempted-enough", _counted(worn) | most))


def _hourly(settled: Settled) -> Iterator[Rule]:
    """Yield the limit on preemptions in an hour, if it is reached."""
    most, now_ms = settled.govern.stops_per_hour, settled.now_ms
    recent = [at_ms for at_ms in settled.view.evictions if at_ms > now_ms - HOUR]
    if most and len(recent) >= most:
        until_ms = Millis(recent[-most] + HOUR)
        fields: dict[str, Value] = {"most": most, "in_ms": until_ms - now_ms}
        yield Rule(reason=Reason("hourly-preemptions", fields), until_ms=until_ms)


def _helps_from(
    settled: Settled, job: Job, job_class: JobClass, young: Sequence[Allocation]
) -> int:
    """Return from when enough jobs have run their minimum time; else when the last one has."""
    times = sorted({settled.state.allocations.preemptible_from_ms(each) for each in young})
    low, high = 0, len(times) - 1
    while low < high:
        middle = (low + high) // 2
        if _helps_at(settled, job, job_class, times[middle]):
            high = middle
        else:
            low = middle + 1
    return times[low]


def _helps_at(settled: Settled, job: Job, job_class: JobClass, at_ms: int) -> bool:
    """Return whether the decider would find victims for a job at a later time."""
    reclaim = _Search(settled, at_ms)
    return any(reclaim.victims(job, job_class.team, option) for option in job_class.options)


def _is_above_quota(settled: Settled, job_class: JobClass) -> bool:
    """Return whether a team that has a quota would exceed it, and so may not reclaim."""
    tree = settled.state.tree
    governed = tree.resources.governed
    has_quota = any(
        governed[number] and job_class.team.effective[number] for number, _ in job_class.amounts
    )
    return has_quota and not any(
        tree.is_within(job_class.team, option.amounts) for option in job_class.options
    )


def _is_worn(settled: Settled, allocation: Allocation) -> bool:
    most = settled.govern.stops_per_job
    return bool(most) and settled.view.past.get(allocation.job.id, NEVER_RAN).runs >= most


def _counted(allocations: Sequence[Allocation]) -> dict[str, Value]:
    gpus = sum(each.gpus_milli for each in allocations) / WHOLE
    return {"jobs": len(allocations), "gpus": int(gpus) if gpus == int(gpus) else gpus}


class _Search(Reclaim):
    """The decider's search for victims at some time."""

    def __init__(self, settled: Settled, at_ms: int) -> None:
        state = settled.state
        super().__init__(
            settled.govern,
            state.tree,
            state.allocations,
            state.scratch,
            settled.view,
            Millis(at_ms),
        )


class _Unprotected(_Search):
    """The same search as if no rule protected a job."""

    def candidates(self, job: Job, team: Team, options: Sequence[Option]) -> list[Allocation]:
        """Return all jobs that a job may preempt, each once."""
        found: dict[int, Allocation] = {}
        for option in options:
            own = self._own(job, team, option.amounts)
            index = self._victim_index_for(job, team, option.amounts, own)
            found |= {id(each): each for _, each in index.priced}
        return list(found.values())

    def _is_preemptible(self, allocation: Allocation) -> bool:
        return not allocation.stopping
