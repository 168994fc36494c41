"""Laws of compute: GPU time asked for against what there is, and what larger jobs lose.

Load is the work that arrived in the span of the history over what all GPUs could do in it. It
knows neither packing nor failures, so it is the latest factor at which a line must form; runs
tell how much earlier waits are too long. Larger jobs do the same work with less efficiency:
along the scaling of their profile, along what the planner says once runs that were timed at
small scale have calibrated it, or else along its curve of the model expected.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from tenfold.compose.grow_observed import ObservedInputs
from tenfold.compose.planning import row_of
from tenfold.compose.step_series import StepSeries
from tenfold.model.growth import Axis, grown_by, moves
from tenfold.physics.growth.law import ASSUMED, STATED, Evidence, Law, Named
from tenfold.physics.scaling import efficiency_at
from tenfold.study.design import Design
from tenfold.study.grow.history import gpu_time, span_s
from tenfold.study.grow.senders import usual_size
from tenfold.study.grow.state import State

COMPUTE = Named("compute", "all GPUs", 78)
STEP = 35
LAYER_STEP = "step-efficiency"
NO_WORK = "a history of jobs, or a mix"
NO_SCALING = (
    "`scaling` in profiles of jobs, timed runs with `--calibrate`, or `model` under `[expects]`"
)
NEARLY = 1 - 1e-9
"""Keeps what is just at its limit from being over it by rounding."""
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
    there = state.spec.gpus * span_s(state.inputs.jobs)

    def asked(factor: float) -> float:
        larger = grown_by(axis, "job-size", factor)
        more = grown_by(axis, "jobs", factor) / grown_by(axis, "nodes", factor)
        return more * sum(one.gpu_s / one.efficiency(larger) for one in works)

    def seen(factor: float) -> str:
        return f"jobs ask for {asked(factor) / there:.0%} of the GPU time there is"

    return COMPUTE.law(asked, there, _evidence(state), seen)


def _steps(state: State) -> list[Law]:
    """Return a law for each profile with a scaling and each series of runs; else the planner's."""
    inputs = state.inputs
    named = dict.fromkeys(job.profile for job in inputs.jobs if job.profile in inputs.profiles)
    laws = [
        _step(state, f"profile {name}", works, _evidence(state))
        for name in named
        if inputs.profiles[name].scaling and (works := _works(state, name))
    ]
    if isinstance(inputs, ObservedInputs):
        laws += [_timed(state, series) for series in inputs.series]
    return laws or [_planned(state)]


def _timed(state: State, series: StepSeries) -> Law:
    """Return the law of runs that were timed: as large as the largest of them, and larger."""
    work = Work(float(series.gpus), 1.0, falling(series.scaling))
    spread = series.spread_where(state.grow.limits.step_efficiency_least)
    return _step(state, series.name, [work], Evidence("calibrated", spread))


def _planned(state: State) -> Law:
    """The model expected runs in jobs of the size that most GPU time of the history goes to.

    Its batch is the usual one, and so the law is an assumption.
    """
    design = state.asked.design
    if design is None or design.curve is None or not design.curve.points:
        return Named(LAYER_STEP, "jobs", STEP).unknown(NO_SCALING)
    model = "" if design.ask is None else design.ask.model
    work = Work(usual_size(state, design), 1.0, falling(_curve(state, design)))
    return _step(state, f"model {model}", [work], ASSUMED)


def _curve(state: State, design: Design) -> Scaling:
    """Return the rate a GPU by size, moved by what timed runs of the same stack say."""
    points = design.curve.points if design.curve else ()
    rates = [(point.gpus, point.tokens_per_s / point.gpus) for point in points]
    if not isinstance(state.inputs, ObservedInputs):
        return rates
    rows = [row_of(point.plan, str(point.gpus)) for point in points]
    said = state.inputs.said(rows)
    # The search knows of narrow fabrics, which a row does not tell: only its move is taken over.
    moved = [said[row][1].tokens_per_s_per_gpu / said[row][0].tokens_per_s_per_gpu for row in rows]
    return [(gpus, rate * by) for (gpus, rate), by in zip(rates, moved, strict=True)]


def _step(state: State, resource: str, works: Sequence[Work], evidence: Evidence) -> Law:
    least = state.grow.limits.step_efficiency_least
    whole = sum(one.gpu_s for one in works)

    def kept(factor: float) -> float:
        return whole / sum(one.gpu_s / one.efficiency(factor) for one in works)

    def seen(factor: float) -> str:
        return f"jobs {factor:.2g} times as large keep {kept(factor):.0%} of their speed a GPU"

    name = Named(LAYER_STEP, resource, STEP)
    # Speed is over that of today, so whatever is not known, today is not where it breaks.
    evidence = evidence._replace(spread=min(evidence.spread, (1.0 / least - 1.0) * NEARLY))
    return name.law(lambda factor: 1.0 / kept(factor), 1.0 / least, evidence, seen)


def _works(state: State, profile: str | None = None) -> list[Work]:
    """Return the GPU time of the history by size and profile."""
    profiles = state.inputs.profiles
    return [
        Work(kind.gpus, seconds, falling(known.scaling if known else ()))
        for kind, seconds in gpu_time(state.inputs.jobs).items()
        for known in [profiles.get(kind.profile)]
        if profile in (None, kind.profile)
    ]


def falling(scaling: Scaling) -> Scaling:
    """Return a scaling without its rises: a law never falls with the factor."""
    shares = accumulate((share for _, share in scaling), min)
    return [(size, share) for (size, _), share in zip(scaling, shares, strict=True)]


def _evidence(state: State) -> Evidence:
    """A history that does not say when jobs started was never compared with what happened."""
    return STATED if state.inputs.starts_ms and not state.inputs.mix else ASSUMED
