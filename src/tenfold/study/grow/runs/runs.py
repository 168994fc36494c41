"""Simulation runs shared by constraints: each is made once.

Factors lie on a grid of sixteen steps to a doubling, so that nearby searches share runs. A run is
identified by what it reads: a relief that changes none of it, such as a larger power feed, reuses
every earlier run.
"""

from collections.abc import Callable, Sequence
from math import ceil, floor, log2

from msgspec import Struct

from tenfold.compose.failures import FailureSource
from tenfold.model.errors import TenfoldError
from tenfold.model.facts.failure_law import NO_FAILURES
from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.growth.growth import Axis, grows_along
from tenfold.model.job.job import Job
from tenfold.model.units import MINUTE, Millis
from tenfold.sim.measure.window import Window
from tenfold.sim.world import SimSettings
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.runs.resample import Blocks
from tenfold.study.grow.runs.run import GrowTask, RunFigures, run_digest, run_once
from tenfold.study.grow.runs.window import policy_cost, representative_window
from tenfold.study.grow.state import State
from tenfold.study.parallel import process_map, usable_cpus

PER_DOUBLING = 16
POOL_JOBS = 20_000
"""Jobs in a batch of runs above which starting processes pays off."""
_NEAR = 1e-9


class RunKey(Struct, frozen=True):
    """Identifies one run of a history."""

    read: str
    """The digest of what it reads of fleet and policy, from `run_digest`."""
    axis: Axis
    place: int
    seed: int
    draw: int = 0
    """The history: 0 is the real one, others are drawn from its days; one of `-n` is n as long."""


def factor_at(place: int) -> float:
    """Return the factor at a grid index; index 0 is 1."""
    return 2.0 ** (place / PER_DOUBLING)


def index_below(factor: float) -> int:
    """Return the last grid index whose factor is not above the one given."""
    return floor(log2(factor) * PER_DOUBLING + _NEAR)


def index_above(factor: float) -> int:
    """Return the first grid index whose factor is not below the one given."""
    return ceil(log2(factor) * PER_DOUBLING - _NEAR)


def _ignore_progress(_: int) -> None:
    pass


