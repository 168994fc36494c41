"""Does the 80% interval of queue waits cover the truth, over histories of known processes?

Each history is a fresh sample of a stream whose breaking factor is known from a very long run of
a second simulator. Beside the interval stands the one without sampling error, as it was before:
the spread over seeds alone. Four hundred histories take about a quarter of an hour of one core.
"""

import sys
from math import inf
from typing import NamedTuple

from benchmarks.grow.known_queues import STREAMS, Stream, draw, starts_s, true_factor
from benchmarks.verdict import Verdict
from tenfold.model.errors import TenfoldError
from tenfold.model.growth.growth import GrowSpec, GrowthLimits
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.policy.policy import Policy
from tenfold.model.units import SECOND, Millis
from tenfold.physics.growth.breaking import Break, break_of
from tenfold.study.grow.calibrate import ERROR_MOST
from tenfold.study.grow.constraint_set import ConstraintSet
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layer import break_of as break_with_sampling
from tenfold.study.grow.layers.jobs.queue import Queue
from tenfold.study.grow.question import GrowQuestion
from tenfold.study.grow.runs.curve import run_curve
from tenfold.study.grow.runs.run import RunFigures
from tenfold.study.grow.state import state_of
from tenfold.study.parallel import process_map, usable_cpus
from tests.growth_builders import fleet

HISTORIES = 50
"""Of each stream; seeds from here on were kept aside while this was written."""
SEED_FIRST = 500_000
SEEDS = 3
MOST = 5.0
NODE_GPUS = 8


class Task(NamedTuple):
    """One history of one stream."""

    stream: int
    seed: int
    truth: float
    """Found once and not by each process: it takes a very long run."""


class Judged(NamedTuple):
    """The truth, and what was said of it with and without sampling error."""

    stream: int
    truth: float
    now: Break
    before: Break
    calibrated: bool

    def line(self) -> str:
        k, low, high, _ = self.now
        said = f"{k or MOST:.2f} from {low or MOST:.2f} to {inf if high is None else high:.2f}"
        word = "inside" if _inside(self.now, self.truth) else "OUTSIDE"
        before = "inside" if _inside(self.before, self.truth) else "outside"
        return f"truth {self.truth:.2f}, said {said}: {word} (before: {before})"


def run(thresholds: dict[str, float]) -> list[Verdict]:
    truths = [true_factor(stream) for stream in STREAMS]
    tasks = [
        Task(stream, SEED_FIRST + 1_000 * stream + seed, truths[stream])
        for seed in range(HISTORIES)
        for stream in range(len(STREAMS))
    ]
    found = process_map(judged, tasks, workers=usable_cpus(), lost=_lost, done=lambda _: None)
    print(f"{'stream':20}  truth  off by  covered  before calibrated")
    for place, stream in enumerate(STREAMS):
        rows = [one for one in found if one.stream == place]
        print(
            f"{stream.name:20} {rows[0].truth:6.2f} {_off(rows):7.1%} {_covered(rows):8.0%} "
            f"{_covered_before(rows):7.0%} {sum(one.calibrated for one in rows):10}"
        )
    percent = 100 * _covered(found)
    print(
        f"{len(found)} histories: the 80% interval covers the truth in {percent:.1f}%; "
        f"by seeds alone, as before, in {100 * _covered_before(found):.1f}%"
    )
    bounds = thresholds["covers_most"], thresholds["covers_least"]
    name = "truths inside their 80% interval"
    return [Verdict(name, percent, at_most=bounds[0], unit="%", at_least=bounds[1])]


def judged(task: Task) -> Judged:
    """Return one history with its intervals."""
    stream = STREAMS[task.stream]
    inputs = history(stream, task.seed)
    question = GrowQuestion(axis="jobs", to=(MOST,), seeds=SEEDS)
    constraints = ConstraintSet(inputs, question, layers=(Queue(),))
    state = state_of(inputs)
    [queue] = constraints.all(state)

    def read(figures: RunFigures) -> float:
        return max(figures.wait_s_p90_gpu, figures.wait_s_p90_worst) / stream.wait_s

    seeds = tuple(range(SEEDS)) if constraints.calibration.calibrated else (0,)
    curve = run_curve(constraints.runs, state, read, MOST, seeds)
    found = Judged(
        task.stream,
        task.truth,
        break_with_sampling(queue, MOST),
        break_of(curve.utilisation, max(ERROR_MOST, curve.spread), MOST),
        constraints.calibration.calibrated,
    )
    print(f"{stream.name}: {found.line()}", file=sys.stderr, flush=True)
    return found


def history(stream: Stream, seed: int) -> GrowInputs:
    """Return a history of a stream, with the starts that the second simulator gives."""
    drawn = draw(stream, 1.0, stream.days, seed)
    starts = starts_s(drawn, stream.nodes)
    rows = zip(drawn.at_s.tolist(), drawn.runs_s.tolist(), drawn.nodes.tolist(), strict=True)
    jobs = [
        Job(
            id=JobId(f"j{place}"),
            shape=shape_of(nodes * NODE_GPUS, gpus_per_node=NODE_GPUS if nodes > 1 else None),
            submitted_ms=Millis(round(at * SECOND)),
            seq=place,
            duration_ms=Millis(round(runs * SECOND)),
        )
        for place, (at, runs, nodes) in enumerate(rows)
    ]
    return GrowInputs(
        fleet=fleet(nodes=stream.nodes),
        jobs=jobs,
        starts_ms={
            job.id: Millis(max(job.submitted_ms, round(at * SECOND)))
            for job, at in zip(jobs, starts.tolist(), strict=True)
        },
        policy=Policy(name="fifo"),
        grow=GrowSpec(limits=GrowthLimits(wait_s_p90=stream.wait_s)),
    )


def _inside(broken: Break, truth: float) -> bool:
    low = inf if broken.low is None else broken.low
    return low <= truth <= (inf if broken.high is None else broken.high)


def _covered(rows: list[Judged]) -> float:
    return sum(_inside(one.now, one.truth) for one in rows) / len(rows)


def _covered_before(rows: list[Judged]) -> float:
    return sum(_inside(one.before, one.truth) for one in rows) / len(rows)


def _off(rows: list[Judged]) -> float:
    """Return the median error of the factor."""
    apart = sorted(abs((one.now.k or MOST) / one.truth - 1) for one in rows)
    return apart[len(apart) // 2]


def _lost(task: Task, why: str) -> Judged:
    raise TenfoldError("run-lost", f"history {task.seed} was lost: {why}", "use more memory")
