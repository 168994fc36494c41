"""Job admission: jobs that arrive in a queue against jobs that its controller starts.

GPUs may idle while jobs wait for a controller that examines too few of them. The busiest queue
counts: a mean over queues hides the deep one. Jobs arrive by chance and are admitted one by one,
so they wait before the controller is saturated (M/D/1); the limit is their mean wait. Arrivals come
from the history or from measurements of a queue; measured arrivals have this layer and no limit,
because the limit is the controller's setting. The queue depth is measured as the resource `depth`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import ceil, isfinite
from typing import NamedTuple

from msgspec.structs import replace

from tenfold.model.growth.growth import Axis, Controller, grown_by
from tenfold.model.growth.measured import UsagePoint
from tenfold.model.policy.slurm import SlurmPolicy
from tenfold.model.units import SECOND
from tenfold.physics.growth.admission import (
    arrivals_within,
    backlog_wait_s,
    capacity_for,
    mean_wait_s,
    starts_per_s,
)
from tenfold.physics.growth.breaking import ASSUMED, STATED, Evidence, weakest
from tenfold.physics.growth.usage import fit_usage, usage_at
from tenfold.study.grow.history import arrival_span_ms
from tenfold.study.grow.layer import ComputedLayer, Constraint, figure
from tenfold.study.grow.relief import NEARLY, Relief, with_relief
from tenfold.study.grow.state import State, scale_capacity

NAME = "admission"
DEPTH = "depth"
OBSERVED = Evidence("published", 0.15)
"""An admitted share is only as good as the hours over which it was counted."""
_UNIT_S = {"s": 1.0, "sec": 1.0, "second": 1.0, "min": 60.0, "minute": 60.0, "h": 3600.0}


class Arrivals(NamedTuple):
    """Jobs per second that arrive in one queue, and how many are queued already."""

    queue: str
    per_s: Callable[[float], float]
    evidence: Evidence
    depth: float = 0.0


class Admission(ComputedLayer):
    """Each controller, by the queue that it names or by the busiest."""

    name = NAME
    title = "Job admission"
    breaks = "jobs wait longer than `admission_wait_s_most` for a controller, on average"
    cause_rank = 60
    grows_with = ("jobs",)
    grows_by = "jobs that arrive"
    needs = "`[[controller]]` in the grow file, or a slurm.conf as `--policy`"
    fixed_by = "controller settings, Tenfold's own scheduler, or more controllers"
    assumes = "jobs arrive as in the workload mix"
    always_listed = True
    shown_when_constant = False

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return one constraint for each controller."""
        controllers = _controllers(state)
        if not controllers:
            return [self.unknown("controller")]
        return [self._controller(state, axis, controller) for controller in controllers]

    def _controller(self, state: State, axis: Axis, controller: Controller) -> Constraint:
        slurm = state.policy.slurm if controller.kind == "slurm" else None
        rate = starts_per_s(controller, slurm)
        arrivals = _arrivals(state, axis, controller)
        queue = controller.queue or (arrivals.queue if arrivals else "")
        resource = f"{controller.kind} {queue}".strip()
        if rate.per_s is None:
            return self.unknown(resource, rate.why.removeprefix("needs "))
        if arrivals is None:
            whose = f"queue `{controller.queue}`" if controller.queue else "its queues"
            return self.unknown(resource, f"a job history, or measured arrivals in {whose}")
        alone, parts = rate.per_s, state.capacity_scale(self.key(resource))
        within = arrivals_within(alone, state.grow.limits.admission_wait_s_most)

        def relieve(multiple: float) -> Iterable[Relief]:
            return self._reliefs(state, resource, controller, within, multiple)

        evidence = STATED if controller.admitted_share is None else OBSERVED
        return self.constraint(
            resource,
            arrivals.per_s,
            within * parts,
            weakest(evidence, arrivals.evidence),
            _symptom(arrivals, alone, parts),
            relieve,
        )

    def _reliefs(
        self, state: State, resource: str, controller: Controller, within: float, multiple: float
    ) -> Iterable[Relief]:
        """Settings are free. If none helps, the queue is split across controllers."""
        slurm = state.policy.slurm if controller.kind == "slurm" else None
        wait_s = state.grow.limits.admission_wait_s_most
        needed = capacity_for(within * multiple, wait_s) * NEARLY
        for one in _settings(controller, slurm, needed):
            if (starts_per_s(one.controller, one.slurm).per_s or 0.0) >= needed:
                yield _setting(controller, one)
        yield from _own_loop(state, resource, controller, needed)
        yield self._split_queue(state, resource, multiple)

    def _split_queue(self, state: State, resource: str, multiple: float) -> Relief:
        """The price of more controllers is not known."""
        key = self.key(resource)
        there = max(1, round(state.capacity_scale(key)))
        parts = ceil(there * multiple * NEARLY)

        def apply(now: State) -> State:
            return scale_capacity(with_relief(now, "parted"), key, parts / there)

        text = f"split the jobs of {resource} across {parts:,} controllers (up from {there:,})"
        return Relief("parted", text, None, None, apply)


