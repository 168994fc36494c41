"""The changes that would help most: a policy, a quota, a purchase.

Each kind has a few candidates. All are simulated on the first half of the history and compared
with the unchanged fleet and policy; the best is then tried on the second half, which it was not
chosen on. What it promised and what it gave are both reported.
"""

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from tenfold.compose.governance import governance_of
from tenfold.model.fleet.hostlist import expand
from tenfold.model.fleet.node import Node
from tenfold.model.fleet.spec import FleetSpec, Pool
from tenfold.model.ids import NodeId
from tenfold.model.job.job import WHOLE
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.policy.policy import Policy
from tenfold.model.policy.slurm import SlurmPolicy
from tenfold.model.policy.team_quotas import with_quotas
from tenfold.model.units import HOUR, HOURS_PER_MONTH, SECOND, usd
from tenfold.sim.measure.meters import requested_milli
from tenfold.study.assess.evidence import Evidence
from tenfold.study.assess.halves import (
    BUSY_WAITING,
    Calibration,
    Half,
    HalfFigures,
    HalfRun,
    begun,
    calibration_of,
    halves_of,
    run_half,
)

JOBS_LEAST = 40
"""Fewer jobs in the history are too few to choose a change on half of them."""
GPU_WAIT_MORE_MOST = 1.1
"""A policy may not make a requested GPU-hour wait longer than this times as long."""
SAVED_LEAST = 0.02
"""A change that saves a smaller share of the waiting is none."""
WINDOW_LEAST = 0.5
"""Waits count to the end of a half: one shorter than this share of the mean wait hides them."""
SAVED_LEAST_S = 1.0
"""Nor is one that saves less of each job's wait: that is the pace of a scheduler."""
STEPS = (0.05, 0.1, 0.2)
"""How much larger a purchase makes the fleet."""
DEEP_BACKFILL = 2_000


class Tried(Struct, frozen=True, kw_only=True):
    """A change on one half of the history: before, after, and the waiting it saves."""

    half: str
    before: HalfFigures
    after: HalfFigures
    hours_saved: float
    """Hours of waiting, summed over jobs."""
    gpu_hours_saved: float
    """The same, with each job counted by its GPUs."""
    share_saved: float | None
    """Of the waiting before; None if there was none."""


class Change(Struct, frozen=True, kw_only=True):
    """A change that was chosen on the first half and tried on the second."""

    kind: str
    name: str
    sentence: str
    usd_per_month: float | None
    """What it costs; None if no price is known."""
    worth: str
    """What the same saving would cost as a purchase."""
    promised: Tried
    gave: Tried
    calibrated: bool
    how: str
    """How to make it."""


class Candidate(Struct, frozen=True, kw_only=True):
    """A change that was simulated on the first half."""

    kind: str
    name: str
    mean_wait_s: float
    hours_saved: float
    allowed: bool
    """Whether it keeps large jobs from waiting much longer."""


class Changes(Struct, frozen=True, kw_only=True):
    """What was tried and what helps most."""

    calibrations: tuple[Calibration, ...]
    candidates: tuple[Candidate, ...]
    changes: tuple[Change, ...]
    notes: tuple[str, ...]
    price_words: str


class _Option(NamedTuple):
    kind: str
    name: str
    sentence: str
    how: str
    policy: Policy
    nodes: Sequence[Node]
    usd_per_month: float | None


class _Trial(NamedTuple):
    option: _Option
    run: HalfRun


class Simulated(NamedTuple):
    """The changes, with the baseline runs of both halves for whoever checks them."""

    changes: Changes
    halves: tuple[Half, ...]
    baselines: tuple[HalfRun, ...]


def changes_of(evidence: Evidence, done: Callable[[str], None]) -> Simulated:
    """Return the changes that would help most."""
    if len(evidence.work) < JOBS_LEAST:
        many = len(evidence.work)
        said = f"too few jobs to try changes on: {many}, and it takes at least {JOBS_LEAST}"
        nothing = Changes(calibrations=(), candidates=(), changes=(), notes=(said,), price_words="")
        return Simulated(nothing, (), ())
    search = _Search(evidence, done)
    short = search.too_short()
    if short is not None:
        nothing = Changes(
            calibrations=(), candidates=(), changes=(), notes=(short,), price_words=""
        )
        return Simulated(nothing, (), ())
    return search.run()


