"""Slurm's multifactor priority: weights times factors between 0 and 1, plus nice values.

Slurm computes priorities at submission and then once per period, not at each pass; in between,
age and usage do not change. Periods are counted from time zero, so the value depends only on the
view and the time.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from math import fsum

from msgspec import Struct

from tenfold.fleet.capacity import Capacity
from tenfold.fleet.fleet import FleetView
from tenfold.model.ids import TeamId
from tenfold.model.job.job import WHOLE, EndedJob, Job, Shape
from tenfold.model.policy.slurm import SlurmPartition, SlurmPolicy
from tenfold.model.units import Millis

LEAST = 1
"""A priority of 0 would hold the job; the sum is never below this."""


class Accounts(Struct, frozen=True):
    """What Slurm keeps in its accounting database rather than in `slurm.conf`."""

    qos_priorities: dict[str, int] = {}
    shares: dict[str, int] = {}
    """Fair shares by team; a team that is not listed has 1."""


NO_ACCOUNTS = Accounts()
HALF_LIVES_MOST = 64
"""Half-lives after which usage is counted from a new time; a float holds far more."""


class EndedUsage:
    """The decayed GPU time of finished jobs, by team, kept from pass to pass.

    What a job used is kept as of a fixed time, so later passes only scale the sums. Sums are
    rounded once, so the result is the same whichever passes came before.
    """

    def __init__(self, half_ms: int) -> None:
        self._half_ms = half_ms
        self._base_ms = -1
        self._last: EndedJob | None = None
        self._teams: deque[TeamId] = deque()
        self._used: dict[TeamId, deque[float]] = {}

    def of(self, history: Sequence[EndedJob], at_ms: int) -> dict[TeamId, float]:
        """Return the usage by team of the jobs that had ended at a time; the rest is not used."""
        half_ms = self._half_ms
        ended = len(history)
        while ended and history[ended - 1].ended_ms > at_ms:
            ended -= 1
        base_ms = at_ms // (HALF_LIVES_MOST * half_ms) * HALF_LIVES_MOST * half_ms if half_ms else 0
        known = self._known(history, ended) if base_ms == self._base_ms else 0
        if not known:
            self._base_ms = base_ms
            self._teams.clear()
            self._used.clear()
        for place in range(known, ended):
            self._append(history[place])
        self._last = history[ended - 1] if ended else None
        while len(self._teams) > ended:
            self._drop()
        scale = _faded(at_ms - base_ms, half_ms) if half_ms else 1.0
        return {team: fsum(used) * scale for team, used in self._used.items()}

    def _known(self, history: Sequence[EndedJob], ended: int) -> int:
        """Return how many of the jobs were counted before; old ones may have been dropped."""
        while ended and history[ended - 1] is not self._last:
            ended -= 1
        return ended

    def _append(self, ended: EndedJob) -> None:
        base_ms, half_ms = self._base_ms, self._half_ms
        end_ms = ended.ended_ms
        begin_ms = end_ms - ended.ran_ms
        if half_ms:
            held = _faded(base_ms - end_ms, half_ms) - _faded(base_ms - begin_ms, half_ms)
            held *= half_ms
        else:
            held = float(end_ms - begin_ms)
        team = ended.job.team
        self._teams.append(team)
        self._used.setdefault(team, deque()).append(max(0.0, held) * _gpus(ended.job))

    def _drop(self) -> None:
        team = self._teams.popleft()
        used = self._used[team]
        used.popleft()
        if not used:
            del self._used[team]


class Priorities:
    """The priorities of pending jobs at one moment."""

    def __init__(
        self,
        policy: SlurmPolicy,
        accounts: Accounts,
        view: FleetView,
        capacity: Capacity,
        now_ms: Millis,
        ended: EndedUsage | None = None,
    ) -> None:
        self._policy = policy
        self._qos = accounts.qos_priorities
        self._capacity = capacity
        period_ms = max(1, policy.calc_period_ms)
        self._at_ms = now_ms // period_ms * period_ms
        self._nodes = max(1, len(view.nodes))
        self._cpus_milli = sum(node.cpus_milli for node in view.nodes.values())
        self._gpus = max(1, sum(node.gpus for node in view.nodes.values()))
        self._partition_most = max(
            (one.priority_job_factor for one in policy.partitions), default=0
        )
        self._qos_most = max(self._qos.values(), default=0)
        self._fair: Mapping[TeamId, float] = {}
        if policy.weights.fairshare:
            self._fair = fair_shares(policy, accounts, view, self._at_ms, ended)
        self._worth: dict[str, float] = {}

    def of(self, job: Job, partition: SlurmPartition | None) -> int:
        """Return the priority of a job; larger goes first.

        The user's own value (`--nice` with the sign reversed) is added at the end.
        """
        policy, weights = self._policy, self._policy.weights
        if policy.priority == "basic":
            return job.priority
        total = self._fixed(job.shape)
        if weights.age and policy.age_max_ms:
            age_ms = max(0, self._at_ms - job.submitted_ms)
            total += weights.age * min(1.0, age_ms / policy.age_max_ms)
        if partition is not None and self._partition_most:
            total += weights.partition * partition.priority_job_factor / self._partition_most
        if self._qos_most:
            total += weights.qos * self._qos.get(job.qos, 0) / self._qos_most
        if self._fair:
            total += weights.fairshare * self._fair.get(job.team, 1.0)
        return max(LEAST, int(total) + job.priority)

    def _fixed(self, shape: Shape) -> float:
        """Return the priority from the request alone: its size and its resources."""
        worth = self._worth.get(shape.key)
        if worth is None:
            weights = self._policy.weights
            worth = weights.job_size * self._size_factor(shape)
            worth += weights.tres.get("gres/gpu", 0) * shape.gpus / self._gpus
            if self._cpus_milli:
                worth += weights.tres.get("cpu", 0) * shape.cpus_milli / self._cpus_milli
            self._worth[shape.key] = worth
        return worth

    def _size_factor(self, shape: Shape) -> float:
        """Return the mean of a gang's share of the nodes and of the CPUs.

        Where CPUs are not counted, GPUs are used instead.
        """
        splits = self._capacity.splits(shape)
        members = splits[0].members + (splits[0].rest > 0) if splits else 1
        nodes = min(1.0, members / self._nodes)
        if self._cpus_milli:
            # Slurm gives a member at least one CPU.
            rest = max(shape.cpus_milli, members * 1_000) / self._cpus_milli
        else:
            rest = shape.gpus / self._gpus
        factor = (nodes + min(1.0, rest)) / 2
        return 1.0 - factor if self._policy.favors_small else factor


def fair_shares(
    policy: SlurmPolicy,
    accounts: Accounts,
    view: FleetView,
    at_ms: int,
    ended: EndedUsage | None = None,
) -> dict[TeamId, float]:
    """Return the classic factor 2^(-usage/shares) of every known team.

    Usage is decayed GPU time as a share of all usage; shares are those of the accounts, or equal.
    """
    half_ms = policy.decay_half_life_ms
    used = (ended or EndedUsage(half_ms)).of(view.history, at_ms)
    for late in reversed(view.history):
        if late.ended_ms <= at_ms:
            break
        _add(used, late.job, late.ended_ms - late.ran_ms, at_ms, at_ms, half_ms)
    for run in view.running.values():
        _add(used, run.job, run.started_ms, at_ms, at_ms, half_ms)
    for job in view.pending.values():
        used.setdefault(job.team, 0.0)
    total = fsum(used.values())
    all_shares = sum(accounts.shares.get(team, 1) for team in used)
    if not total or not all_shares:
        return dict.fromkeys(used, 1.0)
    return {
        team: 2.0 ** -(usage / total / max(1e-9, accounts.shares.get(team, 1) / all_shares))
        for team, usage in used.items()
    }


def _add(
    used: dict[TeamId, float], job: Job, begin_ms: int, end_ms: int, at_ms: int, half_ms: int
) -> None:
    """Add one run's decayed GPU time: the integral of 2^(-age/half) from begin to end."""
    before = used.get(job.team, 0.0)
    if end_ms <= begin_ms:
        used[job.team] = before
        return
    if half_ms:
        held = (_faded(at_ms - end_ms, half_ms) - _faded(at_ms - begin_ms, half_ms)) * half_ms
    else:
        held = end_ms - begin_ms
    used[job.team] = before + _gpus(job) * held


def _gpus(job: Job) -> float:
    return (job.shape.milli or job.shape.gpus * WHOLE) / WHOLE


def _faded(age_ms: int, half_ms: int) -> float:
    return 2.0 ** (-age_ms / half_ms)
