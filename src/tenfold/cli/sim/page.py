"""The content of the HTML page of a run."""

from collections.abc import Sequence

from tenfold.cli.sim.render import figures, hours, recorded_cells, run_headline, teams_rows
from tenfold.compose.inputs import PreparedRun
from tenfold.compose.simulation import SimResult
from tenfold.report.charts.axes import usd
from tenfold.report.charts.gantt import GanttBar, GanttRow
from tenfold.report.figures import count, share
from tenfold.report.pages.sim import RunPage
from tenfold.sim.measure.lanes import lane_runs, shown_nodes
from tenfold.study.sim.bill import Bill
from tenfold.study.sim.detail import Detail, downsample
from tenfold.study.sim.green import green

CDF_POINTS = 400


def run_page(prepared: PreparedRun, result: SimResult, detail: Detail, costs: Bill) -> RunPage:
    """Return what the page of a run shows."""
    request, summary, line = prepared.request, result.summary, detail.timeline
    nodes = shown_nodes(request.nodes)
    first = request.jobs[0].submitted_ms if request.jobs else 0
    gpus = max(1, request.gpus)
    return RunPage(
        title=f"Fleet {prepared.spec.name}, policy {request.policy.name}",
        lead=f"{run_headline(prepared, result)}.",
        tiles=_tiles(result, costs),
        figures=[
            *figures(summary, costs, detail, green(prepared, result)),
            *((f"{name}, recorded", value) for name, value in recorded_cells(prepared).items()),
        ],
        allocated=_curve(line.at_s, [one / gpus for one in line.gpus_allocated]),
        waiting=_curve(line.at_s, line.jobs_waiting),
        running=_curve(line.at_s, line.jobs_running),
        down=_curve(line.at_s, line.nodes_down),
        waits_s=downsample(detail.waits_s, CDF_POINTS),
        jcts_s=downsample(detail.jcts_s, CDF_POINTS),
        rows=[GanttRow(node.rack, node.id, node.gpus) for node in nodes],
        bars=[
            GanttBar(
                run.node,
                run.lane,
                run.lanes,
                run.start_s,
                run.end_s,
                run.team,
                f"{run.job}, team {run.team or '(none)'}: {hours(run.end_s - run.start_s)} on "
                f"{run.node}",
            )
            for run in lane_runs(nodes, result.meters, first)
        ],
        shown=_shown(len(nodes), sum(node.gpus > 0 for node in request.nodes)),
        teams=teams_rows(result.teams),
        assumed=[
            *prepared.assumptions(summary),
            *costs.assumed,
            *(prepared.grid.notes if prepared.grid else ()),
        ],
    )


def _tiles(result: SimResult, costs: Bill) -> list[tuple[str, str]]:
    summary = result.summary
    tiles = [
        (share(summary.gpu_utilization), "GPUs allocated"),
        (share(summary.goodput), "goodput"),
        (hours(summary.avg_wait_s), "mean wait"),
        (hours(summary.avg_jct_s), "mean job completion time"),
        (hours(summary.makespan_s), "makespan"),
    ]
    if costs.usd is not None:
        tiles.append((usd(costs.usd), "fleet cost"))
    return tiles


def _curve(at_s: Sequence[float], values: Sequence[float]) -> list[tuple[float, float]]:
    return list(zip(at_s, values, strict=True))


def _shown(shown: int, nodes: int) -> str:
    part = "all" if shown == nodes else f"the first {shown} of"
    return f"{part} {count(nodes, 'node')} with GPUs, one lane per GPU; only the largest runs"
