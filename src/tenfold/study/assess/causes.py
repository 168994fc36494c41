"""Why jobs waited, computed from what ran where; the scheduler's own reasons are not read.

The record is swept in order of time with the free GPUs of every node. Each wait is looked at in
the middles of a few even parts of it; what kept the job from starting at that moment counts for
that part.
"""

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from msgspec import Struct

from tenfold.model.job.recorded import RecordedJob, RecordedNode
from tenfold.study.assess.evidence import Evidence

LOOKS = 8
"""How often a wait is looked at."""
SHORT_S = 60.0
"""A shorter wait is the pace of the scheduler."""
HOUR_S = 3_600.0
MEMORY_GIB_OFF = 0.5
"""Slurm prints the memory of a job in rounded units."""

CAUSES: Mapping[str, str] = {
    "own": "Held by the user: dependency, begin time or hold",
    "full": "No free GPUs that the job can use",
    "scattered": "GPUs free, but fragmented across too many nodes",
    "cpus": "GPUs free on nodes without free CPUs or memory",
    "order": "Nodes free, but reserved for a job ahead in the queue",
    "limit": "Nodes free and first in the queue: a limit of its account or QOS, or a slow pass",
    "fleet": "Requests more than its partition has today",
    "free": "GPUs free in the fleet; the cause is unknown without node names",
    "again": "Preempted, and waiting again",
    "pace": "Less than a minute: scheduling interval",
}


class CauseRow(Struct, frozen=True, kw_only=True):
    """One cause of waiting."""

    code: str
    title: str
    waiting_hours: float
    share: float
    gpu_hours_waiting: float
    jobs: int
    """Jobs that waited for this longest."""


class Causes(Struct, frozen=True, kw_only=True):
    """Why jobs waited."""

    rows: tuple[CauseRow, ...]
    by_account: dict[str, dict[str, float]]
    """Hours of waiting of each account, by cause."""


class Run(NamedTuple):
    """One run, recorded or simulated, and the GPUs and CPUs that it holds on each node."""

    record: RecordedJob
    started_s: float
    ended_s: float
    nodes: tuple[str, ...]
    counts: bool = True
    """Whether its wait counts; a run that is only there to hold GPUs does not."""
    again_s: float = 0.0
    """How long it waited after its first start."""


class _Look(NamedTuple):
    at_s: float
    job: int
    weight_s: float


def wait_causes(evidence: Evidence, runs: Sequence[Run]) -> Causes:
    """Return why the jobs of these runs waited."""
    sweep = _Sweep(evidence, runs)
    per_job = sweep.causes()
    hours: dict[str, float] = {}
    gpu_hours: dict[str, float] = {}
    longest: dict[str, int] = {}
    accounts: dict[str, dict[str, float]] = {}
    for run, causes in zip(runs, per_job, strict=True):
        if not causes:
            continue
        longest_code = max(causes, key=lambda code: causes[code])
        longest[longest_code] = longest.get(longest_code, 0) + 1
        mine = accounts.setdefault(run.record.account or "(none)", {})
        for code, seconds in causes.items():
            hours[code] = hours.get(code, 0.0) + seconds / HOUR_S
            mine[code] = mine.get(code, 0.0) + seconds / HOUR_S
            gpu_hours[code] = gpu_hours.get(code, 0.0) + run.record.gpus * seconds / HOUR_S
    whole = sum(hours.values())
    rows = [
        CauseRow(
            code=code,
            title=CAUSES[code],
            waiting_hours=hours[code],
            share=hours[code] / whole if whole else 0.0,
            gpu_hours_waiting=gpu_hours[code],
            jobs=longest.get(code, 0),
        )
        for code in hours
    ]
    rows.sort(key=lambda row: (-row.waiting_hours, row.code))
    return Causes(rows=tuple(rows), by_account=accounts)