class _Search:
    def __init__(self, evidence: Evidence, done: Callable[[str], None]) -> None:
        self._evidence = evidence
        self._done = done
        self._nodes = evidence.simulated_nodes()
        self._begun = begun(evidence)
        self._first, self._second = halves_of(evidence, self._begun)
        self._price, self._price_words = price_of(evidence.spec)
        self._runs = 0

    def too_short(self) -> str | None:
        """Return why waits within a half say nothing; None if they do."""
        waits = [
            start - job.submitted_ms
            for job in self._evidence.work
            if (start := self._evidence.starts_ms.get(job.id)) is not None
        ]
        mean_ms = sum(waits) / max(1, len(waits))
        for half in (self._first, self._second):
            length_ms = half.until_ms - half.from_ms
            if length_ms < WINDOW_LEAST * mean_ms:
                return (
                    f"the {len(half.measured):,} jobs of the {half.name} were submitted within "
                    f"{length_ms / SECOND:,.0f} s, and a job waited {mean_ms / SECOND:,.0f} s on "
                    "average: too short a time to try changes on"
                )
        return None

    def run(self) -> Simulated:
        tried = self._simulate(self._first, None)
        hours = (self._first.until_ms - self._first.from_ms) / HOUR
        if tried.figures.waiting_hours / max(hours, 1e-9) > BUSY_WAITING:
            self._first, self._second = halves_of(self._evidence, self._begun, busy=True)
            tried = self._simulate(self._first, None)
        base = (tried, self._simulate(self._second, None))
        calibrations = (
            calibration_of(self._first, base[0]),
            calibration_of(self._second, base[1]),
        )
        calibrated = all(one.calibrated for one in calibrations)
        candidates: list[Candidate] = []
        changes: list[Change] = []
        notes: list[str] = []
        ladder = [self._trial(option) for option in self._purchases()]
        for kind, trials, baseline in (
            ("policy", [self._trial(one) for one in self._policies()], base),
            self._quota_trials(),
            ("purchase", ladder, base),
        ):
            candidates += [_candidate(one, baseline[0]) for one in trials]
            best = _best(kind, trials, baseline[0])
            if best is None:
                notes.append(_none_helps(kind, trials))
                continue
            gave = self._simulate(self._second, best.option)
            change = self._change(best, baseline, gave, ladder, base[0], calibrated)
            changes.append(change)
            if not _saves(change.gave.before, change.gave.after):
                notes.append(f"not recommended: {change.name} saved nothing on the second half")
        for half in (self._first, self._second):
            if half.share < 1:
                notes.append(
                    f"of the {half.name}, {len(half.measured):,} jobs in a row were simulated "
                    f"({half.share:.0%}), to be done in about a minute"
                )
        return Simulated(
            Changes(
                calibrations=calibrations,
                candidates=tuple(candidates),
                changes=tuple(changes),
                notes=tuple(notes),
                price_words=self._price_words,
            ),
            (self._first, self._second),
            base,
        )

    def _simulate(self, half: Half, option: _Option | None) -> HalfRun:
        self._runs += 1
        self._done(f"simulating: run {self._runs}")
        policy = self._evidence.policy if option is None else option.policy
        nodes = self._nodes if option is None else option.nodes
        return run_half(half, nodes, policy, self._evidence.ends)

    def _trial(self, option: _Option) -> _Trial:
        return _Trial(option, self._simulate(self._first, option))

    def _policies(self) -> list[_Option]:
        found: list[_Option] = []
        policy = self._evidence.policy
        if policy.name == "slurm":
            found += self._slurm_policies(policy, policy.slurm or SlurmPolicy())
        elif any(job.limit_ms is not None for job in self._evidence.work):
            slurm = Policy(name="slurm", slurm=SlurmPolicy())
            found.append(self._policy("Slurm's backfill", "Slurm with default settings", slurm))
        if policy.govern is None or not policy.govern.preempts:
            found.append(
                self._policy(
                    "fair share with backfill",
                    "Tenfold's policy `governed`: fair share of accounts, backfill, preemption",
                    governed(self._evidence),
                )
            )
        if policy.name != "tenfold":
            found.append(
                self._policy(
                    "short jobs first, by what past jobs took",
                    "Tenfold's policy `tenfold`: preempts, 5 min lost on each restart (assumed)",
                    Policy(name="tenfold"),
                )
            )
        return found

    def _slurm_policies(self, policy: Policy, slurm: SlurmPolicy) -> list[_Option]:
        weights = slurm.weights
        most = max(1_000, 2 * (weights.age + weights.partition + weights.qos))
        found = [
            self._policy(
                "small jobs first",
                f"`PriorityType=priority/multifactor`, `PriorityFavorSmall=YES`, "
                f"`PriorityWeightJobSize={most}`",
                _slurm(
                    policy,
                    replace(
                        slurm,
                        priority="multifactor",
                        favors_small=True,
                        weights=replace(weights, job_size=most),
                    ),
                ),
            ),
            self._policy(
                "fair share between accounts",
                f"`PriorityType=priority/multifactor`, `PriorityWeightFairshare={most}`",
                _slurm(
                    policy,
                    replace(
                        slurm, priority="multifactor", weights=replace(weights, fairshare=most)
                    ),
                ),
            ),
        ]
        return [*found, *self._wider(policy, slurm)]

    def _wider(self, policy: Policy, slurm: SlurmPolicy) -> list[_Option]:
        """Return changes that let Slurm look further: down the queue, and at all nodes."""
        found: list[_Option] = []
        backfill = slurm.backfill
        if backfill.jobs_tested_max < DEEP_BACKFILL or slurm.scheduler == "builtin":
            deep = replace(
                slurm,
                scheduler="backfill",
                queue_depth=max(slurm.queue_depth, DEEP_BACKFILL),
                backfill=replace(
                    backfill,
                    jobs_tested_max=DEEP_BACKFILL,
                    jobs_per_user_max=0,
                    jobs_per_partition_max=0,
                    goes_on=True,
                ),
            )
            found.append(
                self._policy(
                    "deeper backfill",
                    f"`SchedulerParameters=bf_continue,bf_max_job_test={DEEP_BACKFILL},"
                    f"default_queue_depth={DEEP_BACKFILL}`",
                    _slurm(policy, deep),
                )
            )
        if len({one.nodes for one in slurm.partitions}) > 1:
            shared = replace(
                slurm, partitions=tuple(replace(one, nodes="") for one in slurm.partitions)
            )
            found.append(
                self._policy(
                    "every partition on all nodes",
                    "`Nodes=ALL` in each partition",
                    _slurm(policy, shared),
                )
            )
        return found

    def _policy(self, name: str, how: str, policy: Policy) -> _Option:
        return _Option("policy", name, f"change the policy: {name}", how, policy, self._nodes, 0.0)

    def _quota_trials(self) -> tuple[str, list[_Trial], tuple[HalfRun, HalfRun]]:
        """Return quotas tried against the same policy without quotas, so that only they differ."""
        plain = governed(self._evidence)
        option = _Option("quota", "no quotas", "", "", plain, self._nodes, 0.0)
        base = (self._simulate(self._first, option), self._simulate(self._second, option))
        sums: dict[str, float] = {}
        for job in self._first.jobs:
            name = str(job.team)
            sums[name] = sums.get(name, 0.0) + requested_milli(job) * (job.duration_ms or 0)
        whole = sum(sums.values())
        if len(sums) < 2 or not whole:
            return "quota", [], base
        gpus = self._evidence.spec.gpus
        used = {name: gpus * one / whole for name, one in sums.items()}
        equal = {name: gpus / len(sums) for name in sums}
        options = [
            self._quota(plain, "in proportion to use", used),
            self._quota(plain, "equal for every account", equal),
        ]
        return "quota", [self._trial(one) for one in options], base

    def _quota(self, policy: Policy, name: str, shares: Mapping[str, float]) -> _Option:
        whole = {team: int(share) for team, share in shares.items()}
        most = sorted(whole.items(), key=lambda item: (-item[1], item[0]))
        shown = ", ".join(f"{team or '(none)'} {gpus}" for team, gpus in most[:4])
        more = f" and {len(most) - 4} more" if len(most) > 4 else ""
        return _Option(
            "quota",
            name,
            f"guaranteed quotas {name}: {shown}{more}; unused quota is lent",
            "`quota_gpus` of each team, policy `governed`",
            with_quotas(policy, {team: gpus * WHOLE for team, gpus in whole.items()}, {}),
            self._nodes,
            0.0,
        )

    def _purchases(self) -> list[_Option]:
        """Return purchases of nodes like those for which most GPU time is asked."""
        pool = max((one for one in self._evidence.spec.pools if one.gpus), key=lambda one: one.gpus)
        models = [node for node in self._nodes if node.pool == pool.id]
        found: dict[int, _Option] = {}
        for step in STEPS:
            count = max(1, ceil(len(models) * step))
            if count in found:
                continue
            fresh = [
                replace(models[place % len(models)], id=NodeId(f"new-{place + 1}"))
                for place in range(count)
            ]
            gpus = count * pool.gpus_per_node
            usd_per_month = None if self._price is None else gpus * self._price * HOURS_PER_MONTH
            nodes = "1 node" if count == 1 else f"{count} nodes"
            each = "" if count == 1 else " each"
            found[count] = _Option(
                "purchase",
                f"{nodes} with {pool.gpus_per_node} GPUs{each}",
                f"add {nodes} with {pool.gpus_per_node} GPUs{each} to pool `{pool.id}`",
                "buy or rent",
                self._with_nodes(pool, fresh),
                [*self._nodes, *fresh],
                usd_per_month,
            )
        return list(found.values())

    def _with_nodes(self, pool: Pool, fresh: Sequence[Node]) -> Policy:
        """Return the policy with the new nodes in every partition that has nodes of their pool."""
        policy = self._evidence.policy
        if policy.slurm is None:
            return policy
        own = {str(node.id) for node in self._nodes if node.pool == pool.id}
        names = ",".join(str(node.id) for node in fresh)
        partitions = tuple(
            replace(one, nodes=f"{one.nodes},{names}")
            if one.nodes and one.nodes.upper() != "ALL" and _touches(one.nodes, own)
            else one
            for one in policy.slurm.partitions
        )
        return _slurm(policy, replace(policy.slurm, partitions=partitions))

    def _change(
        self,
        best: _Trial,
        baseline: tuple[HalfRun, HalfRun],
        gave: HalfRun,
        ladder: Sequence[_Trial],
        base: HalfRun,
        calibrated: bool,
    ) -> Change:
        promised = _tried(self._first.name, baseline[0].figures, best.run.figures)
        option = best.option
        return Change(
            kind=option.kind,
            name=option.name,
            sentence=option.sentence,
            usd_per_month=option.usd_per_month,
            worth=""
            if option.kind == "purchase"
            else _worth(promised.hours_saved, ladder, base.figures),
            promised=promised,
            gave=_tried(self._second.name, baseline[1].figures, gave.figures),
            calibrated=calibrated,
            how=option.how,
        )


