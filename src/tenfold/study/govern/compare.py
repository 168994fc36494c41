"""Compare governance modes: the same jobs without rules, with partitions, and under a policy.

Every mode runs from the same files in its own process. Entitlements come from the policy in all
modes, so FIFO and partitions are measured by the same yardstick as the policy itself; see
`entitlement`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from tenfold.compose.inputs import SimFiles, policy_of, prepare
from tenfold.compose.simulation import simulate
from tenfold.model.errors import InputError, TenfoldError
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.policy.policy import Policy
from tenfold.study.compare.cell import CellError
from tenfold.study.govern.figures import (
    BorrowingGain,
    SharedRun,
    SharedRunDetail,
    gain_of,
    measured_run,
)

SharingMode = Literal["fifo", "tenfold", "partitions", "weights", "governed"]
SHARING_MODES: Mapping[SharingMode, str] = {
    "fifo": "one queue, first come, first served",
    "tenfold": "no teams; jobs expected to be short go first",
    "partitions": "each team has its quota and cannot borrow",
    "weights": "fair share by weight, without quotas",
    "governed": "the policy as written",
}
"""Every sharing mode with its description."""


class SharingTask(Struct, frozen=True, kw_only=True):
    """One mode to run; the files name the policy that sets entitlements."""

    files: SimFiles
    mode: SharingMode


class GovernanceComparison(Struct, frozen=True, kw_only=True):
    """All modes, and what borrowing gains; None if either run it compares failed."""

    policy: str
    runs: tuple[SharedRun, ...] = field(name="ways")
    borrowing: BorrowingGain | None
    notes: tuple[str, ...]


class SharingMap(Protocol):
    """Runs modes in other processes; see `process_map`."""

    def __call__(
        self,
        work: Callable[[SharingTask], SharedRunDetail],
        tasks: Sequence[SharingTask],
        /,
        *,
        lost: Callable[[SharingTask, str], SharedRunDetail],
        done: Callable[[int], None],
    ) -> list[SharedRunDetail]:
        """Return the result of each mode, in order."""
        ...


def governance(
    files: SimFiles, run: SharingMap, done: Callable[[int], None]
) -> GovernanceComparison:
    """Run the same jobs in all modes; raise if the policy has no teams."""
    if policy_of(files.policy).name != "governed":
        raise InputError(
            "not-governed",
            f"policy `{files.policy}` has no teams, so there is nothing to compare",
            'use a policy file with `name = "governed"`, or the built-in policy `governed`',
        )
    tasks = [SharingTask(files=files, mode=mode) for mode in SHARING_MODES]
    results = run(run_mode, tasks, lost=lost_run, done=done)
    by_name = dict(zip(SHARING_MODES, results, strict=True))
    return GovernanceComparison(
        policy=files.policy,
        runs=tuple(each.run for each in results),
        borrowing=gain_of(by_name["partitions"], by_name["governed"]),
        notes=tuple(dict.fromkeys(note for each in results for note in each.notes)),
    )


def run_mode(task: SharingTask) -> SharedRunDetail:
    """Run one mode and return its figures; an error is returned as a result."""
    try:
        prepared = prepare(task.files)
        govern = prepared.request.policy.govern or GovernanceRules()
        policy = policy_for(task.mode, prepared.request.policy, govern)
        request = replace(prepared.request, policy=policy)
        result = simulate(request)
        notes = (*prepared.notes, *prepared.assumptions(result.summary))
        return measured_run(_shared_run(task), govern, request, result, notes)
    except TenfoldError as error:
        why = CellError(code=error.code, message=error.message, hint=error.hint)
        return SharedRunDetail(run=_shared_run(task, why))
    except Exception as error:
        why = CellError(code="bug", message=f"{type(error).__name__}: {error}")
        return SharedRunDetail(run=_shared_run(task, why))


def lost_run(task: SharingTask, why: str) -> SharedRunDetail:
    """Return the result for a run whose process died."""
    error = CellError(code="cell-lost", message=f"the run did not finish: {why}")
    return SharedRunDetail(run=_shared_run(task, error))


def policy_for(mode: SharingMode, policy: Policy, govern: GovernanceRules) -> Policy:
    """Return the policy for a mode."""
    match mode:
        case "fifo" | "tenfold":
            return Policy(name=mode, placement=policy.placement)
        case "partitions":
            return replace(policy, govern=with_partitions(govern))
        case "weights":
            return replace(policy, govern=with_weights_only(govern))
        case "governed":
            return replace(policy, govern=govern)


def with_partitions(govern: GovernanceRules) -> GovernanceRules:
    """Return the same rules with borrowing turned off."""
    named = dict.fromkeys(
        name
        for team in govern.teams
        for amounts in (team.quota, *(quota for _, quota in team.hours))
        for name in amounts
    )
    if not named:
        raise InputError(
            "no-quotas",
            "no team has a quota, so the fleet cannot be partitioned",
            "set a `quota` for each team in the policy file or the fleet file",
        )
    no_borrowing = dict.fromkeys(named, 0)
    return replace(
        govern,
        teams=tuple(
            # A team without a quota of its own shares its parent's partition.
            team
            if team.parent is not None and not team.quota and not team.hours
            else replace(team, borrow=no_borrowing)
            for team in govern.teams
        ),
    )


def with_weights_only(govern: GovernanceRules) -> GovernanceRules:
    """Return the same teams with weights only: no quotas and no limits."""
    bare = (replace(team, quota={}, borrow={}, lend={}, hours=()) for team in govern.teams)
    return replace(govern, teams=tuple(bare))


def _shared_run(task: SharingTask, error: CellError | None = None) -> SharedRun:
    return SharedRun(name=task.mode, description=SHARING_MODES[task.mode], error=error)
