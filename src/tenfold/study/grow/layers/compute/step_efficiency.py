"""Step efficiency: what a GPU keeps of its speed as jobs get larger.

It follows the scaling of a job's profile, what the planner says once runs that were timed at small
scale have calibrated it, or else the planner's curve of the model expected.
"""

from collections.abc import Iterable, Sequence

from tenfold.model.growth.growth import Axis
from tenfold.physics.growth.breaking import ASSUMED, Evidence
from tenfold.study.ceiling.design import Design
from tenfold.study.grow.history import usual_size
from tenfold.study.grow.layer import ComputedLayer, Constraint
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
"""Keeps what is just at its limit from being over it by rounding."""


class StepEfficiency(ComputedLayer):
    """The speed of a GPU in a larger job over that in the job of today."""

    name = "step-efficiency"
    breaks = "a GPU in a larger job keeps less than `step_efficiency_least` of its speed"
    cause_rank = 35
    grows_with = ("job-size",)
    needs = (
        "`scaling` in profiles of jobs, timed runs with `--calibrate`, or `model` under `[expects]`"
    )
    fixed_by = "no relief is known"
    assumes = ASSUMES
    always_listed = True
    shown_when_constant = False

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return a law for each profile with a scaling and each series of runs; else the plan."""
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
        """Return the law of runs that were timed: as large as the largest of them, and larger."""
        work = WorkBySize(float(series.gpus), 1.0, falling(series.scaling))
        spread = series.spread_where(state.grow.limits.step_efficiency_least)
        return self._constraint(state, series.name, [work], Evidence("calibrated", spread))

    def _planned(self, state: State) -> Constraint:
        """The model expected runs in jobs of the size that most GPU time of the history goes to.

        Its batch is the usual one, and so the law is an assumption.
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
            return f"jobs {factor:.2g} times as large keep {kept(factor):.0%} of their speed a GPU"

        # Speed is over that of today, so whatever is not known, today is not where it breaks.
        evidence = evidence._replace(spread=min(evidence.spread, (1.0 / least - 1.0) * NEARLY))
        return self.constraint(
            resource, lambda factor: 1.0 / kept(factor), 1.0 / least, evidence, symptom
        )


def _curve(state: State, design: Design) -> Scaling:
    """Return the rate a GPU by size, moved by what timed runs of the same stack say."""
    points = design.curve.points if design.curve else ()
    rates = [(point.gpus, point.tokens_per_s / point.gpus) for point in points]
    if not isinstance(state.inputs, ObservedInputs):
        return rates
    said = state.inputs.said([point.plan for point in points])
    # The search knows of narrow fabrics, which a plan does not tell: only its move is taken over.
    rated = [said[point.plan] for point in points]
    moved = [after.tokens_per_s_per_gpu / before.tokens_per_s_per_gpu for before, after in rated]
    return [(gpus, rate * by) for (gpus, rate), by in zip(rates, moved, strict=True)]
