"""Simulated layers: queue waits, stranded GPUs, fairness between teams, time lost.

All of them read the same runs. Without calibration against a history their constraints are graded
as assumed: they are shown but not ranked.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tenfold.model.growth.growth import Axis, grows_along
from tenfold.physics.growth.breaking import ASSUMED, Evidence
from tenfold.study.grow.calibrate import ERROR_MOST
from tenfold.study.grow.layer import Constraint, Layer, Relieve
from tenfold.study.grow.relief import Relief
from tenfold.study.grow.runs.curve import Read, run_curve
from tenfold.study.grow.runs.run import RunFigures
from tenfold.study.grow.runs.runs import Runs
from tenfold.study.grow.state import State

NO_WORK = "`--jobs` or `--mix`"
CALIBRATED = Evidence("calibrated", ERROR_MOST)


@dataclass(frozen=True, slots=True)
class Reading:
    """How a layer reads a run, its symptom, and what relieves it up to a factor.

    How much a relief helps is known only after new runs: the analysis makes them and takes the
    first relief that lets the fleet go further.
    """

    utilisation: Read
    symptom: Callable[[RunFigures], str]
    relieve: Relieve


class SimulatedLayer(Layer, ABC):
    """A layer that is evaluated by simulating the history at several factors."""

    resource: str
    grows_with = ("jobs", "job-size", "data")
    needs = NO_WORK
    assumes = "simulated, not calibrated against your history"
    reports_missing_work: bool = False
    """Whether it reports a missing workload; one report is enough for all simulated layers."""

    @abstractmethod
    def reading(self, state: State, runs: Runs) -> Reading | None:
        """Return how it reads runs; None if it does not apply to this fleet and workload."""

    def evidence(self, *, calibrated: bool) -> Evidence:
        """Return how well it is known, depending on whether the runs are calibrated."""
        return CALIBRATED if calibrated else ASSUMED

    def evaluated(
        self, state: State, runs: Runs, most: float, seeds: Sequence[int], *, calibrated: bool
    ) -> list[Constraint]:
        """Return its constraint along the axis of the runs, up to a factor."""
        if not _moves_runs(state, runs.axis):
            return []
        if not state.inputs.jobs:
            return [self.unknown(self.resource)] if self.reports_missing_work else []
        if self.key(self.resource) in state.relaxed:
            return []
        reading = self.reading(state, runs)
        if reading is None:
            return []
        curve = run_curve(runs, state, reading.utilisation, most, seeds)
        evidence = self.evidence(calibrated=calibrated)

        def symptom(factor: float) -> str:
            return reading.symptom(runs.at(state, [(curve.index_from(factor), seeds[0])])[0])

        def relieve(constraint: Constraint, target: float) -> list[Relief]:
            return (
                list(reading.relieve(constraint, target))
                if constraint.utilisation(target) > 1
                else []
            )

        return [
            Constraint(
                self,
                self.resource,
                curve.utilisation,
                max(evidence.spread, curve.spread),
                evidence.grade,
                self.cause_rank,
                symptom=symptom,
                relieve=relieve,
            )
        ]


def _moves_runs(state: State, axis: Axis) -> bool:
    """Return whether anything in a run grows along an axis."""
    if grows_along(axis, "data") and state.inputs.profiles:
        return True
    return grows_along(axis, "jobs") or grows_along(axis, "job-size")


def lost_to(cause: str, most: float) -> Read:
    """Return how to read the share of allocated GPU time lost to a cause, over its limit."""

    def read(figures: RunFigures) -> float:
        whole = sum(figures.lost_gpu_h_per_day.values())
        if not whole:
            return 0.0
        return (1 - figures.goodput) * figures.lost_gpu_h_per_day[cause] / whole / most

    return read


def lost_symptom(cause: str) -> Callable[[RunFigures], str]:
    """Return how to describe the time lost to a cause."""
    return lambda one: f"{one.lost_gpu_h_per_day[cause]:,.0f} GPU-hours/day lost to {cause}"
