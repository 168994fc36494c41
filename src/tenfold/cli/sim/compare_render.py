"""A comparison of policies as a table for people, and as what its page shows."""

from collections.abc import Callable, Sequence
from pathlib import Path

from rich.text import Text

from tenfold.cli.output import show, table
from tenfold.cli.sim.render import hours
from tenfold.report.charts.axes import usd
from tenfold.report.figures import count
from tenfold.report.pages.compare import ComparePage, Overlay
from tenfold.study.compare.cell import FIGURES, CellResult
from tenfold.study.compare.compare import Comparison, Row, Score, Spread

Say = Callable[[float], str]
BEST = "*"
PLUS_MINUS = "\u00b1"
GENERIC = ("fleet", "jobs", "trace", "nodes")
"""Names of files that say less than their folder does."""


def _plainly(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:,.2f}"


def _part(value: float) -> str:
    return f"{value:.1%}"


WORDS: dict[str, tuple[str, Say]] = {
    "gpu_utilization": ("allocated", _part),
    "goodput": ("goodput", _part),
    "avg_wait_s": ("wait", hours),
    "avg_jct_s": ("completion", hours),
    "p99_jct_s": ("99% within", hours),
    "makespan_s": ("makespan", hours),
    "usd": ("dollars", usd),
    "usd_per_gpu_hour": ("per useful GPU-hour", usd),
    "kwh": ("kWh", _plainly),
    "preemptions": ("preempted", _plainly),
    "failures": ("broken", _plainly),
    "jain": ("evenness", _plainly),
    "rho_mean": ("against even share", _plainly),
    "late_share": ("late", _part),
    "fragmentation": ("fragmented", _part),
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


def show_comparison(answer: Comparison) -> None:
    """Print the policies side by side, the scorecard, and what failed."""
    for (fleet, jobs), rows in _groups(answer.rows).items():
        columns, cells = _table(rows)
        show("", Text(_title(rows, answer), style="bold"), table("", columns, cells))
        scores = [one for one in answer.scorecard if (one.fleet, one.jobs) == (fleet, jobs)]
        if scores:
            show("", _scores_title(answer.baseline), table("", *_scores(scores)))
    if any(row.seeds for row in answer.rows):
        show("", _legend(answer))
    failed = sum(cell.error is not None for cell in answer.cells)
    if failed:
        show("", Text(f"{count(failed, 'run')} failed", style="bold red"))
        show(*(f"  {why}" for why in _failures(answer.cells)))


def compare_page(answer: Comparison) -> ComparePage:
    """Return what the page of a comparison shows."""
    groups = _groups(answer.rows)
    overlays: list[Overlay] = []
    for (fleet, jobs), rows in groups.items():
        drawn = {
            cell.policy: cell.curves
            for cell in answer.cells
            if cell.curves is not None and (cell.fleet, cell.jobs) == (fleet, jobs)
        }
        scores = [one for one in answer.scorecard if (one.fleet, one.jobs) == (fleet, jobs)]
        overlays.append(
            Overlay(
                title=_title(rows, answer),
                table=_turned(*_table(rows, tuple(WORDS))),
                scores=_scores(scores),
                allocated={name: one.allocated for name, one in drawn.items()},
                waiting={name: one.waiting for name, one in drawn.items()},
                waits_s={name: one.waits_s for name, one in drawn.items()},
                jcts_s={name: one.jcts_s for name, one in drawn.items()},
            )
        )
    policies = dict.fromkeys(row.policy for row in answer.rows)
    return ComparePage(
        title="Policies side by side",
        lead=f"{count(len(answer.cells), 'run')}: {', '.join(f'`{name}`' for name in policies)}; "
        f"changes are against `{answer.baseline}`.",
        overlays=overlays,
        failed=_failures(answer.cells),
        notes=answer.notes,
    )


def _groups(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.fleet, row.jobs), []).append(row)
    return {key: found for key, found in groups.items() if any(row.seeds for row in found)}


def _label(path: str, beside: Sequence[str]) -> str:
    """Return a short name for a file that tells it from the others."""
    short = _short(path)
    return short if sum(_short(other) == short for other in dict.fromkeys(beside)) <= 1 else path


def _short(path: str) -> str:
    stem = Path(path).name.split(".")[0]
    return Path(path).absolute().parent.name if stem in GENERIC else stem


