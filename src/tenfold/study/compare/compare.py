"""Run the same jobs under several policies, fleets and seeds, and compare the results.

A cell is one simulation. Cells are independent: each reads its own inputs and can run in any
process on any machine, and one that fails does not affect the others.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from math import sqrt
from pathlib import Path
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from tenfold.compose.inputs import SimFiles
from tenfold.study.compare.cell import FIGURES, Cell, CellResult, Figures, lost_cell, run_cell

RECORDED = "recorded"
"""Stands in place of a policy for what a trace itself recorded."""
SCORED = (
    "gpu_utilization",
    "goodput",
    "avg_wait_s",
    "avg_jct_s",
    "usd",
    "usd_per_gpu_hour",
    "preemptions",
)
"""Metrics on the scorecard."""


class CompareRequest(Struct, frozen=True, kw_only=True):
    """Every fleet with every file of jobs, under every policy, with so many seeds."""

    fleets: tuple[Path, ...]
    jobs: tuple[Path, ...]
    policies: tuple[str, ...]
    seeds: int = 1
    base: SimFiles
    """What all cells have in common; its first seed is the seed of the first draw."""
    with_curves: bool = False


class Spread(Struct, frozen=True, kw_only=True):
    """A figure over the seeds; `deviation` is that of the sample."""

    mean: float
    deviation: float
    least: float
    most: float


class Row(Struct, frozen=True, kw_only=True):
    """A policy on a fleet with some jobs, over its seeds."""

    fleet: str
    jobs: str
    policy: str
    seeds: int
    """Seeds that gave figures."""
    figures: dict[str, Spread]


class Score(Struct, frozen=True, kw_only=True):
    """A figure under the baseline and under another policy."""

    fleet: str
    jobs: str
    policy: str
    figure: str
    before: float
    after: float
    change: float | None
    """Relative to before; None where that is 0."""
    better: bool | None
    """None where nothing changed."""


class Comparison(Struct, frozen=True, kw_only=True):
    """Result of a comparison. The baseline is the first policy."""

    baseline: str
    cells: tuple[CellResult, ...]
    rows: tuple[Row, ...]
    scorecard: tuple[Score, ...]
    notes: tuple[str, ...]
    recorded: tuple[Row, ...] = ()
    """What each trace itself recorded, if it says when jobs started."""


class CellMap(Protocol):
    """Runs cells somewhere; see `process_map` and `ray_map`."""

    def __call__(
        self,
        work: Callable[[Cell], CellResult],
        tasks: Sequence[Cell],
        /,
        *,
        lost: Callable[[Cell, str], CellResult],
        done: Callable[[int], None],
    ) -> list[CellResult]:
        """Return a result for each cell, in order."""
        ...


def cells_of(request: CompareRequest) -> list[Cell]:
    """Return every cell to run; one seed is enough if nothing is random."""
    first = request.base.settings.seed
    seeds = range(first, first + (request.seeds if _is_random(request.base) else 1))
    return [
        Cell(
            files=replace(
                request.base,
                fleet=fleet,
                jobs=jobs,
                policy=policy,
                settings=replace(request.base.settings, seed=seed),
            ),
            with_curves=request.with_curves and seed == first,
        )
        for fleet, jobs, policy, seed in product(
            request.fleets, request.jobs, request.policies, seeds
        )
    ]


def compare(request: CompareRequest, run: CellMap, done: Callable[[int], None]) -> Comparison:
    """Run every cell and compare the policies."""
    cells = run(run_cell, cells_of(request), lost=lost_cell, done=done)
    notes = list(dict.fromkeys(note for cell in cells for note in cell.notes))
    if request.seeds > 1 and not _is_random(request.base):
        notes.append(
            f"nothing in this run is random, so one seed was run instead of {request.seeds}"
        )
    rows = tuple(_rows(cells))
    return Comparison(
        baseline=request.policies[0],
        cells=tuple(replace(cell, notes=(), recorded=None) for cell in cells),
        rows=rows,
        scorecard=tuple(_scorecard(rows, request.policies[0])),
        notes=tuple(notes),
        recorded=tuple(_recorded_rows(cells)),
    )


def _is_random(files: SimFiles) -> bool:
    """Return whether the seed matters: failures or failing starts are sampled."""
    return files.failures != "none" or files.settings.start_failure_share > 0


def _rows(cells: Iterable[CellResult]) -> Iterable[Row]:
    groups: dict[tuple[str, str, str], list[Figures]] = {}
    for cell in cells:
        found = groups.setdefault((cell.fleet, cell.jobs, cell.policy), [])
        if cell.figures is not None:
            found.append(cell.figures)
    for (fleet, jobs, policy), found in groups.items():
        names = [name for name in FIGURES if found and all(name in one for one in found)]
        spreads = {name: _spread([one[name] for one in found]) for name in names}
        yield Row(fleet=fleet, jobs=jobs, policy=policy, seeds=len(found), figures=spreads)


def _recorded_rows(cells: Iterable[CellResult]) -> Iterable[Row]:
    """Yield a row for each fleet and trace whose starts are known."""
    found = {(cell.fleet, cell.jobs): cell.recorded for cell in cells if cell.recorded}
    for (fleet, jobs), figures in found.items():
        spreads = {name: _spread([value]) for name, value in figures.items()}
        yield Row(fleet=fleet, jobs=jobs, policy=RECORDED, seeds=0, figures=spreads)


def _spread(values: Sequence[float]) -> Spread:
    mean = sum(values) / len(values)
    squares = sum((value - mean) ** 2 for value in values)
    deviation = sqrt(squares / (len(values) - 1)) if len(values) > 1 else 0.0
    return Spread(mean=mean, deviation=deviation, least=min(values), most=max(values))


def _scorecard(rows: Sequence[Row], baseline: str) -> Iterable[Score]:
    before = {(row.fleet, row.jobs): row for row in rows if row.policy == baseline}
    for row in rows:
        base = before[row.fleet, row.jobs]
        if row.policy == baseline:
            continue
        for name in SCORED:
            if name in base.figures and name in row.figures:
                yield _score(row, name, base.figures[name].mean, row.figures[name].mean)


def _score(row: Row, name: str, before: float, after: float) -> Score:
    wanted = FIGURES[name]
    same = abs(after - before) <= 1e-9 * max(abs(before), abs(after), 1.0)
    return Score(
        fleet=row.fleet,
        jobs=row.jobs,
        policy=row.policy,
        figure=name,
        before=before,
        after=after,
        change=after / before - 1 if before else None,
        better=None if same or wanted is None else (after > before) == wanted,
    )
