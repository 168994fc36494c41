"""Autoscalers at equal attainment: tuned on the first part of a trace, scored on the second.

Each policy has a grid of ten knobs. The cheapest knob that meets the objective on the first part
is frozen and scored on the second. Where it misses there, the policy is charged for the first more
cautious knob that meets it, and the miss is shown; where none does, for the smallest fixed number
in hindsight. Attainment is taken to grow with the knob, so the grid is searched by halving, and a
simulation ends once it has missed too much.

`TENFOLD_AUTOSCALE_CELLS=azure-conv:30,m-large:120` limits the cells;
`TENFOLD_AUTOSCALE_DAYS=4` cuts longer traces, again in halves;
`TENFOLD_AUTOSCALE_UNTUNED=1` gives `tenfold` no tuning: its default takes part;
`TENFOLD_AUTOSCALE_SEEDS=3` sets how many seeds of cold starts and choices there are.
"""

import os
from collections.abc import Sequence
from math import exp, log

from msgspec import Struct

from benchmarks.autoscale.bounds import smallest, work_hours
from benchmarks.autoscale.evaluate import GRIDS, WANTED, Cell, Outcome, evaluate
from benchmarks.autoscale.traces import CASES, DATA, Case
from benchmarks.verdict import Verdict
from tenfold.model.units import DAY

COLD_STARTS_S = (30, 120, 300)
ORACLE_STEPS = 5
STATIC, HINDSIGHT = "static", "hindsight"


class Score(Struct, frozen=True):
    """A policy on the second part of a cell."""

    name: str
    knob: float
    is_frozen: bool
    """Whether the knob that the first part chose meets the objective."""
    met: float
    """Attainment of the knob that is charged; 0 if no knob meets the objective."""
    hours: float
    """Replica-hours at that attainment; those of static in hindsight if no knob meets it."""


def run(thresholds: dict[str, float]) -> list[Verdict]:
    if not DATA.exists():
        print(f"skipped: {DATA.name} is not here")
        return []
    seeds = range(int(os.environ.get("TENFOLD_AUTOSCALE_SEEDS", "1")))
    over, ours, hindsight = [-1.0], list[float](), list[float]()
    others: dict[str, list[float]] = {}
    for name, colds in _cells().items():
        case = _shortened(CASES[name]())
        hours = (case.trace.arrived_ms[-1] - case.split_ms) / 3_600_000
        print(f"\n{name}: {len(case.trace.arrived_ms):,} requests, scored on {hours:,.1f} h")
        for cold_s in colds:
            for seed in seeds:
                cell = Cell(case, cold_s, seed)
                scores = _scores(cell)
                mine, rest = scores[0], scores[1:]
                over.append(mine.hours / min(one.hours for one in rest) - 1)
                ours.append(mine.hours)
                hindsight.append(_static_search(cell, judged_first=False)[-1][1].scored_hours)
                for one in rest:
                    others.setdefault(one.name, []).append(one.hours)
    ratios = {name: _mean_ratio(ours, hours) for name, hours in others.items()}
    print("\ntenfold over each baseline, geometric mean over all cells:")
    print("  ".join(f"{name} {ratio:.3f}" for name, ratio in ratios.items()))
    print(f"over static in hindsight, which is a bound: {_mean_ratio(ours, hindsight):.3f}")
    single = max(ratios.values(), default=0.0)
    return [
        Verdict(
            "autoscale: over the best baseline, worst cell", max(over), thresholds["over_best"]
        ),
        Verdict("autoscale: over the best single baseline", single, thresholds["over_single"]),
    ]


