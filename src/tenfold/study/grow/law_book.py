"""All laws of a state along one axis: what was measured, what figures say, and what runs say.

Figures cost nothing, runs do. So runs are looked at only as far as another layer lets the fleet
go, and on the way up the ladder only where they may be named at all.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace as with_fields
from math import inf

from tenfold.model.growth.growth import Axis
from tenfold.study.grow.calibrate import calibrate
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layer import FiguredLayer, FollowingLayer, Law, Layer
from tenfold.study.grow.measured import measured_laws
from tenfold.study.grow.question import GrowQuestion
from tenfold.study.grow.registry import LAYERS
from tenfold.study.grow.runs.layer import RunLayer
from tenfold.study.grow.runs.runs import Runs, runs_for
from tenfold.study.grow.runs.window import overloaded_at, window_note
from tenfold.study.grow.search import counted, joint
from tenfold.study.grow.state import State

BEYOND = 1.25
"""How far past the first break of figures runs are looked at: further they cannot be first."""
JOBS_SPENT_MOST = 400_000
"""Jobs of all runs of a ladder after which no further relief is tried."""
SEEDS_RELIEVED = 2
"""Courses of luck for a fleet that nobody has bought yet: its runs are larger, and many."""


def all_laws(state: State, axis: Axis, layers: Sequence[Layer] = LAYERS) -> list[Law]:
    """Return every law that needs no run but for those that are lifted; what was measured first."""
    measured = measured_laws(state, axis, layers)
    figured = [
        law
        for layer in layers
        if isinstance(layer, FiguredLayer)
        for law in layer.judged(state, axis)
    ]
    usable = 1 - state.grow.limits.headroom_least
    laws = [_less(law, usable) for law in _best(measured, figured)]
    for layer in layers:
        if isinstance(layer, FollowingLayer):
            laws += layer.laws(state, laws)
    return [law for law in laws if law.key not in state.lifted]


def _best(measured: Sequence[Law], figured: Sequence[Law]) -> list[Law]:
    """Return what was measured in place of what figures say of the same resource."""
    figures = {law.key: law for law in figured}
    better = {law.key for law in measured if not law.needs}
    kept = [law for law in figured if law.key not in better]
    # Usage without its limit is no law, but where another knows what to lay it beside.
    told = {law.layer for law in kept if not law.needs}
    seen = [
        with_fields(law, unlimited=figures[law.key].unlimited) if law.key in figures else law
        for law in measured
        if not law.needs or law.layer not in told
    ]
    return [*seen, *kept]


def run_laws(
    state: State,
    runs: Runs,
    *,
    most: float,
    seeds: Sequence[int] = (0,),
    calibrated: bool = False,
    layers: Sequence[Layer] = LAYERS,
) -> list[Law]:
    """Return the laws that only runs can tell, along the axis of the runs, up to a factor."""
    return [
        law
        for layer in layers
        if isinstance(layer, RunLayer)
        for law in layer.judged(state, runs, most, seeds, calibrated=calibrated)
    ]


def _less(law: Law, usable: float) -> Law:
    """Return a law of which only a share of the capacity may be used."""
    if usable >= 1:
        return law

    def strain(factor: float) -> float:
        return law.strain(factor) / usable if usable > 0 else inf

    return with_fields(law, strain=strain)


def _unheard(_: int) -> None:
    pass


class LawBook:
    """The laws of one question about one fleet; runs are shared by all that ask it."""

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
        heard = done or _unheard
        self.runs: Runs = runs_for(inputs, question.axis, most=question.most, done=heard)
        self.notes = window_note(self.runs.judged, inputs.jobs) if inputs.jobs else []
        self._runs_count = self.calibration.calibrated or question.count_assumed
        # What raises no alarm is shown, and one course of luck is enough for that.
        seeds = max(1, question.seeds) if self._runs_count else 1
        self._seeds = tuple(range(question.seed, question.seed + seeds))

    @property
    def spent(self) -> bool:
        """Whether runs have taken as much as a ladder may; the same on every machine."""
        return self.runs.jobs > JOBS_SPENT_MOST

    def every(self, state: State) -> list[Law]:
        """Return all laws of a state, those that raise no alarm among them."""
        figured = all_laws(state, self.question.axis, self.layers)
        return [*figured, *self._of_runs(state, figured)]

    def alarming(self, state: State) -> list[Law]:
        """Return the laws of a state that may be named."""
        figured = all_laws(state, self.question.axis, self.layers)
        of_runs = self._of_runs(state, figured) if self._runs_count else []
        return counted([*figured, *of_runs], self.question.count_assumed)

    def _of_runs(self, state: State, figured: Sequence[Law]) -> list[Law]:
        question = self.question
        now = joint(counted(figured, question.count_assumed), question.most)
        most = question.most if now.k is None else min(question.most, max(1.0, now.k) * BEYOND)
        most = min(most, overloaded_at(state, question.axis) or most)
        found = run_laws(
            state,
            self.runs,
            most=most,
            seeds=self._seeds[:SEEDS_RELIEVED] if state.reliefs else self._seeds,
            calibrated=self.calibration.calibrated,
            layers=self.layers,
        )
        return [law for law in found if law.key not in state.lifted]


def assumed(laws: Sequence[Law]) -> list[str]:
    """Return what the laws that may raise no alarm rest on."""
    layers = {law.layer: law.of for law in laws if law.grade == "assumed" and not law.needs}
    by_cause: dict[str, list[str]] = {}
    for name, layer in layers.items():
        if layer.assumes:
            by_cause.setdefault(layer.assumes, []).append(name)
    return [f"assumed for {', '.join(names)}: {cause}" for cause, names in by_cause.items()]
