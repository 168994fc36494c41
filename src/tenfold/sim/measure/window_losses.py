"""What a window lost: GPU time that was no progress, nodes that were down, teams left behind."""

from collections.abc import Iterable, Mapping, Sequence

from tenfold.model.ids import JobId
from tenfold.model.job.job import WHOLE, Job, PriorRuns
from tenfold.sim.measure.meters import Meters, asked_milli
from tenfold.sim.measure.timeline import Span
from tenfold.sim.measure.window import Stay, Window, slots_milli, within, work_of

FAILURES, PREEMPTION, NEIGHBOURS = "failures", "preemption", "neighbours"
"""Why GPU time was held in vain: nodes lost, stops for others, company that slows down."""


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
        # A gang that takes whole nodes may hold more than it asked for; that is no loss of time.
        elastic = job.terms is not None and job.terms.least_gpus
        milli = slots_milli(slots) if elastic else asked_milli(job)
        jobs[job.id] = job
        held[job.id] = held.get(job.id, 0) + milli * (end - start)
        inside[job.id] = inside.get(job.id, 0) + milli * within(start, end, window)
    causes = _causes(meters)
    over = {end[0].id: True for end in meters.ends}
    lost = {FAILURES: 0.0, PREEMPTION: 0.0, NEIGHBOURS: 0.0}
    for job_id, job in jobs.items():
        if job_id in over:
            useful = float(work_of(job))
        elif job_id in work_ms:
            useful = asked_milli(job) * work_ms[job_id]
        else:
            useful = float(asked_milli(job) * past[job_id].progress_ms) if job_id in past else 0.0
        if inside[job_id]:
            share = inside[job_id] / held[job_id]
            lost[causes.get(job_id, NEIGHBOURS)] += max(0.0, held[job_id] - useful) * share
    return {cause: round(amount) for cause, amount in lost.items()}


def _causes(meters: Meters) -> dict[JobId, str]:
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


def evenness(
    found: Sequence[Stay],
    runs: Iterable[Span],
    window: Window,
    gpus: int,
    weights: Mapping[str, float],
) -> float:
    """Return how evenly teams got what they deserve: Jain's index, 1 where all alike.

    A team deserves what it asked for within the window, or its part by weight if that is less;
    what some do not need is parted among the others.
    """
    asked: dict[str, int] = {}
    for stay in found:
        asked[stay.job.team] = asked.get(stay.job.team, 0) + work_of(stay.job)
    asked = {team: work for team, work in sorted(asked.items()) if work}
    if len(asked) < 2:
        return 1.0
    got = dict.fromkeys(asked, 0)
    for job, slots, start, end in runs:
        if job.team in got:
            got[job.team] += slots_milli(slots) * within(start, end, window)
    deserved = parted(asked, weights, gpus * WHOLE * window.length_ms)
    shares = [min(1.0, got[team] / deserved[team]) for team in asked]
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 1.0


def parted(
    asked: Mapping[str, int], weights: Mapping[str, float], capacity: float
) -> dict[str, float]:
    """Return the part of each team: by weight, but no more than it asks for."""
    parts: dict[str, float] = {}
    there = dict(asked)
    while there:
        each = capacity / sum(weights.get(team, 1.0) for team in there)
        modest = [team for team in there if asked[team] <= each * weights.get(team, 1.0)]
        if not modest:
            parts |= {team: each * weights.get(team, 1.0) for team in there}
            break
        for team in modest:
            parts[team] = float(there.pop(team))
            capacity -= parts[team]
    return parts
