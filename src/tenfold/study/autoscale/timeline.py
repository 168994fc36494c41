"""Replicas and offered work of a run over time, for charts."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from tenfold.model.service.simulated import RequestTrace, SimulatedService
from tenfold.model.units import SECOND
from tenfold.sim.service.run import ServiceRun

POINTS = 360


class Timeline(Struct, frozen=True):
    """Means over equal parts of a run."""

    at_ms: Sequence[int]
    """The start of each part."""
    replicas: Sequence[float]
    """Replicas that are paid for."""
    busy: Sequence[float]
    """Replicas that the work of the requests fills, in the part in which they arrive."""


def timeline(run: ServiceRun, trace: RequestTrace, service: SimulatedService) -> Timeline:
    """Return the replicas of a run over time, and what its requests ask for."""
    edges = np.linspace(0, max(run.end_ms, 1), POINTS + 1)
    part_ms = edges[1] - edges[0]
    existed = np.zeros(POINTS)
    for one in run.replicas:
        end_ms = run.end_ms if one.stopped_ms < 0 else min(one.stopped_ms, run.end_ms)
        overlap = np.minimum(edges[1:], end_ms) - np.maximum(edges[:-1], one.ordered_ms)
        existed += np.maximum(overlap, 0)
    slot_s = (
        np.asarray(trace.input_tokens) / service.prefill_tokens_per_s
        + np.asarray(trace.output_tokens) / service.decode_tokens_per_s
    )
    work_s = np.histogram(np.asarray(trace.arrived_ms), edges, weights=slot_s)[0]
    return Timeline(
        at_ms=np.rint(edges[:-1]).astype(np.int64).tolist(),
        replicas=(existed / part_ms).tolist(),
        busy=(work_s * SECOND / part_ms / service.slots).tolist(),
    )
