"""Laws of admission: jobs that arrive in a queue against those that its controller starts.

GPUs may idle while jobs wait for a controller that looks at too few of them. The busiest queue
decides: a mean over queues hides the one that is deep. Arrivals are those of the history, or
what was measured of a queue; measured arrivals have the layer `admission` and no limit, for the
limit is what the controller is set to. What is in line is measured as the resource `depth`.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tenfold.model.growth import Axis, Controller, grown_by, moves
from tenfold.model.measured import UsagePoint
from tenfold.model.units import SECOND
from tenfold.physics.growth.admission import backlog_wait_s, starts_per_s
from tenfold.physics.growth.law import ASSUMED, STATED, Evidence, Law, Named, weakest
from tenfold.physics.growth.usage import fit_usage, usage_at
from tenfold.study.grow.state import State

ADMISSION = 60
LAYER = "admission"
DEPTH = "depth"
OBSERVED = Evidence("published", 0.15)
"""A share of jobs that were admitted is as good as the hours over which it was counted."""
NO_CONTROLLER = "a `[[controller]]` of the grow file, or a slurm.conf as `--policy`"
_UNIT_S = {"s": 1.0, "sec": 1.0, "second": 1.0, "min": 60.0, "minute": 60.0, "h": 3600.0}


class Arrivals(NamedTuple):
    """Jobs a second that arrive in one queue, and how many are in line already."""

    queue: str
    per_s: Callable[[float], float]
    evidence: Evidence
    depth: float = 0.0


def admission_laws(state: State, axis: Axis) -> list[Law]:
    """Return one law for each controller: of the queue it names, or of the busiest."""
    if not moves(axis, "jobs"):
        return []
    controllers = _controllers(state)
    if not controllers:
        return [Named(LAYER, "controller", ADMISSION).unknown(NO_CONTROLLER)]
    return [_law(state, axis, controller) for controller in controllers]


def _controllers(state: State) -> tuple[Controller, ...]:
    """Return those that the file states; else Slurm, where the history ran under it."""
    stated = state.grow.controllers
    if stated or state.policy.slurm is None:
        return stated
    return (Controller(kind="slurm"),)


def controller_of(law: Law, state: State) -> Controller:
    """Return the controller that a law is of, by the name that the law gives it."""
    kind, _, queue = law.resource.partition(" ")
    known = [one for one in _controllers(state) if one.kind == kind]
    return next((one for one in known if one.queue == queue), None) or next(
        one for one in known if not one.queue
    )


def _law(state: State, axis: Axis, controller: Controller) -> Law:
    slurm = state.policy.slurm if controller.kind == "slurm" else None
    rate = starts_per_s(controller, slurm)
    arrivals = _arrivals(state, axis, controller)
    name = Named(LAYER, _resource(controller, arrivals), ADMISSION)
    if rate.per_s is None:
        return name.unknown(rate.why.removeprefix("needs "))
    if arrivals is None:
        whose = f"queue `{controller.queue}`" if controller.queue else "its queues"
        return name.unknown(f"a history of jobs, or measured arrivals in {whose}")
    per_s = rate.per_s * state.widening(name.key)
    symptom = _symptom(arrivals, per_s)
    evidence = STATED if controller.admitted_share is None else OBSERVED
    return name.law(arrivals.per_s, per_s, weakest(evidence, arrivals.evidence), symptom)


def _resource(controller: Controller, arrivals: Arrivals | None) -> str:
    queue = controller.queue or (arrivals.queue if arrivals else "")
    return f"{controller.kind} {queue}".strip()


def _symptom(arrivals: Arrivals, per_s: float) -> Callable[[float], str]:
    where = f"queue {arrivals.queue}" if arrivals.queue else "the queue"

    def seen(factor: float) -> str:
        come = arrivals.per_s(factor) * 60
        said = f"{come:,.3g} jobs a minute arrive in {where}, which admits {per_s * 60:,.3g}"
        if not arrivals.depth:
            return said
        wait_s = backlog_wait_s(arrivals.per_s(factor), per_s, depth=arrivals.depth)
        return f"{said}; {arrivals.depth:,.0f} in line wait {wait_s / 60:,.0f} min"

    return seen


def _arrivals(state: State, axis: Axis, controller: Controller) -> Arrivals | None:
    """Return the arrivals in a controller's queue: as measured, else as the history has them."""
    points = [point for point in state.inputs.measured if point.along(axis)]
    measured = _measured(points, controller)
    return measured or _recorded(state, axis, controller)


def _measured(points: Sequence[UsagePoint], controller: Controller) -> Arrivals | None:
    """Return what was measured of the queue named, or of the one that is busiest today."""
    found: dict[str, list[UsagePoint]] = {}
    for point in points:
        ours = point.layer == LAYER and point.resource == controller.kind and point.limit is None
        if ours and _seconds(point.unit) and controller.queue in ("", point.queue):
            found.setdefault(point.queue, []).append(point)
    made = [_fitted(queue, some, points) for queue, some in found.items()]
    return max(made, key=lambda one: one.per_s(1.0), default=None)


def _fitted(queue: str, own: list[UsagePoint], points: Sequence[UsagePoint]) -> Arrivals:
    usage, every_s = fit_usage(own), _seconds(own[0].unit)
    depths = [
        point.usage
        for point in points
        if point.layer == LAYER and point.resource == DEPTH and point.queue == queue
    ]

    def per_s(factor: float) -> float:
        return usage_at(usage, factor) / every_s

    return Arrivals(queue, per_s, STATED, depths[0] if depths else 0.0)


def _seconds(unit: str) -> float:
    """Return the seconds that a rate such as `jobs/min` is over; 0 where it is no rate."""
    return _UNIT_S.get(unit.replace(" per ", "/").rpartition("/")[2].strip(), 0.0)


def _recorded(state: State, axis: Axis, controller: Controller) -> Arrivals | None:
    """Return the mean arrivals of the history: of all teams, or of one where queues part them.

    More teams of the same kinds bring queues of their own, so each of these stays as it is.
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
    span_ms = max(job.submitted_ms for job in jobs) - min(job.submitted_ms for job in jobs)
    count = by_team.get(queue, 0) if queue else len(jobs)
    if not span_ms or not count:
        return None
    today = count / (span_ms / SECOND)
    still = axis == "teams" and bool(queue)

    def per_s(factor: float) -> float:
        return today * (1.0 if still else grown_by(axis, "jobs", factor))

    return Arrivals(queue, per_s, ASSUMED if state.inputs.mix else STATED)
