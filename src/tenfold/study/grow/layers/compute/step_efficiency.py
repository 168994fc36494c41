"""Step efficiency: what a GPU keeps of its speed as jobs get larger.

It follows the scaling of a job's profile, what the planner says once runs that were timed at small
scale have calibrated it, or else the planner's curve of the model expected.
"""

from collections.abc import Iterable, Sequence

from tenfold.model.growth.growth import Axis
from tenfold.physics.growth.law import ASSUMED, Evidence
from tenfold.study.ceiling.design import Design
from tenfold.study.grow.history import usual_size
from tenfold.study.grow.layer import FiguredLayer, Law
from tenfold.study.grow.layers.compute.work import (
    ASSUMES,
    Scaling,
    Work,
    falling,
    work_evidence,
    works_of,
)
from tenfold.study.grow.observed import ObservedInputs
from tenfold.study.grow.state import State
from tenfold.study.grow.step_series import StepSeries

NEARLY = 1 - 1e-9
"""Keeps what is just at its limit from being over it by rounding."""


class StepEfficiency(FiguredLayer):
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
    shown_when_still = False

    def laws(self, state: State, axis: Axis) -> Iterable[Law]:
        """Return a law for each profile with a scaling and each series of runs; else the plan."""
        inputs = state.inputs
        named = dict.fromkeys(job.profile for job in inputs.jobs if job.profile in inputs.profiles)
        laws = [
            self._law(state, f"profile {name}", works, work_evidence(state))
            for name in named
            if inputs.profiles[name].scaling and (works := works_of(state, name))
        ]
        if isinstance(inputs, ObservedInputs):
            laws += [self._timed(state, series) for series in inputs.series]
        return laws or [self._planned(state)]

    def _timed(self, state: State, series: StepSeries) -> Law:
        """Return the law of runs that were timed: as large as the largest of them, and larger."""
        work = Work(float(series.gpus), 1.0, falling(series.scaling))
        spread = series.spread_where(state.grow.limits.step_efficiency_least)
        return self._law(state, series.name, [work], Evidence("calibrated", spread))

    def _planned(self, state: State) -> Law:
        """The model expected runs in jobs of the size that most GPU time of the history goes to.

        Its batch is the usual one, and so the law is an assumption.
        """
        design = state.asked.design
        if design is None or design.curve is None or not design.curve.points:
            return self.unknown("jobs")
        model = "" if design.request is None else design.request.job.model
        work = Work(usual_size(state, design), 1.0, falling(_curve(state, design)))
        return self._law(state, f"model {model}", [work], ASSUMED)

    def _law(self, state: State, resource: str, works: Sequence[Work], evidence: Evidence) -> Law:
        least = state.grow.limits.step_efficiency_least
        whole = sum(one.gpu_s for one in works)

        def kept(factor: float) -> float:
            return whole / sum(one.gpu_s / one.efficiency(factor) for one in works)

        def seen(factor: float) -> str:
            return f"jobs {factor:.2g} times as large keep {kept(factor):.0%} of their speed a GPU"

        # Speed is over that of today, so whatever is not known, today is not where it breaks.
        evidence = evidence._replace(spread=min(evidence.spread, (1.0 / least - 1.0) * NEARLY))
        return self.law(resource, lambda factor: 1.0 / kept(factor), 1.0 / least, evidence, seen)


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
