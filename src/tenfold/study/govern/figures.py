"""Figures of a governance comparison: for the fleet, for each team, and for borrowing."""

from collections.abc import Sequence
from math import ceil

from msgspec import Struct, field

from tenfold.compose.simulation import SimRequest, SimResult
from tenfold.model.job.job import WHOLE
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.units import DAY, HOUR, SECOND
from tenfold.sim.measure.meters import Summary, requested_milli
from tenfold.study.compare.cell import CellError
from tenfold.study.govern.entitlement import Entitlements, TeamEntitlement, measure_entitlements


class TeamFigures(Struct, frozen=True, kw_only=True):
    """One team's results. Waits are those of finished jobs; percentiles are nearest ranks."""

    jobs: int
    finished: int
    refused: int
    wait_s_mean: float
    wait_s_p50: float
    wait_s_p90: float
    gpu_hours: float
    entitled_gpu_hours: float = field(name="deserved_gpu_hours")
    served: float
    """Share of its entitlement that it received while entitled to it."""
    beyond_quota_gpu_hours: float
    preemptions: int


class FleetFigures(Struct, frozen=True, kw_only=True):
    """Results of the whole fleet."""

    jobs: int
    finished: int
    refused: int
    unfinished: int
    """Jobs still pending at the end of the run."""
    wait_s_mean: float
    wait_s_p50: float
    wait_s_p90: float
    worst_team: str
    """The team with the longest mean wait."""
    worst_wait_s_mean: float
    delay_days: float
    """Total wait of finished jobs, in days."""
    jain_served: float
    """Jain's index over teams of the share of entitlement received."""
    least_served_team: str
    least_served: float
    jain_slowdown: float
    """Jain's index over teams of the mean slowdown."""
    gpu_utilization: float
    allocated_waiting: float
    """Share of GPUs allocated while any job waited."""
    makespan_s: float
    preemptions: int
    gpu_hours: float
    gpu_hours_lost: float
    beyond_quota_gpu_hours: float
    """Held by teams beyond their quota, i.e. borrowed."""


class SharedRun(Struct, frozen=True, kw_only=True):
    """One sharing mode with its figures; a run that failed has none."""

    name: str
    description: str = field(name="words")
    whole: FleetFigures | None = None
    teams: dict[str, TeamFigures] = {}
    error: CellError | None = None


class SharedRunDetail(Struct, frozen=True, kw_only=True):
    """A run with the wait and the GPU-hours of each finished job."""

    run: SharedRun
    waits_ms: dict[str, int] = {}
    gpu_hours: dict[str, float] = {}
    notes: tuple[str, ...] = ()


class BorrowingGain(Struct, frozen=True, kw_only=True):
    """What borrowing gains over partitions; waits cover jobs that finish in both modes."""

    jobs: int
    wait_s_mean_before: float
    wait_s_mean: float
    delay_days_saved: float
    gpu_utilization_before: float
    gpu_utilization: float
    allocated_waiting_before: float
    allocated_waiting: float
    jobs_only_now: int
    """Jobs that finish only with borrowing: they fit in no partition."""
    gpu_hours_only_now: float


def measured_run(
    run: SharedRun,
    govern: GovernanceRules,
    request: SimRequest,
    result: SimResult,
    notes: Sequence[str] = (),
) -> SharedRunDetail:
    """Return a run with its figures, measured against the entitlements of a policy."""
    waits: dict[str, dict[str, int]] = {}
    work: dict[str, float] = {}
    for job, _, _, held, end in result.meters.ends:
        waits.setdefault(job.team, {})[job.id] = end - job.submitted_ms - held
        work[job.id] = requested_milli(job) * (job.duration_ms or 0) / WHOLE / HOUR
    got = measure_entitlements(govern, request.jobs, result.meters, request.gpus)
    # If no job names a team, all jobs belong to one.
    parts = result.teams or {"": result.summary}
    teams = {
        team: _team_figures(part, list(waits.get(team, {}).values()), got.teams[team])
        for team, part in parts.items()
    }
    every = {job: wait for found in waits.values() for job, wait in found.items()}
    return SharedRunDetail(
        run=SharedRun(
            name=run.name,
            description=run.description,
            whole=_fleet_figures(result.summary, list(every.values()), teams, got),
            teams=teams,
        ),
        waits_ms=every,
        gpu_hours=work,
        notes=tuple(notes),
    )


