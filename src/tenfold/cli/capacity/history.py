"""`tenfold capacity history`: GPU-hours used and requested, by class, accelerator or team."""

import csv
import io
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tenfold.cli.arguments import Force, Json
from tenfold.cli.output import print_json, print_note, show, table
from tenfold.files.core.write import write_new_file
from tenfold.report.figures import count, share
from tenfold.study.capacity.history import (
    PERIOD_MS,
    By,
    DemandHistory,
    Period,
    demand_history,
    read_spans,
)


def history_command(
    jobs: Annotated[
        Path, Parameter(help="Job history: a job table, a public trace, or a state directory")
    ],
    *,
    by: Annotated[By, Parameter(help="What to group by (default: accelerator)")] = "accelerator",
    period: Annotated[Period, Parameter(help="Length of a period (default: day)")] = "day",
    out: Annotated[
        Path | None,
        Parameter(
            name=("--out", "-o"), help="Write mean GPUs in demand as CSV, to forecast or plan with"
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Show GPU-hours used and requested by period.

    Demand counts each job from when it became eligible, so that a full fleet is not mistaken for
    low demand.
    """
    spans, end_ms, notes = read_spans(jobs)
    found = demand_history(spans, end_ms, by, period, notes)
    if out is not None:
        write_new_file(out, _csv(found), force=force)
        print_note(f"{out} written: {len(found.groups)} series")
    if as_json:
        print_json(found)
        return
    _show(found)


def _csv(found: DemandHistory) -> str:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["id", "t", "value"])
    for group in found.groups:
        for at, value in enumerate(group.demand_gpus):
            rows.writerow([group.name, at * PERIOD_MS[found.period] // 1_000, f"{value:.6g}"])
    return text.getvalue()


def _show(found: DemandHistory) -> None:
    show(
        f"{count(found.jobs, 'job')}, {count(found.periods, found.period)} by {found.by}; "
        f"{found.unfinished:,} with an assumed run time"
    )
    rows: list[list[str]] = []
    for group in found.groups:
        used, demand = sum(group.used_gpu_hours), sum(group.demand_gpu_hours)
        late = max(0.0, demand - used)
        rows.append(
            [
                group.name,
                f"{used:,.0f}",
                f"{demand:,.0f}",
                share(late / demand) if demand else "0%",
                f"{max(group.demand_gpus):,.0f}",
                f"{group.demand_gpus[-1]:,.0f}",
            ]
        )
    columns = [
        found.by,
        ">GPU-hours used",
        ">requested",
        ">pending",
        ">peak GPUs requested",
        ">mean GPUs, last period",
    ]
    show("", table("", columns, rows))
    for note in found.notes:
        show(note)
