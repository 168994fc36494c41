"""Preview a policy change before it is applied: the same jobs under the old and the new policy.

The overall effect of a change is seldom its effect on each team, so both runs are compared team
by team, and one sentence says which teams gain and which lose.
"""

from collections.abc import Callable, Iterable, Sequence
from math import ceil
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from tenfold.compose.inputs import SimFiles, prepare
from tenfold.compose.simulation import SimResult, simulate
from tenfold.model.errors import TenfoldError
from tenfold.model.units import SECOND
from tenfold.report.figures import count
from tenfold.sim.measure.meters import Meters, Summary
from tenfold.study.compare.cell import CellError

MIN_CHANGE = 0.05
"""A mean wait that changes by a smaller fraction counts as unchanged."""
MIN_CHANGE_S = 60.0
"""So does one that changes by less than this."""


class TeamResult(Struct, frozen=True, kw_only=True):
    """Results of one team, or of all teams, under a policy."""

    jobs: int
    finished: int
    refused: int
    wait_s_mean: float
    wait_s_p90: float
    """Nearest rank; of finished jobs, as the mean is."""
    gpu_hours: float
    share: float
    """Of the GPU-hours of all teams."""
    preemptions: int

    @property
    def unfinished(self) -> int:
        """Jobs still pending at the end of the run."""
        return self.jobs - self.finished - self.refused


class PolicyRun(Struct, frozen=True, kw_only=True):
    """A run under one policy; a run that failed has no figures."""

    policy: str
    whole: TeamResult | None = None
    teams: dict[str, TeamResult] = {}
    jain: float = 0.0
    gpu_utilization: float = 0.0
    makespan_s: float = 0.0
    notes: tuple[str, ...] = ()
    error: CellError | None = None


class Preview(Struct, frozen=True, kw_only=True):
    """Both runs, and which teams gain or lose."""

    before: PolicyRun
    after: PolicyRun
    verdict: str
    gains: tuple[str, ...]
    loses: tuple[str, ...]


class PolicyRunMap(Protocol):
    """Runs both policies in other processes; see `process_map`."""

    def __call__(
        self,
        work: Callable[[SimFiles], PolicyRun],
        tasks: Sequence[SimFiles],
        /,
        *,
        lost: Callable[[SimFiles, str], PolicyRun],
        done: Callable[[int], None],
    ) -> list[PolicyRun]:
        """Return a run for each set of files, in order."""
        ...


def preview(
    files: SimFiles, new: str, old: str, run: PolicyRunMap, done: Callable[[int], None]
) -> Preview:
    """Run the same jobs under the old and the new policy, and find which teams gain or lose."""
    tasks = [replace(files, policy=named) for named in (old, new)]
    before, after = run(run_policy, tasks, lost=lost_run, done=done)
    gains, loses = _gains_and_losses(before, after)
    return Preview(
        before=before,
        after=after,
        verdict=_verdict(before, after, gains, loses),
        gains=gains,
        loses=loses,
    )


def run_policy(files: SimFiles) -> PolicyRun:
    """Run one policy and return its figures; an error is returned as a result."""
    try:
        prepared = prepare(files)
        result = simulate(prepared.request)
    except TenfoldError as error:
        why = CellError(code=error.code, message=error.message, hint=error.hint)
        return PolicyRun(policy=files.policy, error=why)
    except Exception as error:
        why = CellError(code="bug", message=f"{type(error).__name__}: {error}")
        return PolicyRun(policy=files.policy, error=why)
    notes = (*prepared.notes, *prepared.assumptions(result.summary))
    return policy_run(files.policy, result, notes)


def lost_run(files: SimFiles, why: str) -> PolicyRun:
    """Return the result for a run whose process died."""
    error = CellError(code="cell-lost", message=f"the run did not finish: {why}")
    return PolicyRun(policy=files.policy, error=error)


def policy_run(policy: str, result: SimResult, notes: Sequence[str] = ()) -> PolicyRun:
    """Return the figures of a run, overall and by team."""
    waits = _waits_ms(result.meters)
    every = sorted(wait for found in waits.values() for wait in found)
    summary = result.summary
    teams = {
        team: _team_result(part, waits.get(team, []), summary.gpu_hours)
        for team, part in result.teams.items()
    }
    return PolicyRun(
        policy=policy,
        whole=_team_result(summary, every, summary.gpu_hours),
        teams=teams,
        jain=summary.jain,
        gpu_utilization=summary.gpu_utilization,
        makespan_s=summary.makespan_s,
        notes=tuple(notes),
    )


