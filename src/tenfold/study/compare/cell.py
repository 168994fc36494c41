"""One simulation of a comparison, from files to figures."""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from tenfold.compose.inputs import PreparedRun, SimFiles, prepare
from tenfold.compose.simulation import simulate
from tenfold.model.errors import TenfoldError
from tenfold.sim.measure.meters import Summary
from tenfold.study.sim.bill import bill
from tenfold.study.sim.detail import Detail, downsample, run_detail
from tenfold.study.sim.recorded import recorded_figures

Figures = dict[str, float]
CURVE_POINTS = 200
FIGURES: Mapping[str, bool | None] = {
    "gpu_utilization": True,
    "goodput": True,
    "avg_wait_s": False,
    "avg_jct_s": False,
    "p50_jct_s": False,
    "p99_jct_s": False,
    "makespan_s": False,
    "usd": False,
    "usd_per_gpu_hour": False,
    "kwh": False,
    "preemptions": False,
    "failures": None,
    "jain": True,
    "rho_mean": False,
    "late_share": False,
    "fragmentation": False,
    "finished": True,
    "refused": False,
}
"""Figures compared, and whether more is better; None if neither."""


class Cell(Struct, frozen=True, kw_only=True):
    """One simulation to run."""

    files: SimFiles
    with_curves: bool = False


class Curves(Struct, frozen=True, kw_only=True):
    """What a chart of a run needs, thinned. Times are seconds since the first submission."""

    allocated: tuple[tuple[float, float], ...]
    """Share of the GPUs."""
    waiting: tuple[tuple[float, float], ...]
    waits_s: tuple[float, ...]
    jcts_s: tuple[float, ...]


class CellError(Struct, frozen=True, kw_only=True):
    """Why a cell has no figures."""

    code: str
    message: str
    hint: str = ""


class CellResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Result of a cell: figures or an error."""

    fleet: str
    jobs: str
    policy: str
    seed: int
    figures: Figures | None = None
    error: CellError | None = None
    curves: Curves | None = None
    notes: tuple[str, ...] = ()
    recorded: Figures | None = None
    """What the trace itself recorded, if it says when jobs started."""


def run_cell(cell: Cell) -> CellResult:
    """Run one simulation from its files to its figures; an error is a result too."""
    try:
        prepared = prepare(cell.files)
        result = simulate(prepared.request)
        detail = run_detail(prepared.request, result)
        costs = bill(prepared.spec, result.summary)
    except TenfoldError as error:
        return _cell_result(
            cell, CellError(code=error.code, message=error.message, hint=error.hint)
        )
    except Exception as error:
        return _cell_result(cell, CellError(code="bug", message=f"{type(error).__name__}: {error}"))
    figures = _figures(result.summary, detail)
    figures |= {"kwh": costs.kwh}
    if costs.usd is not None:
        figures["usd"] = costs.usd
    if costs.usd_per_gpu_hour is not None:
        figures["usd_per_gpu_hour"] = costs.usd_per_gpu_hour
    return replace(
        _cell_result(cell, None),
        figures={name: figures[name] for name in FIGURES if name in figures},
        curves=_curves(detail, prepared.request.gpus) if cell.with_curves else None,
        recorded=_recorded(prepared),
        notes=(*prepared.notes, *prepared.assumptions(result.summary)),
    )


def lost_cell(cell: Cell, why: str) -> CellResult:
    """Return the result of a cell whose process or machine died."""
    return _cell_result(cell, CellError(code="cell-lost", message=f"the run did not finish: {why}"))


def _cell_result(cell: Cell, error: CellError | None) -> CellResult:
    files = cell.files
    return CellResult(
        fleet=str(files.fleet),
        jobs=str(files.jobs),
        policy=files.policy,
        seed=files.settings.seed,
        error=error,
    )


def _figures(summary: Summary, detail: Detail) -> Figures:
    figures: Figures = {name: getattr(summary, name) for name in FIGURES if hasattr(summary, name)}
    if detail.fairness is not None:
        figures["rho_mean"] = detail.fairness.rho_mean
        figures["late_share"] = detail.fairness.late_share
    if detail.fragmentation is not None:
        figures["fragmentation"] = detail.fragmentation
    return figures


def _recorded(prepared: PreparedRun) -> Figures | None:
    found = recorded_figures(prepared.request.jobs, prepared.starts_ms, prepared.request.gpus)
    if found is None:
        return None
    return {name: getattr(found, name) for name in FIGURES if hasattr(found, name)}


def _curves(detail: Detail, gpus: int) -> Curves:
    line = detail.timeline
    busy = [one / max(1, gpus) for one in line.gpus_allocated]
    return Curves(
        allocated=tuple(zip(line.at_s, busy, strict=True)),
        waiting=tuple(zip(line.at_s, line.jobs_waiting, strict=True)),
        waits_s=downsample(detail.waits_s, CURVE_POINTS),
        jcts_s=downsample(detail.jcts_s, CURVE_POINTS),
    )
