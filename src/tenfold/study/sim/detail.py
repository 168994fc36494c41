"""Details of a run: charts, fairness and fragmentation.

These are computed from the record of the run only on request, since they take as long as a
short simulation.
"""

from collections.abc import Sequence

from msgspec import Struct

from tenfold.compose.simulation import SimRequest, SimResult
from tenfold.model.units import SECOND
from tenfold.sim.measure.fairness import Fairness, finish_time_fairness
from tenfold.sim.measure.fragmentation import fragmentation
from tenfold.sim.measure.timeline import Timeline, timeline


class Detail(Struct, frozen=True, kw_only=True):
    """Details of a run."""

    timeline: Timeline
    fairness: Fairness | None
    fragmentation: float | None
    """Share of the free GPUs that the next job could not have used where they were."""
    waits_s: tuple[float, ...]
    jcts_s: tuple[float, ...]


def run_detail(request: SimRequest, result: SimResult) -> Detail:
    """Return the charts and measures of a run that is over."""
    meters = result.meters
    jcts = [(end - job.submitted_ms, held) for job, _, _, held, end in meters.ends]
    return Detail(
        timeline=timeline(request.jobs, meters),
        fairness=finish_time_fairness(request.jobs, meters, request.gpus),
        fragmentation=fragmentation(request.nodes, request.jobs, meters),
        waits_s=tuple(sorted((jct - held) / SECOND for jct, held in jcts)),
        jcts_s=tuple(sorted(jct / SECOND for jct, _ in jcts)),
    )


def downsample(ordered: Sequence[float], most: int = 200) -> tuple[float, ...]:
    """Return so many values of a sorted distribution, evenly chosen, both ends kept."""
    if len(ordered) <= most:
        return tuple(ordered)
    return tuple(ordered[round(place * (len(ordered) - 1) / (most - 1))] for place in range(most))
