"""A comparison of policies as text tables and as the content of its HTML page."""

from collections.abc import Callable, Sequence
from pathlib import Path

from tenfold.cli.output import show, table
from tenfold.cli.screen import Text
from tenfold.cli.sim.render import hours
from tenfold.report.charts.axes import usd
from tenfold.report.figures import count
from tenfold.report.pages.compare import ComparePage, Overlay
from tenfold.study.compare.cell import FIGURES, CellResult
from tenfold.study.compare.compare import RECORDED, Comparison, Row, Score, Spread

Formatter = Callable[[float], str]
BEST = "*"
PLUS_MINUS = "\u00b1"
GENERIC = ("fleet", "jobs", "trace", "nodes")
"""File names that say less than their folder name."""


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:,.2f}"


def _percent(value: float) -> str:
    return f"{value:.1%}"


FIGURE_LABELS: dict[str, tuple[str, Formatter]] = {
    "gpu_utilization": ("allocated", _percent),
    "goodput": ("goodput", _percent),
    "avg_wait_s": ("mean wait", hours),
    "avg_jct_s": ("mean JCT", hours),
    "p99_jct_s": ("P99 JCT", hours),
    "makespan_s": ("makespan", hours),
    "usd": ("cost", usd),
    "usd_per_gpu_hour": ("cost per useful GPU-hour", usd),
    "kwh": ("kWh", _number),
    "preemptions": ("preemptions", _number),
    "failures": ("runs lost to failures", _number),
    "jain": ("fairness (Jain)", _number),
    "rho_mean": ("finish-time fairness", _number),
    "late_share": ("jobs slower than under a fair share", _percent),
    "fragmentation": ("fragmentation", _percent),
}
COLUMNS = (
    "gpu_utilization",
    "goodput",
    "avg_wait_s",
    "avg_jct_s",
    "makespan_s",
    "usd",
    "preemptions",
)


def show_comparison(comparison: Comparison) -> None:
    """Print the policies side by side, the scorecard, and what failed."""
    for (fleet, jobs), rows in _groups(comparison.rows).items():
        recorded = _recorded(comparison, fleet, jobs)
        columns, cells = _table(rows, recorded=recorded)
        if (fleet, jobs) != (comparison.rows[0].fleet, comparison.rows[0].jobs):
            show("")
        show(Text(_title(rows, comparison), style="bold"), table("", columns, cells))
        scores = [one for one in comparison.scorecard if (one.fleet, one.jobs) == (fleet, jobs)]
        if scores:
            scored = _scores(scores, recorded)
            show("", _scores_title(comparison.baseline), table("", *scored))
    if any(row.seeds for row in comparison.rows):
        show("", _legend(comparison))
    failed = sum(cell.error is not None for cell in comparison.cells)
    if failed:
        show("", Text(f"{count(failed, 'run')} failed", style="bold red"))
        show(*(f"  {why}" for why in _failures(comparison.cells)))


def compare_page(comparison: Comparison) -> ComparePage:
    """Return what the page of a comparison shows."""
    groups = _groups(comparison.rows)
    overlays: list[Overlay] = []
    for (fleet, jobs), rows in groups.items():
        drawn = {
            cell.policy: cell.curves
            for cell in comparison.cells
            if cell.curves is not None and (cell.fleet, cell.jobs) == (fleet, jobs)
        }
        scores = [one for one in comparison.scorecard if (one.fleet, one.jobs) == (fleet, jobs)]
        recorded = _recorded(comparison, fleet, jobs)
        overlays.append(
            Overlay(
                title=_title(rows, comparison),
                table=_transposed(*_table(rows, tuple(FIGURE_LABELS), recorded)),
                scores=_scores(scores, recorded),
                allocated={name: one.allocated for name, one in drawn.items()},
                waiting={name: one.waiting for name, one in drawn.items()},
                waits_s={name: one.waits_s for name, one in drawn.items()},
                jcts_s={name: one.jcts_s for name, one in drawn.items()},
            )
        )
    policies = ", ".join(
        f"`{name}`" for name in dict.fromkeys(row.policy for row in comparison.rows)
    )
    return ComparePage(
        title="Policy comparison",
        lead=f"{count(len(comparison.cells), 'run')}: {policies}; "
        f"changes are relative to `{comparison.baseline}`.",
        overlays=overlays,
        failed=_failures(comparison.cells),
        notes=comparison.notes,
    )


def _groups(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.fleet, row.jobs), []).append(row)
    return {key: found for key, found in groups.items() if any(row.seeds for row in found)}


def _recorded(comparison: Comparison, fleet: str, jobs: str) -> Row | None:
    """Return what a trace itself recorded; None if it does not say when jobs started."""
    found = (one for one in comparison.recorded if (one.fleet, one.jobs) == (fleet, jobs))
    return next(found, None)


def _label(path: str, others: Sequence[str]) -> str:
    """Return a short name for a file that tells it from the others."""
    short = _short(path)
    return short if sum(_short(other) == short for other in dict.fromkeys(others)) <= 1 else path


def _short(path: str) -> str:
    stem = Path(path).name.split(".")[0]
    return Path(path).absolute().parent.name if stem in GENERIC else stem


