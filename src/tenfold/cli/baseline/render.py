"""Baselines and checks as text and as JSON."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from tenfold.cli.output import show, table
from tenfold.cli.screen import Text
from tenfold.decide.detect.ranks import median, noise
from tenfold.decide.detect.verdict import AlarmRule, Comparison
from tenfold.files.measured.baselines import BaselineStore
from tenfold.model.baseline import Baseline, Kernels, Steps, Transfers, kind_of
from tenfold.study.baseline import Check

Row = dict[str, object]
NAME_WIDTH = 48


def baseline_row(one: Baseline) -> Row:
    """Return a baseline as JSON, without the individual timings."""
    return {
        "number": one.number,
        "recorded_at": _when(one),
        "kind": kind_of(one.measured),
        "source": one.source,
        "keys": one.keys,
        "note": one.note,
        **_figures(one),
    }


def workload_rows(store: BaselineStore) -> list[Row]:
    """Return one row per workload: number of baselines and the newest."""
    return [
        {"workload": name, "baselines": len(found), "newest": baseline_row(found[-1])}
        for name, found in sorted(store.workloads.items())
    ]


def check_json(check_result: Check, rule: AlarmRule) -> Row:
    """Return a check as JSON."""
    said = check_result.judgement
    return {
        "workload": check_result.workload,
        "alarm": said.alarm,
        "outcome": said.outcome,
        "slower_part": said.slower_part,
        "sentence": said.sentence,
        "rule": msgspec.to_builtins(rule),
        "baseline": baseline_row(check_result.baseline),
        "comparisons": msgspec.to_builtins(said.comparisons),
        "notes": check_result.notes,
    }


def show_recorded(workload: str, one: Baseline, notes: Sequence[str], store: Path) -> None:
    """Print what was recorded."""
    show(f"{workload}: recorded baseline {one.number} in {store}: {_words(one)}")
    _show_notes(notes)


def show_check(check_result: Check) -> None:
    """Print the verdict, the parts and the notes."""
    said = check_result.judgement
    head = f"ALARM {check_result.workload}" if said.alarm else check_result.workload
    show(
        Text(f"{head}: {said.sentence}", style="bold red" if said.alarm else "bold"),
        f"compared with baseline {check_result.baseline.number}: {_words(check_result.baseline)}",
        "",
    )
    if said.comparisons:
        columns = ["part", ">baseline", ">now", ">change", ">noise", ">p-value", "verdict"]
        show(table("", columns, [_cells(one) for one in said.comparisons]))
    _show_notes(check_result.notes)


def show_workloads(store: BaselineStore) -> None:
    """Print one line per workload."""
    cells: list[list[str]] = []
    for name, found in sorted(store.workloads.items()):
        keys = ", ".join(f"{key} {value}" for key, value in found[-1].keys.items())
        cells.append([name, str(len(found)), _words(found[-1]), keys])
    show(table("", ["workload", ">baselines", "newest", "configuration"], cells))


def show_baselines(workload: str, found: Sequence[Baseline]) -> None:
    """Print the baselines of a workload, oldest first."""
    cells = [[str(one.number), _when(one), one.source, _words(one), one.note] for one in found]
    show(table(workload, [">number", "recorded", "source", "timing", "note"], cells))


def _when(one: Baseline) -> str:
    moment = datetime.fromtimestamp(one.recorded_at_ms / 1000, UTC)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def _figures(one: Baseline) -> Row:
    match one.measured:
        case Steps() as steps:
            parts = {part: median(values) for part, values in steps.parts_s.items()}
            return {
                "steps": steps.count,
                "step_s_median": median(steps.step_s),
                "step_s_noise": noise(steps.step_s),
                "parts_s_median": parts,
            }
        case Transfers() as test:
            best = max(one.bus_gb_per_s for one in test.transfers)
            sizes = len(dict.fromkeys(one.size_bytes for one in test.transfers))
            return {"operation": test.operation, "sizes": sizes, "bus_gb_per_s_best": best}
        case Kernels() as profile:
            spent = sum(one.calls * one.mean_s for one in profile.kernels)
            return {"kernels": len(profile.kernels), "kernels_s": spent}


def _words(one: Baseline) -> str:
    match one.measured:
        case Steps() as steps:
            spread = noise(steps.step_s) / median(steps.step_s)
            return f"{steps.count:,} steps of {median(steps.step_s):.4g} s (noise {spread:.1%})"
        case Transfers() as test:
            best = max(one.bus_gb_per_s for one in test.transfers)
            return f"{test.operation or 'transfers'} up to {best:.4g} GB/s bus bandwidth"
        case Kernels() as profile:
            spent = sum(one.calls * one.mean_s for one in profile.kernels)
            return f"{len(profile.kernels):,} kernels, {spent:.4g} s in total"


def _cells(one: Comparison) -> list[str]:
    name = one.part if len(one.part) <= NAME_WIDTH else f"{one.part[: NAME_WIDTH - 3]}..."
    return [
        name,
        f"{one.before:.4g} {one.unit}",
        f"{one.now:.4g} {one.unit}",
        f"{one.change:+.1%}",
        f"{one.noise:.1%}",
        "<0.001" if one.chance < 0.001 else f"{one.chance:.2g}",
        one.outcome,
    ]


def _show_notes(notes: Sequence[str]) -> None:
    for note in notes:
        show(f"note: {note}")
