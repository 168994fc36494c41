"""`tenfold baseline`: record how fast a workload runs and detect slowdowns."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter, validators

from tenfold.cli.arguments import Json
from tenfold.cli.baseline.render import (
    baseline_row,
    check_json,
    show_baselines,
    show_check,
    show_recorded,
    show_workloads,
    workload_rows,
)
from tenfold.cli.errors import Exit
from tenfold.cli.output import print_json
from tenfold.decide.detect.verdict import AlarmRule
from tenfold.files.measured.baselines import read_store
from tenfold.study.baseline import baselines_of, check, record

app = App(
    name="baseline",
    help="Record how fast a workload runs and detect slowdowns.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)
Workload = Annotated[str, Parameter(help="Workload name")]
Measured = Annotated[
    Path,
    Parameter(
        name="--in",
        help="Timings: steps (.jsonl, .csv), PyTorch trace (.json, .json.gz), "
        "NCCL-tests output, or `nsys stats` CSV",
    ),
]
Store = Annotated[Path, Parameter(help="Baseline file (default: baselines.json)")]
Skip = Annotated[
    int,
    Parameter(
        name="--skip-steps",
        help="Warm-up steps to skip (default: 0)",
        validator=validators.Number(gte=0),
    ),
]
USUAL_STORE = Path("baselines.json")
USUAL_RULE = AlarmRule()


@app.command(name="record")
def record_command(
    workload: Workload,
    *,
    measured: Measured,
    store: Store = USUAL_STORE,
    skip: Skip = 0,
    note: Annotated[str, Parameter(help="Note to store with the baseline")] = "",
    as_json: Json = False,
) -> None:
    """Record a run as the newest baseline of a workload. Older baselines are kept."""
    baseline, notes = record(workload, measured, store, skip=skip, note=note)
    if as_json:
        print_json({"workload": workload, **baseline_row(baseline), "notes": notes})
    else:
        show_recorded(workload, baseline, notes, store)


@app.command(name="check")
def check_command(
    workload: Workload,
    *,
    measured: Measured,
    store: Store = USUAL_STORE,
    against: Annotated[
        int | None,
        Parameter(
            help="Number of the baseline to compare with (default: the newest of the same kind)"
        ),
    ] = None,
    slower_by: Annotated[
        float,
        Parameter(
            help="Slowdown that fails the check, as a share (default: 0.05)",
            validator=validators.Number(gt=0, lte=100),
        ),
    ] = USUAL_RULE.slower_by,
    chance: Annotated[
        float,
        Parameter(
            help="Significance level of the test (default: 0.01)",
            validator=validators.Number(gt=0, lt=1),
        ),
    ] = USUAL_RULE.chance,
    skip: Skip = 0,
    as_json: Json = False,
) -> None:
    """Compare a run with its baseline. Exits with status 1 if the run is slower."""
    rule = AlarmRule(slower_by=slower_by, chance=chance)
    check_result = check(workload, measured, store, rule, against=against, skip=skip)
    if as_json:
        print_json(check_json(check_result, rule))
    else:
        show_check(check_result)
    raise Exit(1 if check_result.judgement.alarm else 0)


@app.command(name="list")
def list_command(*, store: Store = USUAL_STORE, as_json: Json = False) -> None:
    """List workloads with their newest baseline."""
    found = read_store(store)
    if as_json:
        print_json({"store": str(store), "workloads": workload_rows(found)})
    else:
        show_workloads(found)


@app.command(name="show")
def show_command(workload: Workload, *, store: Store = USUAL_STORE, as_json: Json = False) -> None:
    """Show all baselines of a workload, oldest first."""
    found = baselines_of(workload, store)
    if as_json:
        print_json({"workload": workload, "baselines": [baseline_row(one) for one in found]})
    else:
        show_baselines(workload, found)
