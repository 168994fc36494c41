"""A simulated run as JSON. Imports little: many short runs are made this way."""

from typing import TYPE_CHECKING

from msgspec.structs import asdict

from tenfold.clock import process_cpu_s
from tenfold.compose.inputs import PreparedRun
from tenfold.compose.simulation import SimResult
from tenfold.model.units import SECOND
from tenfold.study.sim.bill import Bill

if TYPE_CHECKING:
    from tenfold.study.sim.detail import Detail
    from tenfold.study.sim.fill import FillResult


def run_json(
    prepared: PreparedRun, result: SimResult, costs: Bill, detail: "Detail | None" = None
) -> dict[str, object]:
    """Return a run as documented; figures that need `--detail` may be null."""
    cpu_s = process_cpu_s()
    summary = asdict(result.summary)
    return {
        **summary,
        "usd": costs.usd,
        "usd_per_gpu_hour": costs.usd_per_gpu_hour,
        "kwh": costs.kwh,
        **_grid_json(prepared, result),
        "fairness": detail and detail.fairness,
        "fragmentation": detail and detail.fragmentation,
        **_recorded_json(prepared),
        "restart_cost_s": prepared.request.settings.restart_cost_ms / SECOND,
        "assumptions": prepared.assumptions(result.summary),
        "events": result.events,
        "cpu_s": round(cpu_s, 3),
        "jobs_per_cpu_s": round(result.summary.jobs / max(cpu_s, 1e-6), 1),
        "teams": {team: asdict(part) for team, part in result.teams.items()},
    }


def _recorded_json(prepared: PreparedRun) -> dict[str, object]:
    """Return what the trace itself recorded, if it says when jobs started."""
    if not prepared.starts_ms:
        return {}
    from tenfold.study.sim.recorded import recorded_figures  # noqa: PLC0415

    request = prepared.request
    found = recorded_figures(request.jobs, prepared.starts_ms, request.gpus)
    return {} if found is None else {"recorded": asdict(found)}


def _grid_json(prepared: PreparedRun, result: SimResult) -> dict[str, object]:
    if prepared.grid is None:
        return {}
    from tenfold.study.sim.green import green_json  # noqa: PLC0415

    return green_json(prepared, result)


def fill_json(result: "FillResult") -> dict[str, object]:
    """Return a fill run as documented: nothing ends, so all times are 0."""
    cpu_s = process_cpu_s()
    return {
        "jobs": result.jobs,
        "finished": result.placed,
        "refused": result.dropped,
        "avg_jct_s": 0.0,
        "p50_jct_s": 0.0,
        "p99_jct_s": 0.0,
        "avg_wait_s": 0.0,
        "makespan_s": 0.0,
        "gpu_utilization": result.gpu_allocated_end,
        "preemptions": 0,
        "events": result.jobs,
        "cpu_s": round(cpu_s, 3),
        "jobs_per_cpu_s": round(result.jobs / max(cpu_s, 1e-6), 1),
        "teams": {},
        "gpus": result.gpus,
        "gpu_allocated": result.gpu_allocated,
        "gpu_allocated_end": result.gpu_allocated_end,
    }
