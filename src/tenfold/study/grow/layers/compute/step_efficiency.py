"""Scaling efficiency: how much of its speed a GPU keeps as jobs get larger.

It comes from the scaling of a job's profile, from the planner calibrated with timed runs at small
scale, or else from the planner's scaling curve of the expected model.
"""

from collections.abc import Iterable, Sequence

from tenfold.model.growth.growth import Axis
from tenfold.physics.growth.breaking import ASSUMED, Evidence
from tenfold.study.ceiling.design import Design
from tenfold.study.grow.history import usual_size
from tenfold.study.grow.layer import ComputedLayer, Constraint, figure
from tenfold.study.grow.layers.compute.work import (
    ASSUMES,
    Scaling,
    WorkBySize,
    falling,
    work_by_size,
    work_evidence,
)
from tenfold.study.grow.observed import ObservedInputs
from tenfold.study.grow.state import State
from tenfold.study.grow.step_series import StepSeries

NEARLY = 1 - 1e-9
"""Keeps rounding from pushing a value over its limit."""


class StepEfficiency(ComputedLayer):
    """The speed of a GPU in a larger job over that in today's job."""

    name = "step-efficiency"
    title = "Scaling efficiency"
    breaks = "a GPU in a larger job keeps less than `step_efficiency_least` of its speed"
    cause_rank = 35
    grows_with = ("job-size",)
    grows_by = "GPUs of each job"
    needs = "`scaling` in `--profiles`, timed runs with `--calibrate`, or `model` under `[expects]`"
    fixed_by = "no known fix"
    assumes = ASSUMES
    always_listed = True
    shown_when_constant = False

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return one constraint per profile with scaling and per run series, else the plan."""
        inputs = state.inputs
        named = dict.fromkeys(job.profile for job in inputs.jobs if job.profile in inputs.profiles)
        constraints = [
            self._constraint(state, f"profile {name}", works, work_evidence(state))
            for name in named
            if inputs.profiles[name].scaling and (works := work_by_size(state, name))
        ]
        if isinstance(inputs, ObservedInputs):
            constraints += [self._timed(state, series) for series in inputs.series]
        return constraints or [self._planned(state)]

    def _timed(self, state: State, series: StepSeries) -> Constraint:
        """Return the constraint of timed runs: the largest size timed, and larger ones."""
        work = WorkBySize(float(series.gpus), 1.0, falling(series.scaling))
        spread = series.spread_where(state.grow.limits.step_efficiency_least)
        return self._constraint(state, series.name, [work], Evidence("calibrated", spread))

    def _planned(self, state: State) -> Constraint:
        """The expected model runs in jobs of the size that takes most GPU time in the history.

        Its batch size is a default, so the constraint is graded as assumed.
        """
        design = state.expected.design
        if design is None or design.curve is None or not design.curve.points:
            return self.unknown("jobs")
        model = "" if design.request is None else design.request.job.model
        work = WorkBySize(usual_size(state, design), 1.0, falling(_curve(state, design)))
        return self._constraint(state, f"model {model}", [work], ASSUMED)

    def _constraint(
        self, state: State, resource: str, works: Sequence[WorkBySize], evidence: Evidence
    ) -> Constraint:
        least = state.grow.limits.step_efficiency_least
        whole = sum(one.gpu_s for one in works)

        def kept(factor: float) -> float:
            return whole / sum(one.gpu_s / one.efficiency(factor) for one in works)

        def symptom(factor: float) -> str:
            speed = f"{kept(factor):.0%} of their speed per GPU"
            return f"jobs {figure(factor, 2)}x as large keep {speed}"

        # Speed is relative to today's, so it cannot break at today's size, however uncertain.
        evidence = evidence._replace(spread=min(evidence.spread, (1.0 / least - 1.0) * NEARLY))
        return self.constraint(
            resource, lambda factor: 1.0 / kept(factor), 1.0 / least, evidence, symptom
        )


def _curve(state: State, design: Design) -> Scaling:
    """Return tokens/s per GPU by job size, corrected by timed runs of the same stack."""
    points = design.curve.points if design.curve else ()
    rates = [(point.gpus, point.tokens_per_s / point.gpus) for point in points]
    if not isinstance(state.inputs, ObservedInputs):
        return rates
    estimates = state.inputs.planner_estimates([point.plan for point in points])
    # The search knows about oversubscribed fabrics, a plan does not: only the correction is used.
    rated = [estimates[point.plan] for point in points]
    moved = [after.tokens_per_s_per_gpu / before.tokens_per_s_per_gpu for before, after in rated]
    return [(gpus, rate * by) for (gpus, rate), by in zip(rates, moved, strict=True)]