class Runs:
    """The runs of one history along one axis, made on first use."""

    def __init__(
        self,
        axis: Axis,
        *,
        failures: FailureSource = NO_FAILURES,
        history_window: Window | None = None,
        workers: int | None = None,
        done: Callable[[int], None] = _ignore_progress,
    ) -> None:
        self.axis: Axis = axis
        self.made = 0
        self.jobs = 0
        """Cost of all runs made so far, in jobs; independent of the machine."""
        self.reused = 0
        self.history_window = history_window
        self._failures = failures
        self._workers = workers
        self._done = done
        self._known: dict[RunKey, RunFigures] = {}
        self._blocks: Blocks | None = None
        self._drawn: dict[int, Sequence[Job]] = {}
        self.spreads: dict[str, float] = {}
        """How far the factor of a constraint may be off because the history is a sample."""
        self.length_biases: dict[str, float] = {}
        """How much too high a factor is because the history is short."""

    @property
    def fails(self) -> bool:
        """Whether nodes fail in these runs."""
        return self._failures != NO_FAILURES

    def key(self, state: State, place: int, seed: int, draw: int = 0) -> RunKey:
        """Return the key of a run; at factor 1 without failures all seeds are the same."""
        if place == 0 and not self.fails:
            seed = 0
        name = f"{self._failures_name()} {_saves_ms(state)}" if self.fails else ""
        return RunKey(
            run_digest(_effective_spec(state), state.policy, name), self.axis, place, seed, draw
        )

    def at(self, state: State, samples: Sequence[tuple[int, int]]) -> list[RunFigures]:
        """Return the figures of runs by (grid index, seed), making those that are missing."""
        return self.at_drawn(state, [(place, seed, 0) for place, seed in samples])

    def at_drawn(self, state: State, samples: Sequence[tuple[int, int, int]]) -> list[RunFigures]:
        """Return the figures of runs by (grid index, seed, drawn history)."""
        keys = [self.key(state, *sample) for sample in samples]
        fresh = [key for key in dict.fromkeys(keys) if key not in self._known]
        tasks = [self._task(state, key) for key in fresh]
        made, workers = self.made, self._processes(state, fresh)
        found = process_map(
            run_once,
            tasks,
            workers=workers,
            lost=_lost,
            done=lambda count: self._done(made + count),
        )
        self._known.update(zip(fresh, found, strict=True))
        self.made += len(fresh)
        self.jobs += round(policy_cost(state.policy) * sum(one.jobs for one in found))
        self.reused += len(keys) - len(fresh)
        return [self._known[key] for key in keys]

    def blocks(self, state: State) -> Blocks:
        """Return the blocks of days that histories are drawn from."""
        if self._blocks is None:
            self._blocks = Blocks(state.inputs.jobs, self.history_window)
        return self._blocks

    def figure(self, state: State, factor: float, seed: int, name: str) -> float:
        """Return one figure by name, interpolated on the logarithm between grid points."""
        below, above = index_below(factor), index_above(factor)
        low, high = self.at(state, [(below, seed), (above, seed)])
        first, last = float(getattr(low, name)), float(getattr(high, name))
        if below == above:
            return first
        part = log2(factor) * PER_DOUBLING - below
        return first + (last - first) * part

    def _task(self, state: State, key: RunKey) -> GrowTask:
        inputs = state.inputs
        return GrowTask(
            spec=_effective_spec(state),
            jobs=self._history(state, key.draw),
            policy=state.policy,
            axis=self.axis,
            factor=factor_at(key.place),
            seed=key.seed,
            profiles=inputs.profiles,
            ends=inputs.ends if key.draw == 0 else {},
            failures=self._failures,
            settings=SimSettings(checkpoint_every_ms=_saves_ms(state)),
            history_window=self.history_window,
        )

    def _history(self, state: State, draw: int) -> Sequence[Job]:
        if draw == 0:
            return state.inputs.jobs
        if draw not in self._drawn:
            longer = max(1, -draw)
            self._drawn[draw] = self.blocks(state).history(draw, longer)
        return self._drawn[draw]

    def _processes(self, state: State, keys: Sequence[RunKey]) -> int:
        """Return how many processes to use for a batch: starting them takes time, too."""
        jobs = sum(self.jobs_at(state, factor_at(key.place)) for key in keys)
        if jobs < POOL_JOBS:
            return 1
        return self._workers or usable_cpus()

    def jobs_at(self, state: State, factor: float) -> float:
        """Return about what a run at a factor costs, in jobs."""
        return self._jobs(state) * max(1.0, factor) * policy_cost(state.policy)

    def _jobs(self, state: State) -> int:
        window = self.history_window
        if window is None:
            return len(state.inputs.jobs)
        came = [job.submitted_ms for job in state.inputs.jobs]
        return sum(1 for at in came if window.from_ms <= at <= window.until_ms)

    def _failures_name(self) -> str:
        source = self._failures
        return getattr(source, "name", "") or getattr(source, "file", "")


def _effective_spec(state: State) -> FleetSpec:
    """Return the fleet to simulate, without the limits that are relaxed."""
    spec = state.spec
    for relaxed in state.unlimited:
        spec = relaxed(spec)
    return spec


def _saves_ms(state: State) -> Millis:
    """Return the checkpoint interval of jobs that do not state one."""
    minutes = state.grow.operations.checkpoint_every_min
    return SimSettings().checkpoint_every_ms if minutes is None else Millis(round(minutes * MINUTE))


def runs_for(
    inputs: GrowInputs,
    axis: Axis,
    *,
    most: float = 1.0,
    done: Callable[[int], None] = _ignore_progress,
) -> Runs:
    """Return the runs of a history; nodes fail in them only if none failed in the history.

    A history already includes the failures of its time: its jobs were interrupted and ran longer.
    Adding failures would count them twice. The number of jobs of the largest run is limited, so
    a long history is simulated in part.
    """
    recorded = any(status == "failed" for status in inputs.ends.values())
    failures = NO_FAILURES if recorded else inputs.failures
    many = policy_cost(inputs.policy) * (most if grows_along(axis, "jobs") else 1.0)
    history_window = representative_window(inputs.jobs, many, inputs.grow.limits.wait_s_p90)
    return Runs(axis, failures=failures, history_window=history_window, done=done)


def _lost(task: GrowTask, why: str) -> RunFigures:
    raise TenfoldError(
        "run-lost",
        f"the simulation run at {task.factor:.3g}x `{task.axis}` failed: {why}",
        "use a smaller factor, or a history of fewer days",
    )
