"""Losses in a window: wasted GPU time, nodes down, and unfairness across teams."""

from collections.abc import Iterable, Mapping, Sequence

from tenfold.model.ids import JobId
from tenfold.model.job.job import WHOLE, Job, PriorRuns
from tenfold.sim.measure.meters import Meters, requested_milli
from tenfold.sim.measure.timeline import Span
from tenfold.sim.measure.window import JobWait, Window, slots_milli, within, work_of

FAILURES, PREEMPTION, CONTENTION = "failures", "preemption", "contention"
"""Why GPU time was wasted: node failures, preemption, contention."""


def lost_milli_ms(
    runs: Iterable[Span],
    meters: Meters,
    past: Mapping[JobId, PriorRuns],
    work_ms: Mapping[JobId, float],
    window: Window,
) -> dict[str, int]:
    """Return the GPU time held within a window beyond the work done, by cause.

    A job that ended has done what it came for, one that runs has `work_ms` behind it, and one
    that waits again what it saved. What a job lost is laid evenly over the time it held GPUs.
    """
    held: dict[JobId, int] = {}
    inside: dict[JobId, int] = {}
    jobs: dict[JobId, Job] = {}
    for job, slots, start, end in runs:
        # A gang that takes whole nodes may hold more than it requested; that is no loss of time.
        elastic = job.terms is not None and job.terms.least_gpus
        milli = slots_milli(slots) if elastic else requested_milli(job)
        jobs[job.id] = job
        held[job.id] = held.get(job.id, 0) + milli * (end - start)
        inside[job.id] = inside.get(job.id, 0) + milli * within(start, end, window)
    causes = _stop_causes(meters)
    ended = {end[0].id: True for end in meters.ends}
    lost = {FAILURES: 0.0, PREEMPTION: 0.0, CONTENTION: 0.0}
    for job_id, job in jobs.items():
        if job_id in ended:
            useful = float(work_of(job))
        elif job_id in work_ms:
            useful = requested_milli(job) * work_ms[job_id]
        else:
            useful = (
                float(requested_milli(job) * past[job_id].progress_ms) if job_id in past else 0.0
            )
        if inside[job_id]:
            share = inside[job_id] / held[job_id]
            lost[causes.get(job_id, CONTENTION)] += max(0.0, held[job_id] - useful) * share
    return {cause: round(amount) for cause, amount in lost.items()}


def _stop_causes(meters: Meters) -> dict[JobId, str]:
    """Return why jobs were stopped; a lost node weighs more than a stop for another."""
    causes: dict[JobId, str] = {}
    for job, _, _, cause, _ in meters.stops:
        if cause == "node-lost":
            causes[job.id] = FAILURES
        else:
            causes.setdefault(job.id, PREEMPTION)
    return causes


def nodes_down_p99(meters: Meters, window: Window) -> int:
    """Return the number of nodes down that is not exceeded 99 hundredths of the time."""
    changes = sorted([(at, 1) for at, _ in meters.lost] + [(at, -1) for at, _ in meters.returned])
    time_at: dict[int, int] = {}
    since, down = window.from_ms, 0
    for at, by in [*changes, (window.until_ms, 0)]:
        time_at[down] = time_at.get(down, 0) + within(since, at, window)
        since, down = max(since, at), down + by
    wanted, reached = 0.99 * sum(time_at.values()), 0
    for count in sorted(time_at):
        reached += time_at[count]
        if reached >= wanted:
            return count
    return 0


def entitlement_fairness(
    job_waits: Sequence[JobWait],
    runs: Iterable[Span],
    window: Window,
    gpus: int,
    weights: Mapping[str, float],
) -> float:
    """Return how evenly teams got what they deserve: Jain's index, 1 where all alike.

    A team deserves what it requested within the window, or its part by weight if that is less;
    what some do not need is parted among the others.
    """
    requested: dict[str, int] = {}
    for waited in job_waits:
        requested[waited.job.team] = requested.get(waited.job.team, 0) + work_of(waited.job)
    requested = {team: work for team, work in sorted(requested.items()) if work}
    if len(requested) < 2:
        return 1.0
    received = dict.fromkeys(requested, 0)
    for job, slots, start, end in runs:
        if job.team in received:
            received[job.team] += slots_milli(slots) * within(start, end, window)
    entitled = weighted_shares(requested, weights, gpus * WHOLE * window.length_ms)
    shares = [min(1.0, received[team] / entitled[team]) for team in requested]
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 1.0


def weighted_shares(
    requested: Mapping[str, int], weights: Mapping[str, float], capacity: float
) -> dict[str, float]:
    """Return the part of each team: by weight, but no more than it requests."""
    parts: dict[str, float] = {}
    remaining = dict(requested)
    while remaining:
        per_weight = capacity / sum(weights.get(team, 1.0) for team in remaining)
        satisfied = [
            team for team in remaining if requested[team] <= per_weight * weights.get(team, 1.0)
        ]
        if not satisfied:
            parts |= {team: per_weight * weights.get(team, 1.0) for team in remaining}
            break
        for team in satisfied:
            parts[team] = float(remaining.pop(team))
            capacity -= parts[team]
    return parts
