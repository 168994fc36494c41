"""A layer that only runs can tell: waits, stranded GPUs, teams left behind, time lost.

All of them read the same runs. A run that was never compared with what happened is a guess:
without calibration these laws are assumptions, are shown, and raise no alarm.
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

NO_WORK = "a history of jobs, or a mix"
CALIBRATED = Evidence("calibrated", ERROR_MOST)


@dataclass(frozen=True, slots=True)
class Reading:
    """How a layer reads a run, what is seen in it, and what relieves it up to a factor.

    How far a dose carries is not known before the runs that follow it: the ladder makes them, and
    takes the first relief that lets the fleet go further.
    """

    utilisation: Read
    symptom: Callable[[RunFigures], str]
    relieve: Relieve


class SimulatedLayer(Layer, ABC):
    """A layer that is judged by runs of the history at several factors."""

    resource: str
    grows_with = ("jobs", "job-size", "data")
    needs = NO_WORK
    assumes = "runs say so that were not found to be like what happened"
    reports_missing_work: bool = False
    """Whether it is unknown without work; the others are left to those that ask."""

    @abstractmethod
    def reading(self, state: State, runs: Runs) -> Reading | None:
        """Return how it reads runs; None where it has no meaning for this fleet and work."""

    def evidence(self, *, calibrated: bool) -> Evidence:
        """Return how well runs tell of it, once they are found to be like the history or not."""
        return CALIBRATED if calibrated else ASSUMED

    def judged(
        self, state: State, runs: Runs, most: float, seeds: Sequence[int], *, calibrated: bool
    ) -> list[Constraint]:
        """Return its law along the axis of the runs, looked at up to a factor."""
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
    """Return whether anything that a run reads grows along an axis."""
    if grows_along(axis, "data") and state.inputs.profiles:
        return True
    return grows_along(axis, "jobs") or grows_along(axis, "job-size")


def lost_to(cause: str, most: float) -> Read:
    """Return the share of the GPU time held that a cause takes, over what it may."""

    def read(figures: RunFigures) -> float:
        whole = sum(figures.lost_gpu_h_per_day.values())
        if not whole:
            return 0.0
        return (1 - figures.goodput) * figures.lost_gpu_h_per_day[cause] / whole / most

    return read


def lost_symptom(cause: str) -> Callable[[RunFigures], str]:
    """Return how the time that a cause takes is told."""
    return lambda one: f"{one.lost_gpu_h_per_day[cause]:,.0f} GPU-hours a day lost to {cause}"