def _controllers(state: State) -> tuple[Controller, ...]:
    """Return the controllers in the grow file; else Slurm, if the history ran under it."""
    stated = state.grow.controllers
    if stated or state.policy.slurm is None:
        return stated
    return (Controller(kind="slurm"),)


def _symptom(arrivals: Arrivals, alone: float, parts: float) -> Callable[[float], str]:
    per_s = alone * parts
    where = f"queue {arrivals.queue}" if arrivals.queue else "the queue"

    def symptom(factor: float) -> str:
        arriving, admitted = figure(arrivals.per_s(factor) * 60), figure(per_s * 60)
        said = f"{arriving} jobs/min arrive in {where}; it admits {admitted}"
        wait_s = mean_wait_s(arrivals.per_s(factor) / parts, alone)
        if not arrivals.depth:
            # The search ends a hair before or past the limit; a wait without end is not printed.
            return f"{said}; mean wait {figure(wait_s)} s" if isfinite(wait_s) else said
        wait_s = backlog_wait_s(arrivals.per_s(factor), per_s, depth=arrivals.depth)
        return f"{said}; {arrivals.depth:,.0f} queued jobs wait {wait_s / 60:,.0f} min"

    return symptom


def _arrivals(state: State, axis: Axis, controller: Controller) -> Arrivals | None:
    """Return the arrivals in a controller's queue: as measured, else as in the history."""
    points = [point for point in state.inputs.measured if point.along(axis)]
    measured = _measured(points, controller)
    return measured or _recorded(state, axis, controller)


def _measured(points: Sequence[UsagePoint], controller: Controller) -> Arrivals | None:
    """Return what was measured of the queue named, or of the one that is busiest today."""
    found: dict[str, list[UsagePoint]] = {}
    for point in points:
        ours = point.layer == NAME and point.resource == controller.kind and point.limit is None
        if ours and _seconds(point.unit) and controller.queue in ("", point.queue):
            found.setdefault(point.queue, []).append(point)
    made = [_fitted(queue, some, points) for queue, some in found.items()]
    return max(made, key=lambda one: one.per_s(1.0), default=None)


def _fitted(queue: str, own: list[UsagePoint], points: Sequence[UsagePoint]) -> Arrivals:
    usage, every_s = fit_usage(own), _seconds(own[0].unit)
    depths = [
        point.usage
        for point in points
        if point.layer == NAME and point.resource == DEPTH and point.queue == queue
    ]

    def per_s(factor: float) -> float:
        return usage_at(usage, factor) / every_s

    return Arrivals(queue, per_s, STATED, depths[0] if depths else 0.0)


def _seconds(unit: str) -> float:
    """Return the seconds that a rate such as `jobs/min` is over; 0 where it is no rate."""
    return _UNIT_S.get(unit.replace(" per ", "/").rpartition("/")[2].strip(), 0.0)


