"""Governance what-if: the same jobs without rules, with partitions, and under a policy.

Every way is run from the same files, in a process of its own. What teams deserve is taken
from the policy in all of them, so that a line in order of arrival and a partition are held
against the same measure as the policy itself; see `deserved`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from tenfold.compose.inputs import SimFiles, policy_of, prepare
from tenfold.compose.simulation import simulate
from tenfold.model.errors import InputError, TenfoldError
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.policy.policy import Policy
from tenfold.study.compare.cell import CellError
from tenfold.study.govern.figures import Gain, Ran, Way, gain_of, ran_of

WayName = Literal["fifo", "tenfold", "partitions", "weights", "governed"]
WAYS: Mapping[WayName, str] = {
    "fifo": "one line in order of arrival",
    "tenfold": "no teams; short jobs first, as far as they can be told",
    "partitions": "each team has its quota and never more",
    "weights": "fair share by weight; nobody is sure of anything",
    "governed": "the policy as it is written",
}
"""In which ways the jobs are run, and what that means."""


class WayTask(Struct, frozen=True, kw_only=True):
    """One way to run; the policy of the files is the one that governs."""

    files: SimFiles
    way: WayName


class Governance(Struct, frozen=True, kw_only=True):
    """All ways, and what borrowing gains; None where a run that would tell it failed."""

    policy: str
    ways: tuple[Way, ...]
    borrowing: Gain | None
    notes: tuple[str, ...]


class WayMap(Protocol):
    """Runs ways somewhere; see `process_map`."""

    def __call__(
        self,
        work: Callable[[WayTask], Ran],
        tasks: Sequence[WayTask],
        /,
        *,
        lost: Callable[[WayTask, str], Ran],
        done: Callable[[int], None],
    ) -> list[Ran]:
        """Return what came of each way, in order."""
        ...


def governance(files: SimFiles, run: WayMap, done: Callable[[int], None]) -> Governance:
    """Run the same jobs in all ways, or raise where the policy knows no teams."""
    if policy_of(files.policy).name != "governed":
        raise InputError(
            "not-governed",
            f"`{files.policy}` knows no teams, so there is nothing to hold it against",
            'give a policy file with `name = "governed"`, or the name `governed`',
        )
    tasks = [WayTask(files=files, way=way) for way in WAYS]
    ran = run(run_way, tasks, lost=lost_way, done=done)
    by_name = dict(zip(WAYS, ran, strict=True))
    return Governance(
        policy=files.policy,
        ways=tuple(each.way for each in ran),
        borrowing=gain_of(by_name["partitions"], by_name["governed"]),
        notes=tuple(dict.fromkeys(note for each in ran for note in each.notes)),
    )


def run_way(task: WayTask) -> Ran:
    """Run one way from its files to its figures; an error is a result too."""
    try:
        prepared = prepare(task.files)
        govern = prepared.ask.policy.govern or GovernanceRules()
        policy = policy_for(task.way, prepared.ask.policy, govern)
        ask = replace(prepared.ask, policy=policy)
        return ran_of(_way(task), govern, ask, simulate(ask), prepared.notes)
    except TenfoldError as error:
        why = CellError(code=error.code, message=error.message, hint=error.hint)
        return Ran(way=_way(task, why))
    except Exception as error:
        why = CellError(code="bug", message=f"{type(error).__name__}: {error}")
        return Ran(way=_way(task, why))


def lost_way(task: WayTask, why: str) -> Ran:
    """Return what is left of a run whose process went away."""
    error = CellError(code="cell-lost", message=f"the run was lost: {why}")
    return Ran(way=_way(task, error))


def policy_for(way: WayName, policy: Policy, govern: GovernanceRules) -> Policy:
    """Return the policy that runs a way."""
    match way:
        case "fifo" | "tenfold":
            return Policy(name=way, placement=policy.placement)
        case "partitions":
            return replace(policy, govern=partitioned(govern))
        case "weights":
            return replace(policy, govern=weighted(govern))
        case "governed":
            return replace(policy, govern=govern)


def partitioned(govern: GovernanceRules) -> GovernanceRules:
    """Return the same rules with quotas as walls: nobody borrows anything."""
    named = dict.fromkeys(
        name
        for team in govern.teams
        for amounts in (team.quota, *(quota for _, quota in team.hours))
        for name in amounts
    )
    if not named:
        raise InputError(
            "no-quotas",
            "no team has a quota, so there is nothing to part the fleet by",
            "give teams a `quota` in the policy or in the fleet file",
        )
    walls = dict.fromkeys(named, 0)
    return replace(
        govern,
        teams=tuple(
            # A team that has no quota of its own lives within the walls of its parent.
            team
            if team.parent is not None and not team.quota and not team.hours
            else replace(team, borrow=walls)
            for team in govern.teams
        ),
    )


def weighted(govern: GovernanceRules) -> GovernanceRules:
    """Return the same teams with nothing but their weights."""
    bare = (replace(team, quota={}, borrow={}, lend={}, hours=()) for team in govern.teams)
    return replace(govern, teams=tuple(bare))


def _way(task: WayTask, error: CellError | None = None) -> Way:
    return Way(name=task.way, words=WAYS[task.way], error=error)
