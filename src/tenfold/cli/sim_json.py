"""A simulated run as JSON for programs. It loads little: many short runs are made this way."""

from typing import TYPE_CHECKING

from msgspec.structs import asdict

from tenfold.clock import process_cpu_s
from tenfold.compose.sim_bill import Bill
from tenfold.compose.simulation import SimResult
from tenfold.study.fill import FillResult

if TYPE_CHECKING:
    from tenfold.compose.sim_detail import Detail


def run_json(result: SimResult, costs: Bill, detail: "Detail | None" = None) -> dict[str, object]:
    """Return a run in the words of its contract; what takes a closer look may be null."""
    cpu_s = process_cpu_s()
    summary = asdict(result.summary)
    return {
        **summary,
        "usd": costs.usd,
        "usd_per_gpu_hour": costs.usd_per_gpu_hour,
        "kwh": costs.kwh,
        "fairness": detail and detail.fairness,
        "fragmentation": detail and detail.fragmentation,
        "events": result.events,
        "cpu_s": round(cpu_s, 3),
        "jobs_per_cpu_s": round(result.summary.jobs / max(cpu_s, 1e-6), 1),
        "teams": {team: asdict(part) for team, part in result.teams.items()},
    }


def fill_json(result: FillResult) -> dict[str, object]:
    """Return a filling in the words of its contract."""
    return {**asdict(result), "cpu_s": round(process_cpu_s(), 3)}