def _recorded(state: State, axis: Axis, controller: Controller) -> Arrivals | None:
    """Return the mean arrivals of the history: of all teams, or of one with its own queue.

    More teams of the same kind bring queues of their own, so each queue stays as it is.
    """
    jobs = state.inputs.jobs
    if not jobs:
        return None
    by_team: dict[str, int] = {}
    for job in jobs:
        by_team[job.team] = by_team.get(job.team, 0) + 1
    queue = controller.queue
    if controller.kind == "kueue" and not queue:
        queue = max(by_team, key=lambda team: by_team[team])
    span_ms = arrival_span_ms([job.submitted_ms for job in jobs])
    count = by_team.get(queue, 0) if queue else len(jobs)
    if not span_ms or not count:
        return None
    today = count / (span_ms / SECOND)
    still = axis == "teams" and bool(queue)

    def per_s(factor: float) -> float:
        return today * (1.0 if still else grown_by(axis, "jobs", factor))

    return Arrivals(queue, per_s, ASSUMED if state.inputs.mix else STATED)


class _ChangedSettings(NamedTuple):
    """A controller and a slurm.conf with other settings, and those in words."""

    controller: Controller
    slurm: SlurmPolicy | None
    sentence: str


def _settings(
    controller: Controller, slurm: SlurmPolicy | None, needed: float
) -> Iterator[_ChangedSettings]:
    """Yield settings that may reach a rate: more jobs per cycle, more starts per pass."""
    if slurm is not None and slurm.jobs_started_max:
        yield _more_starts(controller, slurm, needed)
    if controller.cycles_per_min is not None:
        share = 1.0 if controller.admitted_share is None else controller.admitted_share
        heads = ceil(needed * 60 / controller.cycles_per_min / share * NEARLY)
        # Kueue tries the head of every queue in a cycle: more heads means more queues.
        what = "queues per cohort" if controller.kind == "kueue" else "jobs per queue"
        now = f"currently {controller.heads_per_cycle:,}"
        text = f"schedule from {heads:,} {what} in each cycle ({now})"
        yield _ChangedSettings(replace(controller, heads_per_cycle=heads), slurm, text)


def _more_starts(controller: Controller, slurm: SlurmPolicy, needed: float) -> _ChangedSettings:
    """The main pass alone reaches the rate; backfill, if enabled, starts more."""
    period_s = max(1.0, slurm.interval_min_us / 1e6)
    starts, old = ceil(needed * period_s * NEARLY), slurm.jobs_started_max
    text = f"set `sched_max_job_start={starts}` in slurm.conf (up from {old:,})"
    return _ChangedSettings(controller, replace(slurm, jobs_started_max=starts), text)


def _setting(old: Controller, new: _ChangedSettings) -> Relief:
    def apply(now: State) -> State:
        controllers = tuple(new.controller if one == old else one for one in now.grow.controllers)
        policy = now.policy
        if new.slurm is not None and policy.slurm is not None:
            starts = new.slurm.jobs_started_max
            policy = replace(policy, slurm=replace(policy.slurm, jobs_started_max=starts))
        grow = replace(now.grow, controllers=controllers)
        return replace(with_relief(now, "setting"), grow=grow, policy=policy)

    return Relief("setting", new.sentence, 0.0, 0.0, apply)


def _own_loop(state: State, resource: str, old: Controller, needed: float) -> Iterator[Relief]:
    """Tenfold's own scheduler takes over if its stated cost per job is low enough."""
    own = [one for one in state.grow.controllers if one.kind == "tenfold"]
    if old.kind == "tenfold" or not any((starts_per_s(one).per_s or 0) >= needed for one in own):
        return

    def apply(now: State) -> State:
        left = tuple(one for one in now.grow.controllers if one != old)
        return replace(with_relief(now, "own-loop"), grow=replace(now.grow, controllers=left))

    yield Relief(
        "own-loop", f"admit the jobs of {resource} with Tenfold's own scheduler", 0.0, 0.0, apply
    )