def governed(evidence: Evidence) -> Policy:
    """Return the policy `governed` without quotas on the fleet of a record."""
    policy = Policy(name="governed")
    return replace(policy, govern=governance_of(policy, evidence.spec, evidence.fleet.catalogue))


def closest_policy(evidence: Evidence, done: Callable[[str], None]) -> Evidence:
    """Return evidence under the known policy that comes closest to its record's first half.

    Without start times nothing can be compared; then jobs without time limits were not backfilled.
    """
    has_limits = any(job.limit_ms is not None for job in evidence.work)
    plain = governed(evidence)
    rules = plain.govern or GovernanceRules()
    calm = replace(plain, govern=replace(rules, preempts=False))
    options = [calm, Policy(name="fifo")]
    if has_limits:
        options.insert(0, Policy(name="slurm", slurm=SlurmPolicy()))
    best = options[0]
    if evidence.has_starts and len(evidence.work) >= JOBS_LEAST:
        errors: dict[int, float] = {}
        for place, policy in enumerate(options):
            done("finding the policy that is closest to the history")
            tried = replace(evidence, policy=policy)
            half = halves_of(tried, begun(tried))[0]
            ran = run_half(half, tried.simulated_nodes(), policy, tried.ends)
            errors[place] = calibration_of(half, ran).error or 0.0
        best = options[min(errors, key=lambda place: (errors[place], place))]
        how = "closest to the history of those tried"
    else:
        how = "assumed, the record does not tell: set `--policy`"
    name = "fair share without preemption" if best is calm else f"policy `{best.name}`"
    return replace(evidence, policy=best, policy_words=f"{name} ({how})")


