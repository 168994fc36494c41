"""A change of policy before it is applied: the same jobs under the old and the new one.

What a change does on the whole is seldom what it does to each team, and it is the teams that
will ask. So both runs are laid side by side team by team, and one sentence says who gains and
who loses.
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
from tenfold.sim.measure.meters import Meters, Summary
from tenfold.study.compare.cell import CellError

NOTICED = 0.05
"""A mean wait that changes by a smaller part is called the same."""
NOTICED_S = 60.0
"""So is one that changes by less than this."""


class TeamSide(Struct, frozen=True, kw_only=True):
    """What a policy does to one team, or to all."""

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
        """Jobs that were still waiting when nothing more happened."""
        return self.jobs - self.finished - self.refused


class Side(Struct, frozen=True, kw_only=True):
    """A run under one policy; with an error it has no figures."""

    policy: str
    whole: TeamSide | None = None
    teams: dict[str, TeamSide] = {}
    jain: float = 0.0
    gpu_utilization: float = 0.0
    makespan_s: float = 0.0
    notes: tuple[str, ...] = ()
    error: CellError | None = None


class Preview(Struct, frozen=True, kw_only=True):
    """The old policy and the new one, and what the change comes to."""

    before: Side
    after: Side
    verdict: str
    gains: tuple[str, ...]
    loses: tuple[str, ...]


class SideMap(Protocol):
    """Runs both sides somewhere; see `process_map`."""

    def __call__(
        self,
        work: Callable[[SimFiles], Side],
        tasks: Sequence[SimFiles],
        /,
        *,
        lost: Callable[[SimFiles, str], Side],
        done: Callable[[int], None],
    ) -> list[Side]:
        """Return a side for each set of files, in order."""
        ...


def preview(
    files: SimFiles, new: str, old: str, run: SideMap, done: Callable[[int], None]
) -> Preview:
    """Run the same jobs under an old and a new policy and say who gains by the change."""
    tasks = [replace(files, policy=named) for named in (old, new)]
    before, after = run(run_side, tasks, lost=lost_side, done=done)
    gains, loses = _turned(before, after)
    return Preview(
        before=before,
        after=after,
        verdict=_verdict(before, after, gains, loses),
        gains=gains,
        loses=loses,
    )


def run_side(files: SimFiles) -> Side:
    """Run one policy from its files to its figures; an error is a result too."""
    try:
        prepared = prepare(files)
        result = simulate(prepared.ask)
    except TenfoldError as error:
        why = CellError(code=error.code, message=error.message, hint=error.hint)
        return Side(policy=files.policy, error=why)
    except Exception as error:
        why = CellError(code="bug", message=f"{type(error).__name__}: {error}")
        return Side(policy=files.policy, error=why)
    return side_of(files.policy, result, prepared.notes)


def lost_side(files: SimFiles, why: str) -> Side:
    """Return what is left of a run whose process went away."""
    error = CellError(code="cell-lost", message=f"the run was lost: {why}")
    return Side(policy=files.policy, error=error)


def side_of(policy: str, result: SimResult, notes: Sequence[str] = ()) -> Side:
    """Return the figures of a run, of all teams and of each."""
    waits = _waits_ms(result.meters)
    every = sorted(wait for found in waits.values() for wait in found)
    summary = result.summary
    teams = {
        team: _team_side(part, waits.get(team, []), summary.gpu_hours)
        for team, part in result.teams.items()
    }
    return Side(
        policy=policy,
        whole=_team_side(summary, every, summary.gpu_hours),
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


def _team_side(part: Summary, waits_ms: Sequence[int], gpu_hours: float) -> TeamSide:
    p90 = waits_ms[ceil(0.9 * len(waits_ms)) - 1] if waits_ms else 0
    return TeamSide(
        jobs=part.jobs,
        finished=part.finished,
        refused=part.refused,
        wait_s_mean=part.avg_wait_s,
        wait_s_p90=p90 / SECOND,
        gpu_hours=part.gpu_hours,
        share=part.gpu_hours / gpu_hours if gpu_hours else 0.0,
        preemptions=part.preemptions,
    )


def _turned(before: Side, after: Side) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the teams that gain and those that lose, by mean wait and then by name.

    A team that has more jobs left over loses, whatever the others of its jobs waited: the
    mean knows only those that came to an end.
    """
    gains: list[tuple[float, str]] = []
    loses: list[tuple[float, str]] = []
    for team, new in after.teams.items():
        old = before.teams.get(team)
        if old is None:
            continue  # That run failed, and there is nothing to compare with.
        change = new.wait_s_mean - old.wait_s_mean
        left = _left(new) - _left(old)
        noticed = abs(change) > max(NOTICED_S, NOTICED * old.wait_s_mean)
        if left > 0 or (left == 0 and noticed and change > 0):
            loses.append((-change, team))
        elif left < 0 or noticed:
            gains.append((change, team))
    return tuple(team for _, team in sorted(gains)), tuple(team for _, team in sorted(loses))


def _left(side: TeamSide) -> int:
    return side.jobs - side.finished


def _verdict(before: Side, after: Side, gains: Sequence[str], loses: Sequence[str]) -> str:
    if before.whole is None or after.whole is None:
        return "one of the runs failed, so nothing can be said"
    if not after.teams:
        return "the jobs name no teams, so nobody gains at another's cost"
    same = len(after.teams) - len(gains) - len(loses)
    parts = [
        f"{_named(gains)} {_verb(gains, 'gain')}" if gains else "nobody gains",
        f"{_named(loses)} {_verb(loses, 'lose')}" if loses else "nobody loses",
    ]
    if same:
        sees = "sees" if same == 1 else "see"
        parts.append(f"{same} of {len(after.teams)} teams {sees} no difference")
    said = f"by mean wait, {'; '.join(parts)}"
    left = _left(after.whole) - _left(before.whole)
    if left > 0:
        said += f"; {left:,} more {'job is' if left == 1 else 'jobs are'} left over"
    return said


def _named(teams: Iterable[str]) -> str:
    names = [f"`{team}`" if team else "jobs without a team" for team in teams]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _verb(teams: Sequence[str], verb: str) -> str:
    return f"{verb}s" if len(teams) == 1 and teams[0] else verb