def _waits_ms(meters: Meters) -> dict[str, list[int]]:
    waits: dict[str, list[int]] = {}
    for job, _, _, held, end in meters.ends:
        waits.setdefault(job.team, []).append(end - job.submitted_ms - held)
    return {team: sorted(found) for team, found in waits.items()}


def _team_result(part: Summary, waits_ms: Sequence[int], gpu_hours: float) -> TeamResult:
    p90 = waits_ms[ceil(0.9 * len(waits_ms)) - 1] if waits_ms else 0
    return TeamResult(
        jobs=part.jobs,
        finished=part.finished,
        refused=part.refused,
        wait_s_mean=part.avg_wait_s,
        wait_s_p90=p90 / SECOND,
        gpu_hours=part.gpu_hours,
        share=part.gpu_hours / gpu_hours if gpu_hours else 0.0,
        preemptions=part.preemptions,
    )


def _gains_and_losses(
    before: PolicyRun, after: PolicyRun
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the teams that gain and those that lose, by mean wait and then by name.

    A team with more unfinished jobs loses, whatever its other jobs waited: the mean covers only
    finished jobs.
    """
    gains: list[tuple[float, str]] = []
    loses: list[tuple[float, str]] = []
    for team, new in after.teams.items():
        old = before.teams.get(team)
        if old is None:
            continue  # That run failed, so there is nothing to compare with.
        change = new.wait_s_mean - old.wait_s_mean
        more_unfinished = _unfinished(new) - _unfinished(old)
        significant = abs(change) > max(MIN_CHANGE_S, MIN_CHANGE * old.wait_s_mean)
        if more_unfinished > 0 or (more_unfinished == 0 and significant and change > 0):
            loses.append((-change, team))
        elif more_unfinished < 0 or significant:
            gains.append((change, team))
    return tuple(team for _, team in sorted(gains)), tuple(team for _, team in sorted(loses))


def _unfinished(side: TeamResult) -> int:
    return side.jobs - side.finished


def _verdict(
    before: PolicyRun, after: PolicyRun, gains: Sequence[str], loses: Sequence[str]
) -> str:
    if before.whole is None or after.whole is None:
        return "no verdict: one of the runs failed"
    if not after.teams:
        return "no teams to compare: the jobs have no team"
    same = len(after.teams) - len(gains) - len(loses)
    finish_more, shorter = _split(gains, before, after)
    finish_fewer, longer = _split(loses, before, after)
    parts: list[str] = []
    if shorter or longer:
        changes = [("drops", shorter), ("rises", longer)]
        if not shorter:
            changes.reverse()
        (first, teams), (second, others) = changes
        parts.append(f"mean wait {first} for {_named(teams)}")
        parts.append(f"it {second} for {_named(others) if others else 'no team'}")
    if finish_more:
        parts.append(f"{_named(finish_more)} {_verb(finish_more, 'finish')} more jobs")
    if finish_fewer:
        parts.append(f"{_named(finish_fewer)} {_verb(finish_fewer, 'finish')} fewer jobs")
    if same:
        which = "any team" if not parts else f"{same} of {count(len(after.teams), 'team')}"
        parts.append(f"no difference for {which}")
    text = "; ".join(parts)
    more_unfinished = _unfinished(after.whole) - _unfinished(before.whole)
    if more_unfinished > 0:
        text += f"; {more_unfinished:,} more {'job' if more_unfinished == 1 else 'jobs'} unfinished"
    return text


def _named(teams: Iterable[str]) -> str:
    names = [f"`{team}`" if team else "jobs without a team" for team in teams]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _split(
    teams: Sequence[str], before: PolicyRun, after: PolicyRun
) -> tuple[list[str], list[str]]:
    """Return the teams of which other jobs finish, and those whose mean wait alone changes."""
    by_jobs = [
        team for team in teams if _unfinished(after.teams[team]) != _unfinished(before.teams[team])
    ]
    return by_jobs, [team for team in teams if team not in by_jobs]


def _verb(teams: Sequence[str], verb: str) -> str:
    return f"{verb}es" if len(teams) == 1 and teams[0] else verb