def gain_of(before: SharedRunDetail, now: SharedRunDetail) -> BorrowingGain | None:
    """Return what one run gains over another, or None if either has no figures."""
    old, new = before.run.whole, now.run.whole
    if old is None or new is None:
        return None
    both = [job for job in now.waits_ms if job in before.waits_ms]
    only = [job for job in now.waits_ms if job not in before.waits_ms]
    waits = [sum(ran.waits_ms[job] for job in both) for ran in (before, now)]
    return BorrowingGain(
        jobs=len(both),
        wait_s_mean_before=_mean(waits[0], len(both)) / SECOND,
        wait_s_mean=_mean(waits[1], len(both)) / SECOND,
        delay_days_saved=(waits[0] - waits[1]) / DAY,
        gpu_utilization_before=old.gpu_utilization,
        gpu_utilization=new.gpu_utilization,
        allocated_waiting_before=old.allocated_waiting,
        allocated_waiting=new.allocated_waiting,
        jobs_only_now=len(only),
        gpu_hours_only_now=sum(now.gpu_hours[job] for job in only),
    )


def _team_figures(part: Summary, waits_ms: Sequence[int], got: TeamEntitlement) -> TeamFigures:
    return TeamFigures(
        jobs=part.jobs,
        finished=part.finished,
        refused=part.refused,
        wait_s_mean=part.avg_wait_s,
        wait_s_p50=_nearest_s(waits_ms, 0.5),
        wait_s_p90=_nearest_s(waits_ms, 0.9),
        gpu_hours=part.gpu_hours,
        entitled_gpu_hours=got.entitled,
        served=got.served,
        beyond_quota_gpu_hours=got.beyond_quota,
        preemptions=part.preemptions,
    )


def _fleet_figures(
    summary: Summary, waits_ms: Sequence[int], teams: dict[str, TeamFigures], got: Entitlements
) -> FleetFigures:
    worst = max(teams, key=lambda team: teams[team].wait_s_mean)
    least = min(teams, key=lambda team: teams[team].served)
    return FleetFigures(
        jobs=summary.jobs,
        finished=summary.finished,
        refused=summary.refused,
        unfinished=summary.jobs - summary.finished - summary.refused,
        wait_s_mean=summary.avg_wait_s,
        wait_s_p50=_nearest_s(waits_ms, 0.5),
        wait_s_p90=_nearest_s(waits_ms, 0.9),
        worst_team=worst,
        worst_wait_s_mean=teams[worst].wait_s_mean,
        delay_days=sum(waits_ms) / DAY,
        jain_served=got.jain,
        least_served_team=least,
        least_served=teams[least].served,
        jain_slowdown=summary.jain,
        gpu_utilization=summary.gpu_utilization,
        allocated_waiting=got.allocated_waiting,
        makespan_s=summary.makespan_s,
        preemptions=summary.preemptions,
        gpu_hours=summary.gpu_hours,
        gpu_hours_lost=summary.gpu_hours_lost,
        beyond_quota_gpu_hours=sum(team.beyond_quota for team in got.teams.values()),
    )


def _nearest_s(waits_ms: Sequence[int], share: float) -> float:
    ordered = sorted(waits_ms)
    return ordered[max(0, ceil(share * len(ordered)) - 1)] / SECOND if ordered else 0.0


def _mean(total: float, count: int) -> float:
    return total / count if count else 0.0