def _title(rows: Sequence[Row], answer: Comparison) -> str:
    fleet = _label(rows[0].fleet, [row.fleet for row in answer.rows])
    jobs = _label(rows[0].jobs, [row.jobs for row in answer.rows])
    seeds = max(row.seeds for row in rows)
    drawn = f", {count(seeds, 'seed')} each" if seeds > 1 else ""
    return f"{fleet}{drawn}" if jobs == fleet else f"{jobs} on {fleet}{drawn}"


def _table(
    rows: Sequence[Row], names: Sequence[str] = COLUMNS
) -> tuple[list[str], list[list[str]]]:
    """Return columns and rows; a star stands at the best of a column."""
    shown = [name for name in names if any(name in row.figures for row in rows)]
    several = any(row.seeds > 1 for row in rows)
    best = {name: _best(name, rows) for name in shown}
    cells = [
        [
            _policy(row.policy),
            *(
                _cell(row.figures.get(name), WORDS[name][1], best[name], several=several)
                for name in shown
            ),
        ]
        for row in rows
    ]
    return ["policy", *(f">{WORDS[name][0]}" for name in shown)], cells


def _turned(
    columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[str], list[list[str]]]:
    """Return a table with a row a figure, since a page is longer than wide."""
    turned = [
        [name.lstrip(">"), *(row[place] for row in rows)] for place, name in enumerate(columns)
    ]
    return ["figure", *turned[0][1:]], turned[1:]


def _policy(named: str) -> str:
    """Return a policy's name, or that of its file."""
    return Path(named).name


def _best(name: str, rows: Sequence[Row]) -> float | None:
    """Return the best mean of a figure, or None where it tells no policy from another."""
    means = [row.figures[name].mean for row in rows if name in row.figures]
    more = FIGURES[name]
    if more is None or len(means) < 2 or max(means) - min(means) <= 1e-9 * max(map(abs, means)):
        return None
    return max(means) if more else min(means)


def _cell(spread: Spread | None, say: Say, best: float | None, *, several: bool) -> str:
    if spread is None:
        return "failed"
    said = say(spread.mean)
    if several and spread.mean:
        said += f" {PLUS_MINUS}{spread.deviation / spread.mean:.0%}"
    return f"{said}{BEST}" if spread.mean == best else said


def _legend(answer: Comparison) -> str:
    best = f"wait and completion are means over jobs; {BEST} is the best of its column"
    if all(row.seeds <= 1 for row in answer.rows):
        return best
    return f"{best}; {PLUS_MINUS} is the deviation over seeds, in per cent of the mean"


def _scores_title(baseline: str) -> str:
    return f"Scorecard: before is `{baseline}`"


def _scores(scores: Sequence[Score]) -> tuple[list[str], list[list[str]]]:
    """Return a row a figure: under the baseline, and under each other policy with the change."""
    policies = list(dict.fromkeys(one.policy for one in scores))
    by_figure: dict[str, dict[str, Score]] = {}
    for one in scores:
        by_figure.setdefault(one.figure, {})[one.policy] = one
    rows: list[list[str]] = []
    for figure, found in by_figure.items():
        word, say = WORDS[figure]
        before = next(iter(found.values())).before
        after = [_after(found[name], say) if name in found else "failed" for name in policies]
        rows.append([word, say(before), *after])
    return ["figure", ">before", *(f">{_policy(name)}" for name in policies)], rows


def _after(score: Score, say: Say) -> str:
    if score.better is None or (score.change is not None and abs(score.change) < 0.0005):
        return "same"
    change = "" if score.change is None else f" {score.change:+.1%}"
    return f"{say(score.after)}{change}{'' if score.better else ' worse'}"


def _failures(cells: Sequence[CellResult]) -> list[str]:
    """Return why runs failed, each reason once."""
    runs: dict[str, list[CellResult]] = {}
    for cell in cells:
        if cell.error is not None:
            hint = f" ({cell.error.hint})" if cell.error.hint else ""
            why = f"{cell.error.message}{hint} [{cell.error.code}]"
            runs.setdefault(why, []).append(cell)
    return [f"{_which(found)}: {why}" for why, found in runs.items()]


def _which(cells: Sequence[CellResult]) -> str:
    first = cells[0]
    one = f"`{first.policy}` with {first.jobs} on {first.fleet}, seed {first.seed}"
    return one if len(cells) == 1 else f"{one}, and {count(len(cells) - 1, 'more run')}"
