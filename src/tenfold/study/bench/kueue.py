"""Kueue's performance tests in the simulator."""

from tenfold.clock import Stopwatch
from tenfold.compose.simulation import SimRequest, SimResult, simulate
from tenfold.model.policy.policy import Policy
from tenfold.model.units import SECOND
from tenfold.study.bench.figures import Bench, Figure
from tenfold.study.bench.kueue_loads import (
    BASELINE,
    LARGE,
    TOPOLOGY,
    KueueLoad,
    governance_of,
    jobs_of,
    nodes_of,
)
from tenfold.study.bench.timed import LivelockGuard

LOADS: dict[str, KueueLoad] = {
    "kueue-baseline": BASELINE,
    "kueue-large": LARGE,
    "kueue-tas": TOPOLOGY,
}
TITLES = {
    "kueue-baseline": "15,000 workloads in 5 cohorts of 6 queues",
    "kueue-large": "50,000 workloads in 10 cohorts of 100 queues",
    "kueue-tas": "15,000 workloads in 5 cohorts of 6 queues, in racks: 640 nodes of 96 CPUs",
}
CONFIGS = {
    "kueue-baseline": "baseline",
    "kueue-large": "large-scale",
    "kueue-tas": "tas",
}
THEIRS: dict[str, dict[str, tuple[float, ...]]] = {
    "kueue-baseline": {
        "makespan": (351.0,),
        "large": (16.5,),
        "medium": (76.8,),
        "small": (215.5,),
        "usage": (55.9,),
    },
    "kueue-large": {
        "makespan": (1_179.0,),
        "large": (105.6,),
        "medium": (256.4,),
        "small": (700.4,),
        "usage": (38.6,),
    },
    "kueue-tas": {
        "makespan": (401.0,),
        "large": (38.0, 40.0),
        "medium": (106.0, 107.0),
        "small": (238.0, 247.0),
        "usage": (62.4,),
    },
}
RESUMES = "preempted jobs resume; with `--restart` they start over, as in Kueue's test"
RESTARTS = "preempted jobs start over, as in Kueue's test"


def bench_kueue(name: str, *, restart: bool, load: KueueLoad | None = None) -> Bench:
    """Run one of Kueue's scenarios; with `restart` a preempted job loses all work.

    `load` replaces the scenario's own load, for a smaller run.
    """
    load = load or LOADS[name]
    watch = Stopwatch()
    request = SimRequest(
        nodes=nodes_of(load),
        jobs=jobs_of(load, restart=restart),
        policy=Policy(name="governed", govern=governance_of(load)),
    )
    result = simulate(request, witnesses=[LivelockGuard()])
    cpu_s = watch.cpu_s()
    notes = [RESTARTS if restart else RESUMES]
    if load.racks:
        notes.append("each pod gets its own node here; in the published test pods may share one")
    return Bench(
        name=name,
        title=TITLES[name],
        figures=tuple(_figures(name, load, result, cpu_s)),
        ours_include="virtual time with a simulated executor; decisions take no virtual time, and "
        "their cost is the CPU time below",
        theirs_include="wall-clock time of API server, controllers and a mock executor",
        theirs_from="kubernetes-sigs/kueue, test/performance/scheduler/configs/"
        f"{CONFIGS[name]}/rangespec.yaml",
        notes=tuple(notes),
    )


def _figures(name: str, load: KueueLoad, result: SimResult, cpu_s: float) -> list[Figure]:
    theirs = THEIRS[name]
    ends, stops = result.meters.ends, result.meters.stops
    makespan_ms = max(at_ms for *_, at_ms in ends)
    held = sum(job.shape.gpus * ran_ms for job, _, ran_ms, _, _ in ends)
    held += sum(job.shape.gpus * ran_ms for job, _, ran_ms, _, _ in stops)
    figures = [
        Figure(
            name="makespan",
            ours=makespan_ms / SECOND,
            unit="s",
            theirs=theirs["makespan"],
        ),
        Figure(name="minimum possible makespan", ours=load.least_ms / SECOND, unit="s"),
        Figure(name="total work / total quota", ours=load.work_ms / SECOND, unit="s"),
    ]
    for size, waited_s in _admissions(load, result).items():
        figure = f"mean time to admission, {size}"
        figures.append(Figure(name=figure, ours=waited_s, unit="s", theirs=theirs[size]))
    usage = 100 * held / (load.slots * makespan_ms)
    figures += [
        Figure(name="mean quota use", ours=usage, unit="%", theirs=theirs["usage"]),
        Figure(name="workloads", ours=len(ends), unit=""),
        Figure(name="preemptions", ours=len(stops), unit=""),
        Figure(name="CPU time to simulate", ours=cpu_s, unit="s"),
    ]
    return figures


def _admissions(load: KueueLoad, result: SimResult) -> dict[str, float]:
    """Return seconds from arrival to the last admission, by size; theirs count the same."""
    sizes = {each.shape.key: each.size for each in load.streams}
    waited: dict[str, int] = {}
    count: dict[str, int] = {}
    for job, _, ran_ms, _, at_ms in result.meters.ends:
        size = sizes[job.shape.key]
        waited[size] = waited.get(size, 0) + at_ms - ran_ms - job.submitted_ms
        count[size] = count.get(size, 0) + 1
    order = dict.fromkeys(sizes[each.shape.key] for each in reversed(load.streams))
    return {size: waited[size] / count[size] / SECOND for size in order}