def price_of(spec: FleetSpec) -> tuple[float | None, str]:
    """Return the price of a GPU-hour of the largest pool with GPUs, and where it is from."""
    pool = max((one for one in spec.pools if one.gpus), key=lambda one: one.gpus)
    if pool.price is None:
        return None, "no price is known for these GPUs: set one in a fleet file (`--fleet`)"
    hourly = usd(pool.price.usd_micros_per_hour)
    basis = "as stated" if pool.price.basis == "stated" else f"assumed: {pool.price.basis}"
    return hourly, f"${hourly:,.2f} a GPU-hour ({basis})"


def _tried(half: str, before: HalfFigures, after: HalfFigures) -> Tried:
    saved = before.waiting_hours - after.waiting_hours
    return Tried(
        half=half,
        before=before,
        after=after,
        hours_saved=saved,
        gpu_hours_saved=before.gpu_hours_waiting - after.gpu_hours_waiting,
        share_saved=saved / before.waiting_hours if before.waiting_hours > 0 else None,
    )


def _candidate(trial: _Trial, base: HalfRun) -> Candidate:
    before, after = base.figures, trial.run.figures
    return Candidate(
        kind=trial.option.kind,
        name=trial.option.name,
        mean_wait_s=after.mean_wait_s,
        hours_saved=before.waiting_hours - after.waiting_hours,
        allowed=_is_allowed(before, after),
    )


