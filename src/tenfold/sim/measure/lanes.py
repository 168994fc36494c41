"""Runs laid out for a gantt chart: a lane for every GPU of a few nodes, rack by rack.

A picture holds only so much: the first racks are shown, and of their runs the largest.
Which device a run had is not decided in a simulation, so lanes are given out in order.
"""

from collections.abc import Sequence
from heapq import nlargest

from msgspec import Struct

from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.job import Slot
from tenfold.model.units import SECOND
from tenfold.sim.measure.meters import Meters
from tenfold.sim.measure.timeline import Span, spans

NODES_MAX = 48
RUNS_MAX = 3_000


class LaneRun(Struct, frozen=True, kw_only=True):
    """A part of a run: neighbouring lanes of one node."""

    node: NodeId
    lane: int
    lanes: int
    start_s: float
    end_s: float
    job: JobId
    team: TeamId


def shown_nodes(nodes: Sequence[Node], most: int = NODES_MAX) -> list[Node]:
    """Return the nodes with GPUs of the first racks: whole racks, if one fits at all."""
    racks: dict[str, list[Node]] = {}
    for node in nodes:
        if node.gpus:
            racks.setdefault(node.rack, []).append(node)
    chosen: list[Node] = []
    for rack in racks.values():
        if chosen and len(chosen) + len(rack) > most:
            break
        chosen += rack
    return chosen[:most]


def lane_runs(
    nodes: Sequence[Node], meters: Meters, first_ms: int, most: int = RUNS_MAX
) -> list[LaneRun]:
    """Return where the runs of some nodes are drawn; times count from `first_ms`."""
    busy = {node.id: [-1] * node.gpus for node in nodes}
    on_nodes = [
        (job, tuple(slot for slot in slots if slot.node in busy), start, end)
        for job, slots, start, end in spans(meters)
    ]
    drawn = nlargest(most, (span for span in on_nodes if span[1] and span[3] > span[2]), key=_size)
    drawn.sort(key=lambda span: (span[2], span[3], span[0].seq, span[0].id))
    runs: list[LaneRun] = []
    for job, slots, start, end in drawn:
        for slot in slots:
            for lane, count in _assign_lanes(busy[slot.node], slot, start, end):
                runs.append(
                    LaneRun(
                        node=slot.node,
                        lane=lane,
                        lanes=count,
                        start_s=(start - first_ms) / SECOND,
                        end_s=(end - first_ms) / SECOND,
                        job=job.id,
                        team=job.team,
                    )
                )
    return runs


def _size(span: Span) -> int:
    _, slots, start, end = span
    return (end - start) * sum(slot.gpus or 1 for slot in slots)


def _assign_lanes(busy: list[int], slot: Slot, start: int, end: int) -> list[tuple[int, int]]:
    """Take lanes and return them as (first, how many) of each neighbouring group."""
    if slot.milli:
        lanes = [slot.device]
    else:
        free = [lane for lane, until in enumerate(busy) if until <= start]
        lanes = free[: slot.gpus]
    groups: list[tuple[int, int]] = []
    for lane in lanes:
        busy[lane] = max(busy[lane], end)
        if groups and sum(groups[-1]) == lane:
            groups[-1] = (groups[-1][0], groups[-1][1] + 1)
        else:
            groups.append((lane, 1))
    return groups