def _title(rows: Sequence[Row], comparison: Comparison) -> str:
    fleet = _label(rows[0].fleet, [row.fleet for row in comparison.rows])
    jobs = _label(rows[0].jobs, [row.jobs for row in comparison.rows])
    seeds = max(row.seeds for row in rows)
    drawn = f", {count(seeds, 'seed')} each" if seeds > 1 else ""
    return f"{fleet}{drawn}" if jobs == fleet else f"{jobs} on {fleet}{drawn}"


def _table(
    rows: Sequence[Row], names: Sequence[str] = COLUMNS, recorded: Row | None = None
) -> tuple[list[str], list[list[str]]]:
    """Return columns and rows; a star marks the best value of a column."""
    shown = [name for name in names if any(name in row.figures for row in rows)]
    several = any(row.seeds > 1 for row in rows)
    best = {name: _best_mean(name, rows) for name in shown}
    cells = [
        [
            _policy(row.policy),
            *(
                _cell(row.figures.get(name), FIGURE_LABELS[name][1], best[name], several=several)
                for name in shown
            ),
        ]
        for row in rows
    ]
    if recorded is not None:
        cells.append([RECORDED, *(_recorded_cell(recorded, name) for name in shown)])
    return ["policy", *(f">{FIGURE_LABELS[name][0]}" for name in shown)], cells


def _recorded_cell(recorded: Row, name: str) -> str:
    spread = recorded.figures.get(name)
    return "" if spread is None else FIGURE_LABELS[name][1](spread.mean)


def _transposed(
    columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[str], list[list[str]]]:
    """Return the table with one row per figure, for a page that is longer than wide."""
    rows_by_figure = [
        [name.lstrip(">"), *(row[place] for row in rows)] for place, name in enumerate(columns)
    ]
    return ["metric", *rows_by_figure[0][1:]], rows_by_figure[1:]


def _policy(named: str) -> str:
    """Return a policy's name, or that of its file."""
    return Path(named).name


def _best_mean(name: str, rows: Sequence[Row]) -> float | None:
    """Return the best mean of a figure, or None if all policies are equal."""
    means = [row.figures[name].mean for row in rows if name in row.figures]
    more = FIGURES[name]
    if more is None or len(means) < 2 or max(means) - min(means) <= 1e-9 * max(map(abs, means)):
        return None
    return max(means) if more else min(means)


def _cell(spread: Spread | None, fmt: Formatter, best: float | None, *, several: bool) -> str:
    if spread is None:
        return "failed"
    text = fmt(spread.mean)
    if several and spread.mean:
        text += f" {PLUS_MINUS}{spread.deviation / spread.mean:.0%}"
    return f"{text}{BEST}" if spread.mean == best else text


def _legend(comparison: Comparison) -> str:
    best = f"JCT: job completion time, from submission to end; {BEST}: best value in its column"
    if all(row.seeds <= 1 for row in comparison.rows):
        return best
    return f"{best}; {PLUS_MINUS} is the standard deviation over seeds"


def _scores_title(baseline: str) -> str:
    return f"Change relative to `{baseline}`"


def _scores(
    scores: Sequence[Score], recorded: Row | None = None
) -> tuple[list[str], list[list[str]]]:
    """Return a row per metric: recorded, the baseline, then each other policy with the change."""
    policies = list(dict.fromkeys(one.policy for one in scores))
    by_figure: dict[str, dict[str, Score]] = {}
    for one in scores:
        by_figure.setdefault(one.figure, {})[one.policy] = one
    rows: list[list[str]] = []
    for figure, found in by_figure.items():
        word, fmt = FIGURE_LABELS[figure]
        before = next(iter(found.values())).before
        after = [_after(found[name], fmt) if name in found else "failed" for name in policies]
        seen = [] if recorded is None else [_recorded_cell(recorded, figure)]
        rows.append([word, *seen, fmt(before), *after])
    seen = [] if recorded is None else [f">{RECORDED}"]
    return ["metric", *seen, ">baseline", *(f">{_policy(name)}" for name in policies)], rows


def _after(score: Score, fmt: Formatter) -> str:
    if score.better is None or (score.change is not None and abs(score.change) < 0.0005):
        return "same"
    change = "" if score.change is None else f" {score.change:+.1%}"
    return f"{fmt(score.after)}{change}{'' if score.better else ' (worse)'}"


def _failures(cells: Sequence[CellResult]) -> list[str]:
    """Return why runs failed, each reason once, followed by its hint."""
    runs: dict[tuple[str, str], list[CellResult]] = {}
    for cell in cells:
        if cell.error is not None:
            why = f"{cell.error.message} [{cell.error.code}]"
            runs.setdefault((why, cell.error.hint), []).append(cell)
    lines: list[str] = []
    for (why, hint), found in runs.items():
        lines.append(f"{_cell_name(found)}: {why}")
        lines += [f"hint: {hint}"] if hint else []
    return lines


def _cell_name(cells: Sequence[CellResult]) -> str:
    first = cells[0]
    one = f"`{first.policy}` with {first.jobs} on {first.fleet}, seed {first.seed}"
    return one if len(cells) == 1 else f"{one}, and {count(len(cells) - 1, 'more run')}"
