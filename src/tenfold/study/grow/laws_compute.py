"""Laws of compute: GPU time asked for against what there is, and what larger jobs lose.

Load is the work that arrived in the span of the history over what all GPUs could do in it. It
knows neither packing nor failures, so it is the latest factor at which a line must form; runs
tell how much earlier waits are too long. Larger jobs do the same work with less efficiency,
along the scaling of their profile, or along the planner's curve of the model expected.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from tenfold.model.growth import Axis, grown_by, moves
from tenfold.model.job import Job
from tenfold.model.units import SECOND
from tenfold.physics.growth.law import ASSUMED, STATED, Evidence, Law, Named
from tenfold.physics.scaling import efficiency_at
from tenfold.study.grow.state import State

COMPUTE = Named("compute", "all GPUs", 78)
STEP = 35
LAYER_STEP = "step-efficiency"
NO_WORK = "a history of jobs, or a mix"
NO_SCALING = "`scaling` in profiles of jobs, or `model` under `[expects]`"
Scaling = Sequence[tuple[int, float]]


class Work(NamedTuple):
    """GPU time of jobs of one size, and how their efficiency runs with it."""

    gpus: float
    gpu_s: float
    scaling: Scaling

    def efficiency(self, factor: float) -> float:
        """Return the efficiency at so many times the GPUs, over that of today."""
        return efficiency_at(self.scaling, self.gpus * factor) / efficiency_at(
            self.scaling, self.gpus
        )


def compute_laws(state: State, axis: Axis) -> list[Law]:
    """Return the law of load, and along job sizes those of step efficiency.

    Nodes that come with their jobs are as full as before: there an unknown load hides nothing.
    """
    if moves(axis, "job-size"):
        return [_load(state, axis), *_steps(state)]
    if not moves(axis, "jobs"):
        return []
    load = _load(state, axis)
    return [] if load.needs and moves(axis, "nodes") else [load]


def _load(state: State, axis: Axis) -> Law:
    works = _works(state)
    if not works or not state.spec.gpus:
        return COMPUTE.unknown(NO_WORK)
    there = state.spec.gpus * _span_s(state.inputs.jobs)

    def asked(factor: float) -> float:
        larger = grown_by(axis, "job-size", factor)
        more = grown_by(axis, "jobs", factor) / grown_by(axis, "nodes", factor)
        return more * sum(one.gpu_s / one.efficiency(larger) for one in works)

    def seen(factor: float) -> str:
        return f"jobs ask for {asked(factor) / there:.0%} of the GPU time there is"

    return COMPUTE.law(asked, there, _evidence(state), seen)


def _steps(state: State) -> list[Law]:
    """Return one law for each profile with a scaling; without any the planner's curve."""
    jobs, profiles = state.inputs.jobs, state.inputs.profiles
    named = dict.fromkeys(job.profile for job in jobs if job.profile in profiles)
    laws = [
        _step(state, f"profile {name}", works, _evidence(state))
        for name in named
        if profiles[name].scaling and (works := _works(state, name))
    ]
    return laws or [_planned(state)]


def _planned(state: State) -> Law:
    """The model expected runs in jobs of the size that most GPU time of the history goes to.

    Its batch is the usual one, and so the law is an assumption.
    """
    design = state.asked.design
    if design is None or design.curve is None or not design.curve.points:
        return Named(LAYER_STEP, "jobs", STEP).unknown(NO_SCALING)
    sizes: dict[float, float] = {}
    for one in _works(state):
        sizes[one.gpus] = sizes.get(one.gpus, 0.0) + one.gpu_s
    usual = max(sizes, key=lambda size: sizes[size], default=float(design.gpus_today))
    # The best size is not the smallest: beyond it efficiency never rises again.
    points = design.curve.points
    falling = accumulate((point.efficiency for point in points), min)
    curve = [(point.gpus, share) for point, share in zip(points, falling, strict=True)]
    model = "" if design.ask is None else design.ask.model
    return _step(state, f"model {model}", [Work(usual, 1.0, curve)], ASSUMED)


def _step(state: State, resource: str, works: Sequence[Work], evidence: Evidence) -> Law:
    least = state.grow.limits.step_efficiency_least
    whole = sum(one.gpu_s for one in works)

    def kept(factor: float) -> float:
        return whole / sum(one.gpu_s / one.efficiency(factor) for one in works)

    def seen(factor: float) -> str:
        return f"jobs {factor:.2g} times as large keep {kept(factor):.0%} of their speed a GPU"

    name = Named(LAYER_STEP, resource, STEP)
    return name.law(lambda factor: 1.0 / kept(factor), 1.0 / least, evidence, seen)


def _works(state: State, profile: str | None = None) -> list[Work]:
    """Return the GPU time of the history by size and profile."""
    found: dict[tuple[float, str], float] = {}
    for job in state.inputs.jobs:
        if profile is None or job.profile == profile:
            key = (_gpus(job), job.profile)
            found[key] = found.get(key, 0.0) + _gpus(job) * (job.duration_ms or 0) / SECOND
    return [
        Work(gpus, gpu_s, _falling(state, name)) for (gpus, name), gpu_s in found.items() if gpu_s
    ]


def _falling(state: State, profile: str) -> Scaling:
    """Return the scaling of a profile without its rises: a law never falls with the factor."""
    known = state.inputs.profiles.get(profile)
    if known is None:
        return ()
    shares = accumulate((share for _, share in known.scaling), min)
    return [(size, share) for (size, _), share in zip(known.scaling, shares, strict=True)]


def _evidence(state: State) -> Evidence:
    """A history that does not say when jobs started was never compared with what happened."""
    return STATED if state.inputs.starts_ms and not state.inputs.mix else ASSUMED


def _span_s(jobs: Sequence[Job]) -> float:
    """Return the time over which jobs were submitted, or the longest of them if that is more."""
    submitted = max(job.submitted_ms for job in jobs) - min(job.submitted_ms for job in jobs)
    return max(submitted, *(job.duration_ms or 0 for job in jobs), SECOND) / SECOND


def _gpus(job: Job) -> float:
    return job.shape.gpus + job.shape.milli / 1_000
