"""Simulated layers: queue waits, stranded GPUs, fairness between teams, time lost.

All of them read the same runs. Without calibration against a history their constraints are graded
as assumed: they are shown but not ranked.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log

from tenfold.model.growth.growth import GrowthLimits
from tenfold.physics.growth.breaking import (
    ASSUMED,
    STATED,
    Evidence,
    Utilisation,
    breaking_factor,
)
from tenfold.study.grow.calibrate import ERROR_MOST, NONE, Calibration, Tolerances
from tenfold.study.grow.layer import Constraint, Layer, Relieve
from tenfold.study.grow.relief import Relief
from tenfold.study.grow.runs.curve import Read, RunCurve, run_curve
from tenfold.study.grow.runs.run import RunFigures
from tenfold.study.grow.runs.runs import Runs
from tenfold.study.grow.runs.sampling import factor_spread, length_bias
from tenfold.study.grow.state import State

NO_WORK = "`--jobs` or `--mix`"
CALIBRATED = Evidence("calibrated", ERROR_MOST)
JUST = 1 - 1e-6
"""Utilisation at a breaking factor, but for the rounding of the search."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How a layer reads a run, its symptom, and what relieves it up to a factor.

    How much a relief helps is known only after new runs: the analysis makes them and takes the
    first relief that lets the fleet go further.
    """

    utilisation: Read
    symptom: Callable[[RunFigures], str]
    relieve: Relieve
    resource: str = ""
    """What it reads, if the layer has several resources."""
    measured: bool = False
    """Whether the history itself shows that the limit is passed today."""
    no_fix: str = ""
    """Why nothing relieves it, if more can be said than that no fix is known."""


class SimulatedLayer(Layer, ABC):
    """A layer that is evaluated by simulating the history at several factors."""

    resource: str
    grows_with = ("jobs", "job-size")
    needs = NO_WORK
    assumes = "simulated, not calibrated against your history"
    resampled: bool = False
    """Whether histories drawn from the real one are simulated to see how far its factor is off."""
    reports_missing_work: bool = False
    """Whether it reports a missing workload; one report is enough for all simulated layers."""

    @abstractmethod
    def reading(self, state: State, runs: Runs) -> Reading | None:
        """Return how it reads runs; None if it does not apply to this fleet and workload."""

    def readings(self, state: State, runs: Runs) -> list[Reading]:
        """Return how it reads runs for each of its resources."""
        found = self.reading(state, runs)
        return [] if found is None else [found]

    def tolerances(self, limits: GrowthLimits) -> Tolerances:
        """Return how far the figures that it uses may be off at 1x."""
        return Tolerances()

    def evaluated(
        self,
        state: State,
        runs: Runs,
        most: float,
        seeds: Sequence[int],
        calibration: Calibration = NONE,
    ) -> list[Constraint]:
        """Return its constraints along the axis of the runs, up to a factor."""
        if not self.grows(runs.axis):
            return []
        if not state.inputs.jobs:
            return [self.unknown(self.resource)] if self.reports_missing_work else []
        covered = calibration.covers(self.tolerances(state.grow.limits))
        evidence = ASSUMED
        if covered:
            evidence = self._calibrated(calibration)
        # A break that a longer history has by `most` is further on in this one.
        most = most * max(1.0, runs.length_biases.get(self.name, 1.0))
        return [
            self._constraint(
                state,
                runs,
                reading,
                run_curve(runs, state, reading.utilisation, most, seeds),
                evidence,
            )
            for reading in self.readings(state, runs)
            if self.key(reading.resource or self.resource) not in state.relaxed
        ]

    def _calibrated(self, calibration: Calibration) -> Evidence:
        """Return how far a calibrated run may be off: as far as waits are, if it is resampled."""
        if not self.resampled:
            return CALIBRATED
        return Evidence(CALIBRATED.grade, max(STATED.spread, calibration.wait_error or 0.0))

    def _constraint(
        self, state: State, runs: Runs, reading: Reading, curve: RunCurve, evidence: Evidence
    ) -> Constraint:
        if reading.measured:
            evidence = Evidence("measured", evidence.spread)
        ranked = evidence.grade != ASSUMED.grade
        k = breaking_factor(curve.utilisation, curve.factor_most)
        apart = self._factor_spread(state, runs, reading, k, ranked)
        bias = 1.0
        if self.resampled and ranked and not reading.measured:
            bias = self._length_bias(state, runs, reading, k)
        utilisation, in_runs = of_longer(curve, k, bias)

        def symptom(factor: float) -> str:
            samples = curve.samples_from(in_runs(factor))
            over = utilisation(factor) >= JUST
            # Runs differ by chance: show the first on the same side of the limit as the verdict.
            found = runs.at(state, samples)
            sides = (one for one in found if (reading.utilisation(one) >= JUST) is over)
            return reading.symptom(next(sides, found[0]))

        def relieve(constraint: Constraint, target: float) -> list[Relief]:
            return (
                list(reading.relieve(constraint, target))
                if constraint.utilisation(target) > 1
                else []
            )

        # Drawn histories differ by their seeds as well, which need not be counted twice.
        seeds = 0.0 if self.resampled and apart else curve.spread
        return Constraint(
            self,
            reading.resource or self.resource,
            utilisation,
            max(evidence.spread, seeds),
            evidence.grade,
            self.cause_rank,
            symptom=symptom,
            relieve=relieve,
            factor_spread=apart,
            no_fix=reading.no_fix,
        )

    def _factor_spread(
        self, state: State, runs: Runs, reading: Reading, k: float | None, ranked: bool
    ) -> float:
        """Return how far its factor may be off because the history is a sample.

        This is a property of the history, so it is found once, and reliefs do not change it.
        """
        if k is None or state.inputs.mix:
            return 0.0
        simulated = self.resampled and ranked
        key = f"{self.name} {simulated}"
        if key not in runs.spreads:
            read = reading.utilisation
            runs.spreads[key] = factor_spread(runs, state, read, k, simulated=simulated)
        return runs.spreads[key]

    def _length_bias(self, state: State, runs: Runs, reading: Reading, k: float | None) -> float:
        """Return how much too high its factor is because the history is short, found once."""
        if self.name not in runs.length_biases:
            if k is None or k <= 1 or state.inputs.mix:
                return 1.0
            runs.length_biases[self.name] = length_bias(runs, state, reading.utilisation, k)
        return runs.length_biases[self.name]


def of_longer(
    curve: RunCurve, k: float | None, bias: float
) -> tuple[Utilisation, Callable[[float], float]]:
    """Return utilisation as a longer history has it, and the factor of its own with as much.

    Today is what it is: a history within its limit today is not said to be over it, so growth
    between 1x and the break is stretched.
    """
    if bias == 1 or (k is not None and k <= 1):
        return curve.utilisation, lambda factor: factor
    # Of a break near today no more than half of the growth up to it is taken away.
    moved = bias if k is None else min(bias, 2 * k / (1 + k))
    reached = None if k is None else k / moved

    def in_runs(factor: float) -> float:
        if factor <= 1:
            return factor
        if reached is None or factor >= reached:
            return factor * moved
        return factor ** (1 + log(moved) / log(reached))

    return lambda factor: curve.utilisation(in_runs(factor)), in_runs


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
