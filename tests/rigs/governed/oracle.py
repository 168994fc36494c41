"""Oracles for small worlds: the best that could be done, found by trying everything.

Nothing here is quick or clever. The first oracle tries every set of waiting jobs on every
choice of nodes and tells the most GPUs that could start now. The second takes everybody out,
lets the one who asks in first and then the others back where they stood, dearest first, and
tells what must be given up at the least cost.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import combinations

from tenfold.fleet.fleet import Fleet
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Job, Run, Slot
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.units import Millis
from tests.rigs.fits import admits, bound_to, gang_on
from tests.rigs.governed.quota import Held, Quotas, add_to, amounts_of, held_by_teams
from tests.rigs.governed.quota_state import PLAIN, QuotaState

Places = tuple[Slot, ...]
Kind = tuple[str, str, int, int, int, tuple[str, ...], str]


def most_started(
    govern: GovernanceRules, fleet: Fleet, now_ms: Millis, *, among: Collection[JobId] = ()
) -> int:
    """Return the most GPUs that waiting jobs could start on now; whole GPUs are all they ask.

    With `among`, these must be among those who start.
    """
    search = _Best(govern, fleet, now_ms, among)
    jobs = sorted(
        fleet.pending.values(), key=lambda job: (job.id not in among, -job.shape.gpus, job.seq)
    )
    search.extend(jobs, 0)
    return search.best


class _Best:
    """All placements, one job after another, with a bound that cuts off what cannot win."""

    def __init__(
        self, govern: GovernanceRules, fleet: Fleet, now_ms: Millis, among: Collection[JobId]
    ) -> None:
        self._govern = govern
        self._among = among
        self._nodes = fleet.nodes
        self._free = {
            name: free if fleet.states[name] == "up" else 0
            for name, free in fleet.gpus_free.items()
        }
        self._quotas = Quotas(govern, fleet.nodes, now_ms)
        self._held: Held = held_by_teams(govern, fleet)
        self._seen: set[tuple[object, ...]] = set()
        self.best = 0

    def extend(self, jobs: Sequence[Job], so_far: int) -> None:
        """Try the jobs that are left in every way."""
        if not jobs or jobs[0].id not in self._among:
            self.best = max(self.best, so_far)
        most = sum(max((_gpus(way) for way in self._ways(job)), default=0) for job in jobs)
        state = (len(jobs), so_far, *self._free.values(), repr(self._held))
        if not jobs or so_far + most <= self.best or state in self._seen:
            return
        self._seen.add(state)
        job, others = jobs[0], jobs[1:]
        for way in self._ways(job):
            amounts = amounts_of(self._govern, self._nodes, way)
            self._move(way, -1)
            add_to(self._held, job.team, amounts)
            if not self._quotas.excess(self._held):
                self.extend(others, so_far + _gpus(way))
            add_to(self._held, job.team, amounts, -1)
            self._move(way, 1)
        if job.id not in self._among:
            self.extend(others, so_far)

    def _move(self, way: Places, sign: int) -> None:
        for slot in way:
            self._free[slot.node] += sign * slot.gpus

    def _ways(self, job: Job) -> list[Places]:
        return list(ways_of(job, self._nodes.values(), self._free))


def ways_of(job: Job, nodes: Iterable[Node], free: dict[NodeId, int]) -> Iterator[Places]:
    """Yield every choice of nodes alike on which a gang of whole GPUs could stand."""
    kinds: dict[Kind, list[Node]] = {}
    for node in nodes:
        if admits(node, job.shape):
            kinds.setdefault(_kind(node, job), []).append(node)
    for alike in kinds.values():
        gang = gang_on(alike[0], job.shape)
        if gang is None or not gang[1]:
            continue
        members, each, rest = gang
        wide = [node.id for node in alike if free[node.id] >= each]
        for chosen in combinations(wide, members):
            slots = tuple(Slot(name, each) for name in chosen)
            if not rest:
                yield slots
                continue
            for node in alike:
                if node.id not in chosen and free[node.id] >= rest:
                    yield (*slots, Slot(node.id, rest))


def least_lost(quota_state: QuotaState, job: Job) -> list[JobId] | None:
    """Return the cheapest of those who may go without whom a job starts; None if none will do."""
    may = [run for run in quota_state.fleet.running.values() if _may_go(quota_state, job, run)]
    best: tuple[int, list[JobId]] | None = None
    for count in range(len(may) + 1):
        for victims in combinations(may, count):
            spent = sum(cost(quota_state, run) for run in victims)
            names = [run.job.id for run in victims]
            if (best is None or spent < best[0]) and quota_state.fits(job, without=names):
                best = spent, names
    return None if best is None else best[1]


def kept_in_place(quota_state: QuotaState, job: Job) -> list[JobId]:
    """Take out all who may go, let the job in, then let them back, dearest first; who stays out?

    This is what a scheduler does that evicts everybody and schedules anew.
    """
    may = [run for run in quota_state.fleet.running.values() if _may_go(quota_state, job, run)]
    out = [run.job.id for run in may]
    for run in sorted(may, key=lambda one: (-cost(quota_state, one), one.started_ms)):
        without = [name for name in out if name != run.job.id]
        if quota_state.fits(job, without=without):
            out = without
    return out


def cost(quota_state: QuotaState, run: Run) -> int:
    """Return what a stop costs: work since the last checkpoint and a restart, for every GPU."""
    every_ms = (run.job.terms or PLAIN).checkpoint_every_ms
    lost_ms = (quota_state.now_ms - run.started_ms) % every_ms if every_ms else 0
    return _gpus(run.slots) * (lost_ms + quota_state.govern.restart_cost_ms)


def _may_go(quota_state: QuotaState, job: Job, run: Run) -> bool:
    return (
        not run.stopping
        and run.becoming is None
        and quota_state.is_preemptible(run)
        and any(quota_state.may_displace(job, amounts, run) for _, amounts in quota_state.asks(job))
    )


def _gpus(slots: Sequence[Slot]) -> int:
    return sum(slot.gpus for slot in slots)


def _kind(node: Node, job: Job) -> Kind:
    hardware = (str(node.site), node.accelerator, node.gpus, node.cpus_milli, node.memory_mib)
    return (*hardware, node.tags, bound_to(node, job.shape))
