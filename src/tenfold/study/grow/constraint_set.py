"""All constraints of a state along one axis: measured, computed and simulated.

Computed constraints are cheap, simulated ones are not. So runs go only as far as another layer
lets the fleet grow, and with reliefs applied only if simulated layers may be ranked at all.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace as with_fields
from math import inf

from tenfold.model.growth.growth import Axis
from tenfold.physics.growth.breaking import Utilisation, breaking_factor
from tenfold.study.grow.answer import CalibrationShown
from tenfold.study.grow.calibrate import NONE, Calibration, calibrate
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layer import ComputedLayer, Constraint, DerivedLayer, Layer
from tenfold.study.grow.measured import measured_constraints
from tenfold.study.grow.question import GrowQuestion
from tenfold.study.grow.recorded import recorded_waits
from tenfold.study.grow.registry import LAYERS
from tenfold.study.grow.runs.layer import SimulatedLayer
from tenfold.study.grow.runs.runs import Runs, runs_for
from tenfold.study.grow.runs.window import overloaded_at, window_note
from tenfold.study.grow.search import find_bottleneck, rankable
from tenfold.study.grow.state import State, state_of

SIMULATED_PAST = 1.25
"""How far past the first computed break runs are made: further out they cannot be first."""
JOBS_SIMULATED_MAX = 400_000
"""Jobs of all runs of an analysis after which no further relief is tried."""
SEARCH_RUNS, RUNS_PER_SEED = 6, 4
"""Runs of the first seed until the limit is found, and of every seed on both sides of it."""


def computed_constraints(
    state: State, axis: Axis, layers: Sequence[Layer] = LAYERS
) -> list[Constraint]:
    """Return all constraints that need no simulation, measured ones first, without relaxed ones."""
    measured = measured_constraints(state, axis, layers)
    figured = [
        constraint
        for layer in layers
        if isinstance(layer, ComputedLayer)
        for constraint in layer.evaluated(state, axis)
    ]
    usable = 1 - state.grow.limits.headroom_least
    constraints = [_less(constraint, usable) for constraint in _best(measured, figured)]
    for layer in layers:
        if isinstance(layer, DerivedLayer):
            constraints += layer.constraints(state, constraints)
    return [constraint for constraint in constraints if constraint.key not in state.relaxed]


def _best(measured: Sequence[Constraint], figured: Sequence[Constraint]) -> list[Constraint]:
    """Return measured constraints in place of computed ones for the same resource."""
    figures = {constraint.key: constraint for constraint in figured}
    better = {constraint.key for constraint in measured if not constraint.needs}
    kept = [constraint for constraint in figured if constraint.key not in better]
    # Usage without a limit is reported as unknown, unless another constraint of the layer uses it.
    covered = {constraint.layer for constraint in kept if not constraint.needs}
    seen = [
        with_fields(constraint, unlimited=figures[constraint.key].unlimited)
        if constraint.key in figures
        else constraint
        for constraint in measured
        if not constraint.needs or constraint.layer not in covered
    ]
    return [*seen, *kept]


def simulated_constraints(
    state: State,
    runs: Runs,
    *,
    most: float,
    seeds: Sequence[int] = (0,),
    calibration: Calibration = NONE,
    layers: Sequence[Layer] = LAYERS,
) -> list[Constraint]:
    """Return the simulated constraints along the axis of the runs, up to a factor."""
    return [
        constraint
        for layer in layers
        if isinstance(layer, SimulatedLayer)
        for constraint in layer.evaluated(state, runs, most, seeds, calibration)
    ]


def _less(constraint: Constraint, usable: float) -> Constraint:
    """Return a constraint of which only a share of the capacity may be used."""
    if usable >= 1:
        return constraint

    def less(of: Utilisation) -> Utilisation:
        return lambda factor: of(factor) / usable if usable > 0 else inf

    bounds, free = constraint.bounds, f"{1 - usable:.0%} to keep free"

    def symptom(factor: float) -> str:
        said = constraint.symptom(factor)
        return f"{said}; {free}" if said else ""

    return with_fields(
        constraint,
        symptom=symptom,
        utilisation=less(constraint.utilisation),
        bounds=bounds and (less(bounds[0]), less(bounds[1])),
    )


def _ignore_progress(_: int) -> None:
    pass


class ConstraintSet:
    """The constraints of one question about one fleet; they share the simulation runs."""

    def __init__(
        self,
        inputs: GrowInputs,
        question: GrowQuestion,
        done: Callable[[int], None] | None = None,
        layers: Sequence[Layer] = LAYERS,
    ) -> None:
        self.question = question
        self.layers = layers
        self.calibration = calibrate(inputs)
        on_progress = done or _ignore_progress
        self.runs: Runs = runs_for(inputs, question.axis, most=question.most, done=on_progress)
        self.notes = window_note(self.runs.history_window, inputs.jobs) if inputs.jobs else []
        self._limits = inputs.grow.limits
        self._calibrated = [
            layer
            for layer in layers
            if isinstance(layer, SimulatedLayer)
            and self.calibration.covers(layer.tolerances(inputs.grow.limits))
        ]
        recorded = recorded_waits(inputs) if inputs.jobs else None
        over = recorded is not None and recorded.over
        self._runs_count = bool(self._calibrated) or question.count_assumed or over
        # Layers that are not ranked are only shown, and one seed is enough for that.
        wanted = max(1, question.seeds) if self._runs_count else 1
        seeds = min(wanted, self._seeds_affordable(inputs)) if inputs.jobs else wanted
        if seeds < wanted:
            self.notes.append(f"simulated with {seeds} of {wanted} seeds to save time for fixes")
        self._seeds = tuple(range(question.seed, question.seed + seeds))

    def _seeds_affordable(self, inputs: GrowInputs) -> int:
        """Return how many seeds leave half of the simulation budget to find and size fixes."""
        runs = JOBS_SIMULATED_MAX / 2 / max(1.0, self.runs.jobs_at(state_of(inputs), 1.0))
        return max(1, int((runs - SEARCH_RUNS) / RUNS_PER_SEED))

    def shown(self, constraints: Sequence[Constraint]) -> CalibrationShown:
        """Return how well runs reproduce the history, and for which layers this is enough."""
        found = self.calibration
        layers = list(dict.fromkeys(one.of for one in constraints if not one.needs))
        simulated = [layer for layer in layers if isinstance(layer, SimulatedLayer)]
        good = [layer.label("") for layer in simulated if layer in self._calibrated]
        said = found.sentence
        if good and not found.calibrated:
            said = f"{said}; calibrated for {', '.join(good)}"
        return CalibrationShown(calibrated=found.calibrated, sentence=said)

    def layer_notes(self, constraints: Sequence[Constraint]) -> list[str]:
        """Return what is too far off for single layers, although it is close enough for others."""
        limits, found = self._limits, self.calibration
        layers = dict.fromkeys(one.of for one in constraints if not one.needs)
        return [
            f"not calibrated for {layer.label('')}: {', '.join(off)}"
            for layer in layers
            if found.calibrated and isinstance(layer, SimulatedLayer)
            for off in [found.off(layer.tolerances(limits))]
            if off
        ]

    @property
    def spent(self) -> bool:
        """Whether the simulation budget is used up; the same on every machine."""
        return self.runs.jobs > JOBS_SIMULATED_MAX

    def budget_part(self, share: float) -> float:
        """Return the cost of all runs at which a share of the budget that is left is used up."""
        left = max(0, JOBS_SIMULATED_MAX - self.runs.jobs)
        return self.runs.jobs + share * left

    def all(self, state: State) -> list[Constraint]:
        """Return all constraints of a state, including those that are not ranked."""
        figured = computed_constraints(state, self.question.axis, self.layers)
        return [*figured, *self._of_runs(state, figured)]

    def rankable(self, state: State) -> list[Constraint]:
        """Return the constraints of a state that may be ranked."""
        figured = computed_constraints(state, self.question.axis, self.layers)
        of_runs = self._of_runs(state, figured) if self._runs_count else []
        return rankable([*figured, *of_runs], self.question.count_assumed)

    def holds(self, state: State, constraint: Constraint, target: float) -> bool:
        """Return whether one constraint of a state is within its limit up to a factor."""
        layer, axis = constraint.of, self.question.axis
        if isinstance(layer, SimulatedLayer):
            most = min(target, overloaded_at(state, axis) or target)
            found = layer.evaluated(state, self.runs, most, self._seeds, self.calibration)
        else:
            found = computed_constraints(state, axis, self.layers)
        return all(
            breaking_factor(one.utilisation, target) is None
            for one in found
            if one.key == constraint.key
        )

    def _of_runs(self, state: State, figured: Sequence[Constraint]) -> list[Constraint]:
        question = self.question
        now = find_bottleneck(rankable(figured, question.count_assumed), question.most)
        most = (
            question.most if now.k is None else min(question.most, max(1.0, now.k) * SIMULATED_PAST)
        )
        most = min(most, overloaded_at(state, question.axis) or most)
        found = simulated_constraints(
            state,
            self.runs,
            most=most,
            seeds=self._seeds,
            calibration=self.calibration,
            layers=self.layers,
        )
        return [constraint for constraint in found if constraint.key not in state.relaxed]


def assumed(constraints: Sequence[Constraint]) -> list[str]:
    """Return what the constraints graded as assumed rest on."""
    layers = {
        constraint.layer: constraint.of
        for constraint in constraints
        if constraint.grade == "assumed" and not constraint.needs
    }
    by_cause: dict[str, list[str]] = {}
    for layer in layers.values():
        if layer.assumes:
            by_cause.setdefault(layer.assumes, []).append(layer.label(""))
    return [f"assumed for {', '.join(names)}: {cause}" for cause, names in by_cause.items()]