class _Group:
    """The nodes that a class of jobs may use, by how many GPUs are free on each."""

    def __init__(self, gpus: Mapping[str, int]) -> None:
        self.gpus = gpus
        self.most = max(gpus.values(), default=0)
        self.levels = [0] * (self.most + 1)
        for count in gpus.values():
            self.levels[count] += 1
        self.waiting: list[tuple[int, float, int]] = []

    def move(self, before: int, after: int) -> None:
        self.levels[before] -= 1
        self.levels[after] += 1

    def with_free(self, least: int) -> int:
        """Return how many nodes have at least so many GPUs free."""
        return sum(self.levels[least:]) if least <= self.most else 0

    def free(self) -> int:
        return sum(level * many for level, many in enumerate(self.levels))

    def could_hold(self, per_node: int, members: int) -> bool:
        return sum(count >= per_node for count in self.gpus.values()) >= members


class _Sweep:
    """The fleet through time."""

    def __init__(self, evidence: Evidence, runs: Sequence[Run]) -> None:
        self._runs = runs
        self._gpus: dict[str, int] = {}
        self._cpus: dict[str, float] = {}
        self._memory: dict[str, float] = {}
        self._types: dict[str, str] = {}
        self._partitions: dict[str, tuple[str, ...]] = {}
        self._describe(evidence)
        self._placed = any(run.nodes for run in runs)
        self._free = dict(self._gpus)
        self._cpus_free, self._memory_free = dict(self._cpus), dict(self._memory)
        self._whole = sum(self._gpus.values())
        self._allocated = 0.0
        self._groups: dict[tuple[str, str], _Group] = {}
        self._of_node: dict[str, list[_Group]] = {}
        self._group_of: list[_Group] = [self._group(run.record) for run in runs]

    def causes(self) -> list[dict[str, float]]:
        """Return, for each run, the seconds that it waited by cause."""
        found: list[dict[str, float]] = [{} for _ in self._runs]
        looks = self._looks(found)
        steps: list[tuple[float, int, int]] = []
        for place, run in enumerate(self._runs):
            # At one moment ends come before looks, and looks before starts.
            steps += [(run.ended_s, 0, place), (run.started_s, 3, place)]
            steps.append((_eligible_s(run), 1, place))
        steps += [(look.at_s, 2, place) for place, look in enumerate(looks)]
        steps.sort()
        started: list[bool] = [False] * len(self._runs)
        for _, kind, place in steps:
            if kind == 0:
                if started[place]:
                    self._hold(place, -1)
            elif kind == 1:
                record = self._runs[place].record
                queue = self._group_of[place].waiting
                heappush(queue, (-record.priority, record.submitted_s, place))
            elif kind == 2:
                look = looks[place]
                code = self._cause(look.job, started)
                found[look.job][code] = found[look.job].get(code, 0.0) + look.weight_s
            elif self._runs[place].ended_s > self._runs[place].started_s:
                started[place] = True
                self._hold(place, 1)
            else:
                started[place] = True
        return found

    def _looks(self, found: list[dict[str, float]]) -> list[_Look]:
        looks: list[_Look] = []
        for place, run in enumerate(self._runs):
            if not run.counts:
                continue
            eligible_s = _eligible_s(run)
            own_s, wait_s = eligible_s - run.record.submitted_s, run.started_s - eligible_s
            if own_s > 0:
                found[place]["own"] = own_s
            if run.again_s > 0:
                found[place]["again"] = run.again_s
            if wait_s >= SHORT_S:
                part_s = wait_s / LOOKS
                looks += [
                    _Look(eligible_s + (number + 0.5) * part_s, place, part_s)
                    for number in range(LOOKS)
                ]
            elif wait_s > 0:
                found[place]["pace"] = wait_s
        return looks

    def _cause(self, place: int, started: Sequence[bool]) -> str:
        record, group = self._runs[place].record, self._group_of[place]
        members = max(1, record.nodes)
        gpus = max(record.gpus, 0.0)
        per_node = -(-round(gpus * 1_000) // (1_000 * members))
        if not self._placed:
            return "full" if self._whole - self._allocated < gpus else "free"
        if not group.could_hold(per_node, members):
            return "fleet"
        if group.with_free(per_node) < members:
            return "scattered" if group.free() >= gpus and gpus else "full"
        if not self._has_others(record, group, per_node, members):
            return "cpus"
        queue = group.waiting
        while queue and started[queue[0][2]]:
            heappop(queue)
        return "order" if queue and queue[0][2] != place else "limit"

    def _has_others(self, record: RecordedJob, group: _Group, per_node: int, members: int) -> bool:
        """Return whether enough nodes with the GPUs have the CPUs and memory too."""
        cpus, memory = record.cpus / members, record.memory_gib / members - MEMORY_GIB_OFF
        fits = 0
        for name in group.gpus:
            has_gpus = self._free[name] >= per_node
            if has_gpus and self._cpus_free[name] >= cpus and self._memory_free[name] >= memory:
                fits += 1
                if fits >= members:
                    return True
        return False

    def _hold(self, place: int, sign: int) -> None:
        run = self._runs[place]
        self._allocated += sign * run.record.gpus
        if not run.nodes:
            return
        each = round(run.record.gpus / len(run.nodes))
        if run.record.gpus and not each:
            each = 1
        cpus = run.record.cpus / len(run.nodes)
        memory = run.record.memory_gib / len(run.nodes)
        for name in run.nodes:
            if name not in self._free:
                continue
            before = _within(self._free[name], self._gpus[name])
            self._free[name] -= sign * each
            self._cpus_free[name] -= sign * cpus
            self._memory_free[name] -= sign * memory
            after = _within(self._free[name], self._gpus[name])
            if before != after:
                for group in self._of_node.get(name, ()):
                    group.move(before, after)

    def _describe(self, evidence: Evidence) -> None:
        live = {node.name: node for node in evidence.nodes}
        for node in evidence.simulated_nodes():
            known = live.get(node.id)
            self._gpus[node.id] = node.gpus
            self._types[node.id] = node.accelerator
            self._cpus[node.id] = node.cpus_milli / 1_000 if node.cpus_milli else float("inf")
            self._memory[node.id] = memory_gib_of(known) or float("inf")
            self._partitions[node.id] = known.partitions if known else ()

    def _group(self, record: RecordedJob) -> _Group:
        key = (record.partition, ",".join(record.gpu_types))
        if key not in self._groups:
            own = self._members(record)
            group = self._groups[key] = _Group(own)
            for name in own:
                self._of_node.setdefault(name, []).append(group)
        return self._groups[key]

    def _members(self, record: RecordedJob) -> dict[str, int]:
        """Return the nodes that jobs like this one may use."""
        named = {
            name: gpus
            for name, gpus in self._gpus.items()
            if not self._partitions[name] or record.partition in self._partitions[name]
        } or dict(self._gpus)
        typed = {
            name: gpus
            for name, gpus in named.items()
            if any(_same_type(kind, self._types[name]) for kind in record.gpu_types)
        }
        return typed or named


def memory_gib_of(node: RecordedNode | None) -> float:
    """Return the memory that jobs may be allocated on a node; 0 if not known."""
    return node.memory_mib / 1_024 if node is not None else 0.0


def _same_type(wanted: str, accelerator: str) -> bool:
    return wanted.casefold() == accelerator.casefold() or accelerator.casefold().startswith(
        f"{wanted.casefold()}-"
    )


def _eligible_s(run: Run) -> float:
    eligible_s = run.record.eligible_s
    if eligible_s is None:
        return run.record.submitted_s
    return min(max(eligible_s, run.record.submitted_s), run.started_s)


def _within(free: int, gpus: int) -> int:
    return max(0, min(free, gpus))