def _saves(before: HalfFigures, after: HalfFigures) -> bool:
    return (
        after.waiting_hours < before.waiting_hours * (1 - SAVED_LEAST)
        and before.mean_wait_s - after.mean_wait_s >= SAVED_LEAST_S
    )


def _is_allowed(before: HalfFigures, after: HalfFigures) -> bool:
    """Return whether large jobs do not pay for a shorter mean wait."""
    return after.gpu_hours_waiting <= max(1.0, before.gpu_hours_waiting) * GPU_WAIT_MORE_MOST


def _best(kind: str, trials: Sequence[_Trial], base: HalfRun) -> _Trial | None:
    """Return the best of these; of purchases the one that saves most for each node bought."""
    before = base.figures
    good = [
        one
        for one in trials
        if _saves(before, one.run.figures) and _is_allowed(before, one.run.figures)
    ]
    if not good:
        return None
    if kind != "purchase":
        return min(good, key=lambda one: one.run.figures.waiting_hours)
    more = {one.option.name: len(one.option.nodes) for one in good}
    least = min(more.values())

    def saved_per_node(one: _Trial) -> float:
        nodes = more[one.option.name] - least + 1
        return (before.waiting_hours - one.run.figures.waiting_hours) / nodes

    return max(good, key=saved_per_node)


def _none_helps(kind: str, trials: Sequence[_Trial]) -> str:
    if not trials:
        return "no quota was tried: the history has one account"
    tried = ", ".join(one.option.name for one in trials)
    return f"no {kind} that was tried shortens the waits in the first half (tried: {tried})"


def _worth(hours: float, ladder: Sequence[_Trial], base: HalfFigures) -> str:
    """Return which purchase saves as much."""
    for one in ladder:
        if base.waiting_hours - one.run.figures.waiting_hours >= hours:
            cost = one.option.usd_per_month
            price = "" if cost is None else f", ${cost:,.0f} a month"
            return f"a purchase that saves as much: {one.option.name}{price}"
    return f"no purchase of up to {STEPS[-1]:.0%} more nodes saves as much"


def _slurm(policy: Policy, slurm: SlurmPolicy) -> Policy:
    return replace(policy, slurm=slurm)


def _touches(hostlist: str, names: set[str]) -> bool:
    return any(name in names for name in expand(hostlist))
