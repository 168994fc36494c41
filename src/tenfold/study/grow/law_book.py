"""All laws of a state along one axis: what was measured, what figures say, and what runs say.

Figures cost nothing, runs do. So runs are looked at only as far as another layer lets the fleet
go, and on the way up the ladder only where they may be named at all.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace as with_fields
from math import inf

from tenfold.compose.grow_inputs import GrowInputs
from tenfold.model.growth import Axis
from tenfold.physics.growth.law import Law
from tenfold.study.grow.calibrate import calibrate
from tenfold.study.grow.laws_admission import admission_laws
from tenfold.study.grow.laws_compute import compute_laws
from tenfold.study.grow.laws_fabric import fabric_laws
from tenfold.study.grow.laws_lead_time import lead_time_laws
from tenfold.study.grow.laws_measured import measured_laws
from tenfold.study.grow.laws_money import money_laws
from tenfold.study.grow.laws_monitor import monitor_laws
from tenfold.study.grow.laws_runs import run_laws
from tenfold.study.grow.laws_serving import serving_laws
from tenfold.study.grow.laws_site import site_laws
from tenfold.study.grow.laws_storage import storage_laws
from tenfold.study.grow.laws_upkeep import upkeep_laws
from tenfold.study.grow.question import GrowQuestion
from tenfold.study.grow.run_window import overloaded_at, window_note
from tenfold.study.grow.runs import Runs, runs_for
from tenfold.study.grow.search import counted, joint
from tenfold.study.grow.state import State

BEYOND = 1.25
"""How far past the first break of figures runs are looked at: further they cannot be first."""
JOBS_SPENT_MOST = 400_000
"""Jobs of all runs of a ladder after which no further relief is tried."""
SEEDS_RELIEVED = 2
"""Courses of luck for a fleet that nobody has bought yet: its runs are larger, and many."""
NOT_JUDGED = (
    "compute",
    "step-efficiency",
    "fabric-uplinks",
    "queue",
    "governance",
    "admission",
    "serving",
    "spares",
    "operations",
    "monitoring",
    "money",
)
"""Layers that may have no law; they are named, so that silence is not taken for health."""
_FIGURED: tuple[Callable[[State, Axis], list[Law]], ...] = (
    site_laws,
    storage_laws,
    compute_laws,
    fabric_laws,
    admission_laws,
    serving_laws,
    upkeep_laws,
    monitor_laws,
    money_laws,
)
_OF_RUNS = "runs say so that were not found to be like what happened"
_OF_WORK = "work is that of a history without starts, of a mix, or of the model expected"
_OF_TRAFFIC = "the fabric is the usual one, or jobs are those of a mix or of the model expected"
_OF_MIX = "jobs arrive as a mix of the facts has them"
_ASSUMES = {
    "switch-ports": "a fabric that the file does not state has the switches that are usual",
    "storage-read": "every GPU reads the tokens of the model expected, at 4 bytes each",
    "storage-streams": "every GPU that reads keeps one stream open",
    "checkpoint-saves": "one job of the model expected runs on all GPUs and fails as is usual",
    "fabric-uplinks": _OF_TRAFFIC,
    "fabric-spine": _OF_TRAFFIC,
    "site-links": "tiers without GPUs beside them are read by all GPUs alike",
    "compute": _OF_WORK,
    "step-efficiency": _OF_WORK,
    "admission": _OF_MIX,
    "queue": _OF_RUNS,
    "governance": _OF_RUNS,
    "fragmentation": _OF_RUNS,
    "failures": _OF_RUNS,
    "contention": _OF_RUNS,
}


def all_laws(state: State, axis: Axis) -> list[Law]:
    """Return every law that needs no run but for those that are lifted; what was measured first."""
    measured = measured_laws(state, axis)
    better = {law.key for law in measured if not law.needs}
    figured = [law for of in _FIGURED for law in of(state, axis) if law.key not in better]
    # Usage without its limit is no law, but where another knows what to lay it beside.
    told = {law.layer for law in figured if not law.needs}
    seen = [law for law in measured if not law.needs or law.layer not in told]
    usable = 1 - state.grow.limits.headroom_least
    laws = [_less(law, usable) for law in (*seen, *figured)]
    laws += lead_time_laws(state, laws)
    return [law for law in laws if law.key not in state.lifted]


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
        self, inputs: GrowInputs, question: GrowQuestion, done: Callable[[int], None] | None = None
    ) -> None:
        self.question = question
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
        figured = all_laws(state, self.question.axis)
        return [*figured, *self._of_runs(state, figured)]

    def alarming(self, state: State) -> list[Law]:
        """Return the laws of a state that may be named."""
        figured = all_laws(state, self.question.axis)
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
        )
        return [law for law in found if law.key not in state.lifted]


def assumed(laws: Sequence[Law]) -> list[str]:
    """Return what the laws that may raise no alarm rest on."""
    layers = dict.fromkeys(law.layer for law in laws if law.grade == "assumed" and not law.needs)
    by_cause: dict[str, list[str]] = {}
    for layer in layers:
        if layer in _ASSUMES:
            by_cause.setdefault(_ASSUMES[layer], []).append(layer)
    return [f"assumed for {', '.join(names)}: {cause}" for cause, names in by_cause.items()]
