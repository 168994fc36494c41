"""The figures of a governance what-if: of everybody, of each team, and of borrowing."""

from collections.abc import Sequence
from math import ceil

from msgspec import Struct

from tenfold.compose.simulation import SimAsk, SimResult
from tenfold.model.job.job import WHOLE
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.units import DAY, HOUR, SECOND
from tenfold.sim.measure.meters import Summary, asked_milli
from tenfold.study.compare.cell import CellError
from tenfold.study.govern.entitlement import Dealt, Got, dealt


class TeamFare(Struct, frozen=True, kw_only=True):
    """How a team fared. Waits are those of finished jobs; percentiles are nearest ranks."""

    jobs: int
    finished: int
    refused: int
    wait_s_mean: float
    wait_s_p50: float
    wait_s_p90: float
    gpu_hours: float
    deserved_gpu_hours: float
    served: float
    """The part of what it deserved that it got when it deserved it."""
    beyond_quota_gpu_hours: float
    preemptions: int


class Fare(Struct, frozen=True, kw_only=True):
    """How everybody fared."""

    jobs: int
    finished: int
    refused: int
    unfinished: int
    """Jobs that were still waiting when nothing more happened."""
    wait_s_mean: float
    wait_s_p50: float
    wait_s_p90: float
    worst_team: str
    """The team that waits longest, by its mean."""
    worst_wait_s_mean: float
    delay_days: float
    """Days that finished jobs waited, all together."""
    jain_served: float
    """Evenness over teams of the part that they got of what they deserved."""
    least_served_team: str
    least_served: float
    jain_slowdown: float
    """Evenness over teams of how much longer jobs took than they ran."""
    gpu_utilization: float
    allocated_waiting: float
    """Share of the GPUs held while any job waited."""
    makespan_s: float
    preemptions: int
    gpu_hours: float
    gpu_hours_lost: float
    beyond_quota_gpu_hours: float
    """Held by teams beyond their quota: what was borrowed."""


class Way(Struct, frozen=True, kw_only=True):
    """One way of sharing with its figures; with an error it has none."""

    name: str
    words: str
    whole: Fare | None = None
    teams: dict[str, TeamFare] = {}
    error: CellError | None = None


class Ran(Struct, frozen=True, kw_only=True):
    """A way that was run, and what each finished job waited and came for."""

    way: Way
    waits_ms: dict[str, int] = {}
    gpu_hours: dict[str, float] = {}
    notes: tuple[str, ...] = ()


class Gain(Struct, frozen=True, kw_only=True):
    """What borrowing gives over partitions; waits are of the jobs that finish under both."""

    jobs: int
    wait_s_mean_before: float
    wait_s_mean: float
    delay_days_saved: float
    gpu_utilization_before: float
    gpu_utilization: float
    allocated_waiting_before: float
    allocated_waiting: float
    jobs_only_now: int
    """Jobs that finish only where teams borrow: no partition holds them."""
    gpu_hours_only_now: float


def ran_of(
    way: Way, govern: GovernanceRules, ask: SimAsk, result: SimResult, notes: Sequence[str] = ()
) -> Ran:
    """Return a way with the figures of its run, measured by the rules of a policy."""
    waits: dict[str, dict[str, int]] = {}
    work: dict[str, float] = {}
    for job, _, _, held, end in result.meters.ends:
        waits.setdefault(job.team, {})[job.id] = end - job.submitted_ms - held
        work[job.id] = asked_milli(job) * (job.duration_ms or 0) / WHOLE / HOUR
    got = dealt(govern, ask.jobs, result.meters, ask.gpus)
    # Where no job names a team all of them are one.
    parts = result.teams or {"": result.summary}
    teams = {
        team: _team_fare(part, list(waits.get(team, {}).values()), got.teams[team])
        for team, part in parts.items()
    }
    every = {job: wait for found in waits.values() for job, wait in found.items()}
    return Ran(
        way=Way(
            name=way.name,
            words=way.words,
            whole=_fare(result.summary, list(every.values()), teams, got),
            teams=teams,
        ),
        waits_ms=every,
        gpu_hours=work,
        notes=tuple(notes),
    )


def gain_of(before: Ran, now: Ran) -> Gain | None:
    """Return what one way gains over another, or None where either has no figures."""
    old, new = before.way.whole, now.way.whole
    if old is None or new is None:
        return None
    both = [job for job in now.waits_ms if job in before.waits_ms]
    only = [job for job in now.waits_ms if job not in before.waits_ms]
    waits = [sum(ran.waits_ms[job] for job in both) for ran in (before, now)]
    return Gain(
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


def _team_fare(part: Summary, waits_ms: Sequence[int], got: Got) -> TeamFare:
    return TeamFare(
        jobs=part.jobs,
        finished=part.finished,
        refused=part.refused,
        wait_s_mean=part.avg_wait_s,
        wait_s_p50=_nearest_s(waits_ms, 0.5),
        wait_s_p90=_nearest_s(waits_ms, 0.9),
        gpu_hours=part.gpu_hours,
        deserved_gpu_hours=got.deserved,
        served=got.served,
        beyond_quota_gpu_hours=got.beyond_quota,
        preemptions=part.preemptions,
    )


def _fare(
    summary: Summary, waits_ms: Sequence[int], teams: dict[str, TeamFare], got: Dealt
) -> Fare:
    worst = max(teams, key=lambda team: teams[team].wait_s_mean)
    least = min(teams, key=lambda team: teams[team].served)
    return Fare(
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
