"""What a simulated run took from the grid: CO2 and dollars by the hour, and deadlines.

Only GPUs that are allocated count, each with its share of its node's power. Nodes that
stay on draw idle power at all hours alike, which no order of jobs changes.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import asdict

from tenfold.compose.inputs import PreparedRun
from tenfold.compose.simulation import SimResult
from tenfold.model.facts.intensity import MICROS, HourlyCurve
from tenfold.model.fleet.node import Node
from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.ids import NodeId
from tenfold.model.job.job import WHOLE, Job, Slot
from tenfold.model.units import HOUR, SECOND
from tenfold.sim.measure.meters import Meters
from tenfold.sim.measure.timeline import spans

GRAMS_PER_KG = 1_000


class Green(Struct, frozen=True, kw_only=True):
    """What a run took from the grid, and whether work was done in time."""

    co2_kg: float
    usd_energy: float | None
    """None where the curve has no price."""
    kwh_gpus: float
    """Of allocated GPUs alone, at the building's meter."""
    deadlines: int
    deadlines_missed: int
    """Ended late, or never ran."""
    jobs_shifted: int
    avg_shift_s: float
    """Over the jobs that were shifted."""


def green(prepared: PreparedRun, result: SimResult) -> Green | None:
    """Return what a run took from the grid, where its curves are known."""
    grid = prepared.grid
    if grid is None:
        return None
    request, meters = prepared.request, result.meters
    watts = watts_per_gpu(prepared.spec, request.nodes)
    price = grid.intensity.usd_per_kwh
    deadlines = sum(job.deadline_ms is not None for job in request.jobs)
    shift_ms = [request.release_ms[job.id] - job.submitted_ms for job in _shifted(prepared)]
    return Green(
        co2_kg=_grid_total(meters, watts, grid.intensity.co2_g_per_kwh) / GRAMS_PER_KG,
        usd_energy=None if price is None else _grid_total(meters, watts, price),
        kwh_gpus=sum(_watts(slots, watts) * (end - start) for _, slots, start, end in spans(meters))
        / 1_000
        / HOUR,
        deadlines=deadlines,
        deadlines_missed=deadlines - _deadlines_met(meters),
        jobs_shifted=len(shift_ms),
        avg_shift_s=sum(shift_ms) / max(1, len(shift_ms)) / SECOND,
    )


def green_json(prepared: PreparedRun, result: SimResult) -> dict[str, object]:
    """Return the same in the words of the contract; nothing where no curve is given."""
    found = green(prepared, result)
    return {} if found is None else asdict(found)


def watts_per_gpu(spec: FleetSpec, nodes: Sequence[Node]) -> dict[NodeId, float]:
    """Return what each GPU of a node draws with its share of the node, cooling included."""
    pue = {site.id: site.pue for site in spec.sites}
    by_pool = {
        pool.id: pool.power_w_per_node / pool.gpus_per_node * pue[pool.site]
        for pool in spec.pools
        if pool.gpus_per_node
    }
    return {node.id: by_pool.get(node.pool, 0.0) for node in nodes}


def _grid_total(meters: Meters, watts: dict[NodeId, float], curve: HourlyCurve) -> float:
    """Return the sum over all runs of their power times the curve, in the curve's unit."""
    total = sum(
        _watts(slots, watts) * curve.area(start, end) for _, slots, start, end in spans(meters)
    )
    return total / MICROS / 1_000 / HOUR


def _watts(slots: Sequence[Slot], watts: dict[NodeId, float]) -> float:
    return sum(watts[slot.node] * (slot.milli / WHOLE or slot.gpus) for slot in slots)


def _deadlines_met(meters: Meters) -> int:
    ends = ((job.deadline_ms, end) for job, _, _, _, end in meters.ends)
    return sum(deadline is not None and end <= deadline for deadline, end in ends)


def _shifted(prepared: PreparedRun) -> list[Job]:
    release_ms = prepared.request.release_ms
    return [job for job in prepared.request.jobs if job.id in release_ms]
