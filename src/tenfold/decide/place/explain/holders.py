"""Who holds the capacity a job waits for, and how much of its quota its team uses."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nlargest

from msgspec import Struct, field

from tenfold.decide.place.queue.pending_queues import JobClass
from tenfold.decide.place.quota.allocations import Allocation
from tenfold.decide.place.quota.team_tree import UNLIMITED, Team
from tenfold.decide.place.state.scheduler_state import SchedulerState
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.policy.governance import ANY
from tenfold.model.units import Millis

SHOWN = 5
"""How many of the largest jobs are listed."""
Sized = tuple[int, int, int, Allocation]
"""(GPUs in thousandths, start and number for ties: older first, allocation)."""


class JobUsage(Struct, frozen=True, kw_only=True):
    """One of the largest jobs that hold the capacity."""

    job_id: JobId
    team: TeamId
    gpus_milli: int
    since_ms: Millis
    preemptible: bool
    stopping: bool


class TeamUsage(Struct, frozen=True, kw_only=True):
    """What one team holds of the capacity in question."""

    team: TeamId
    gpus_milli: int


class Holders(Struct, frozen=True, kw_only=True):
    """Who holds the capacity, largest first."""

    teams: tuple[TeamUsage, ...] = ()
    jobs: tuple[JobUsage, ...] = ()
    others_gpus_milli: int = 0
    """What teams hold whose names the reader may not see."""


class QuotaUsage(Struct, frozen=True, kw_only=True):
    """The usage of one resource by a team, or by a parent of it, against its quota.

    Amounts are thousandths of a GPU, or micro-USD an hour for `usd`.
    """

    team: TeamId
    """Empty for all teams together."""
    resource: str
    requested: int = field(name="asked")
    held: int
    quota: int
    borrowed: int
    limit: int | None
    """The most it may use; None if it may borrow without limit."""


class UsageIndex:
    """Usage by team and type, counted once for all questions about one moment."""

    def __init__(self, state: SchedulerState) -> None:
        self._parts: dict[tuple[Team, str], tuple[int, list[Sized]]] = {}
        """By team and type: GPUs in total, and the largest jobs."""
        resources = state.tree.resources
        every, names = resources.number[ANY], resources.names
        found: dict[tuple[Team, int], list[Sized]] = {}
        for each in state.allocations.held.values():
            for number, milli in each.amounts:
                if number == every:
                    kind = each.amounts[0][0]
                    place = (milli, -each.started_ms, -each.job.seq, each)
                    found.setdefault((each.team, kind), []).append(place)
        for (team, kind), places in found.items():
            total = sum(place[0] for place in places)
            largest = nlargest(SHOWN, places, key=_size)
            self._parts[team, names[kind]] = (total, largest)

    def of_types(self, accelerators: Sequence[str]) -> Holders:
        """Return who holds GPUs of these types."""
        return self._merged(lambda team, kind: kind in accelerators)

    def under(self, node: Team) -> Holders:
        """Return who holds what counts against a limit: a team and all teams below it."""
        return self._merged(lambda team, kind: node in team.path)

    def _merged(self, counts: Callable[[Team, str], bool]) -> Holders:
        totals: dict[TeamId, int] = {}
        largest: list[Sized] = []
        for (team, kind), (total, places) in self._parts.items():
            if counts(team, kind):
                totals[team.id] = totals.get(team.id, 0) + total
                largest += places
        return _holders(totals, largest)


def holders_on(state: SchedulerState, nodes: Iterable[NodeId]) -> Holders:
    """Return who holds these nodes."""
    found: dict[JobId, Allocation] = {}
    for node in nodes:
        found.update((each.job.id, each) for each in state.allocations.on(node))
    return _held(found.values())


def quota_usage(state: SchedulerState, job_class: JobClass) -> tuple[QuotaUsage, ...]:
    """Return the usage of a team and its parents, for each resource that quotas name."""
    resources = state.tree.resources
    return tuple(
        _quota_usage(node, resources.names[number], number, amount)
        for number, amount in job_class.amounts
        if resources.governed[number]
        for node in job_class.team.path
    )


def _quota_usage(node: Team, resource: str, number: int, requested: int) -> QuotaUsage:
    held, quota, borrow = node.held[number], node.effective[number], node.borrow[number]
    return QuotaUsage(
        team=node.id,
        resource=resource,
        requested=requested,
        held=held,
        quota=quota,
        borrowed=max(0, held - quota),
        limit=None if borrow >= UNLIMITED else quota + borrow,
    )


def _held(allocations: Iterable[Allocation]) -> Holders:
    totals: dict[TeamId, int] = {}
    sized: list[Sized] = []
    for each in allocations:
        gpus = each.gpus_milli
        totals[each.job.team] = totals.get(each.job.team, 0) + gpus
        sized.append((gpus, -each.started_ms, -each.job.seq, each))
    return _holders(totals, sized)


def _holders(totals: Mapping[TeamId, int], sized: Iterable[Sized]) -> Holders:
    teams = sorted(totals.items(), key=lambda item: (-item[1], item[0]))
    return Holders(
        teams=tuple(TeamUsage(team=team, gpus_milli=gpus) for team, gpus in teams if gpus),
        jobs=tuple(
            JobUsage(
                job_id=each.job.id,
                team=each.job.team,
                gpus_milli=gpus,
                since_ms=Millis(each.started_ms),
                preemptible=each.job.terms is None or each.job.terms.preemptible,
                stopping=each.stopping,
            )
            for gpus, _, _, each in nlargest(SHOWN, sized, key=_size)
        ),
    )


def _size(place: Sized) -> tuple[int, int, int]:
    return place[:3]