def _shortened(case: Case) -> Case:
    days = float(os.environ.get("TENFOLD_AUTOSCALE_DAYS", "inf"))
    if case.trace.arrived_ms[-1] <= days * DAY:
        return case
    until_ms = round(days * DAY)
    name = f"{case.name} ({days:g} days)"
    return Case(name, case.trace.part(0, until_ms), case.service, until_ms // 2)


def _cells() -> dict[str, list[int]]:
    words = os.environ.get("TENFOLD_AUTOSCALE_CELLS", "")
    if not words:
        return {name: list(COLD_STARTS_S) for name in CASES}
    cells: dict[str, list[int]] = {}
    for word in words.split(","):
        name, _, cold = word.partition(":")
        cells.setdefault(name, []).extend([int(cold)] if cold else COLD_STARTS_S)
    return cells


def _mean_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return exp(sum(log(one / other) for one, other in zip(ours, theirs, strict=True)) / len(ours))


def _scores(cell: Cell) -> list[Score]:
    """Print a cell, the bounds first; return its policies, `tenfold` first."""
    hindsight = _print_bounds(cell)
    scores: list[Score] = []
    for name in GRIDS:
        scores.append(_scored(name, _search(cell, name), hindsight))
        _print(scores[-1], scores)
    scores.append(_scored(STATIC, _static_search(cell, judged_first=True), hindsight))
    _print(scores[-1], scores)
    return scores


def _print_bounds(cell: Cell) -> Outcome:
    """Print what knowing the future could reach; return the smallest fixed number."""
    share = smallest(
        lambda one: evaluate(cell, "oracle", one).scored >= WANTED, 0.0, 1.5, ORACLE_STEPS
    )
    oracle = evaluate(cell, "oracle", share)
    count, hindsight = _static_search(cell, judged_first=False)[-1]
    print(
        f" cold start {cell.cold_s} s, seed {cell.seed}: work {work_hours(cell.case):,.2f} h, "
        f"oracle {oracle.scored_hours:,.2f} h at {oracle.scored:.2%}, "
        f"static in hindsight {hindsight.scored_hours:,.2f} h ({count:g} replicas) "
        f"at {hindsight.scored:.2%}",
        flush=True,
    )
    return hindsight


def _search(cell: Cell, name: str) -> list[tuple[float, Outcome]]:
    """Return the frozen knob and what it does, up to the first more cautious one that meets."""
    grid = GRIDS[name]
    if name == "tenfold" and os.environ.get("TENFOLD_AUTOSCALE_UNTUNED"):
        return _until_met(cell, name, grid[grid.index(1.0) :])
    low, high = -1, len(grid) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if evaluate(cell, name, grid[middle]).tuned >= WANTED:
            high = middle
        else:
            low = middle
    return _until_met(cell, name, grid[high:])


def _static_search(cell: Cell, *, judged_first: bool) -> list[tuple[float, Outcome]]:
    """Return the smallest fixed number for the first part, or in hindsight for the second."""

    name = STATIC if judged_first else HINDSIGHT

    def meets(count: int) -> bool:
        outcome = evaluate(cell, name, count)
        return (outcome.tuned if judged_first else outcome.scored) >= WANTED

    most = cell.case.service.replicas_max
    low, high = 0, 4
    while high < most and not meets(high):
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    found = (float(high), evaluate(cell, name, high))
    if not judged_first or found[1].scored >= WANTED:
        return [found]
    return [found, *_static_search(cell, judged_first=False)]


def _until_met(cell: Cell, name: str, knobs: Sequence[float]) -> list[tuple[float, Outcome]]:
    found: list[tuple[float, Outcome]] = []
    for knob in knobs:
        found.append((knob, evaluate(cell, name, knob)))
        if found[-1][1].scored >= WANTED:
            break
    return found


def _scored(name: str, found: Sequence[tuple[float, Outcome]], hindsight: Outcome) -> Score:
    is_frozen = found[0][1].scored >= WANTED
    knob, charged = found[-1]
    if charged.scored < WANTED:
        return Score(name, knob, False, 0.0, hindsight.scored_hours)
    return Score(name, knob, is_frozen, charged.scored, charged.scored_hours)


def _print(score: Score, scores: Sequence[Score]) -> None:
    ratio = scores[0].hours / score.hours
    word = "" if score.is_frozen else ", frozen knob missed"
    word = word if score.met >= WANTED else ", no knob meets: charged as static in hindsight"
    print(
        f"  {score.name:10} knob {score.knob:5g}: {score.hours:9,.2f} h at {score.met:7.2%}; "
        f"tenfold over it {ratio:.3f}{word}",
        flush=True,
    )
