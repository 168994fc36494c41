"""Queue wait: how long jobs wait, by GPU time and by the team or size that waits longest.

Where a fleet has several accelerator types, jobs that ask for one of them are also judged apart.
Waits that the history recorded count for more than simulated ones: if they break the limit today,
or do not where the simulation says so, simulated waits are scaled to meet them at 1x. Where the
simulation has hardly any of a recorded wait, GPUs are not what these jobs waited for: no number of
nodes is offered as a fix.
"""

from collections.abc import Callable
from typing import NamedTuple

from tenfold.sim.measure.window import WindowFigures
from tenfold.study.grow.history import types_asked
from tenfold.study.grow.layer import Constraint
from tenfold.study.grow.layers.jobs.policy import shorter_waits
from tenfold.study.grow.recorded import RecordedWaits, recorded_of
from tenfold.study.grow.relief import Relief
from tenfold.study.grow.runs.layer import Reading, SimulatedLayer
from tenfold.study.grow.runs.run import RunFigures
from tenfold.study.grow.runs.runs import Runs
from tenfold.study.grow.state import State, state_of

RATIO_MOST = 10.0
"""Simulated waits that are further off have the wrong shape: recorded ones then follow the load."""
IDLE = 0.1
"""Recorded waits below this share of the limit are as good as none."""
NOT_SIMULATED = (
    "no known fix: the simulation does not show this wait, so more GPUs may not shorten it; check "
    "for nodes that were down, limits and reservations"
)
Waits = RunFigures | WindowFigures
Wait = Callable[[Waits], float]
"""Returns a wait of a run, or of a history as recorded, in seconds."""


class _Scale(NamedTuple):
    """How simulated waits are scaled to recorded ones."""

    ratio: float = 1.0
    floor: float = 0.0
    """Over the limit at `load`, where the length of simulated waits says nothing."""
    load: float = 1.0
    measured: bool = False
    simulated: bool = True
    """Whether the simulation shows the recorded wait at all."""


OVERLOADED = _Scale(floor=1.0, measured=True)
"""Where more is submitted than the GPUs can run, waits grow for as long as that lasts: how long
they are says nothing of how much is too much. They end once the load is below 1."""


class Queue(SimulatedLayer):
    """Waits are the effect of nearly everything, and so rank last of what breaks together."""

    name = "queue"
    title = "Queue wait"
    labels = (("waits", "Queue wait"),)
    resource = "waits"
    breaks = (
        "the P90 wait, weighted by GPU time or for any team, job size or accelerator type, "
        "exceeds `wait_s_p90`"
    )
    cause_rank = 80
    grows_by = "jobs"
    capacity_grows_with = ("nodes",)
    fixed_by = "higher team limits, more nodes of the type that is short, or another policy"
    always_listed = True
    shows_slow_jobs = True
    reports_missing_work = True
    resampled = True

    def reading(self, state: State, runs: Runs) -> Reading:
        """Read the longer of two waits against the limit."""
        return _reading(
            state,
            runs,
            _longer,
            _symptom,
            lambda constraint, target: shorter_waits(constraint, state, target),
        )

    def readings(self, state: State, runs: Runs) -> list[Reading]:
        """Read the waits of all jobs, and of those that ask for some accelerator types."""
        return [
            self.reading(state, runs),
            *(_typed(state, runs, types) for types in types_asked(state.inputs.jobs, state.spec)),
        ]


def _reading(
    state: State,
    runs: Runs,
    wait: Wait,
    symptom: Callable[[RunFigures], str],
    relieve: Callable[[Constraint, float], list[Relief]],
    resource: str = "",
) -> Reading:
    most_s = state.grow.limits.wait_s_p90
    recorded = state.once(recorded_of)
    scale = _scale(state, runs, wait, recorded)

    def utilisation(figures: RunFigures) -> float:
        most = scale.floor * figures.load / scale.load
        return max(scale.ratio * wait(figures) / most_s, most)

    def seen(figures: RunFigures) -> str:
        if scale.measured and recorded is not None:
            if not resource:
                return recorded.sentence_of_all
            return recorded.said(wait(recorded.figures), f"for {resource}")
        return symptom(figures)

    if not scale.simulated:
        return Reading(utilisation, seen, _nothing, resource, measured=True, no_fix=NOT_SIMULATED)
    return Reading(utilisation, seen, relieve, resource, measured=scale.measured)


def _typed(state: State, runs: Runs, types: tuple[str, ...]) -> Reading:
    """Read the waits of jobs that ask for some accelerator types."""
    label = "/".join(sorted(types))

    def wait(figures: Waits) -> float:
        return figures.wait_s_p90_by_type.get(label, 0.0)

    def relieve(constraint: Constraint, target: float) -> list[Relief]:
        return shorter_waits(constraint, state, target, types)

    return _reading(
        state,
        runs,
        wait,
        lambda figures: f"P90 wait {wait(figures) / 3_600:,.1f} h for jobs on {label}",
        relieve,
        f"jobs on {label}",
    )


def _scale(state: State, runs: Runs, wait: Wait, recorded: RecordedWaits | None) -> _Scale:
    """Return how waits are scaled so that today's are the recorded ones, if that matters."""
    if recorded is None:
        return _Scale()
    limit_s = state.grow.limits.wait_s_p90
    [today] = runs.at(state_of(state.inputs), [(0, 0)])
    real, simulated = wait(recorded.figures) / limit_s, wait(today) / limit_s
    if max(real, simulated) <= 1:
        return _Scale()
    if real > 1 and today.load >= 1:
        return OVERLOADED
    if simulated and real / simulated <= RATIO_MOST:
        return _Scale(max(real, IDLE) / simulated, measured=real > 1)
    if simulated > 1:
        return OVERLOADED
    return _Scale(floor=real, load=max(today.load, 1e-9), measured=True, simulated=False)


def _nothing(_: Constraint, __: float) -> list[Relief]:
    """Return no relief: how much one helps cannot be simulated."""
    return []


def _longer(figures: Waits) -> float:
    return max(figures.wait_s_p90_gpu, figures.wait_s_p90_worst)


def _symptom(figures: RunFigures) -> str:
    if figures.wait_s_p90_gpu >= figures.wait_s_p90_worst:
        return f"P90 wait, weighted by requested GPU time: {figures.wait_s_p90_gpu / 3_600:,.1f} h"
    whose = figures.worst_class or "jobs"
    return f"P90 wait {figures.wait_s_p90_worst / 3_600:,.1f} h for {whose}"
