"""`tenfold plan`: plan a training job or a service on a fleet."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter, validators

from tenfold.cli.arguments import Json
from tenfold.cli.errors import Exit
from tenfold.cli.options import Option, options_from
from tenfold.cli.output import print_json, print_note
from tenfold.cli.plan.diff import diff_command
from tenfold.cli.plan.export import export_plan
from tenfold.cli.plan.json import train_json, train_page
from tenfold.cli.plan.render import show_misfit, show_serve, show_train
from tenfold.cli.plan.sensitivity import (
    run_serve_sensitivity,
    run_train_sensitivity,
    sensitivity_section,
    show_sensitivity,
)
from tenfold.cli.quantities import parse_dollars, parse_duration, parse_number
from tenfold.clock import Stopwatch
from tenfold.compose.fleet import load_facts
from tenfold.files.core.json_lines import read_json_lines
from tenfold.files.core.write import write_new_file
from tenfold.files.launch.formats import FORMATS
from tenfold.model.estimate import TrainRow
from tenfold.model.reason import Misfit
from tenfold.report.pages.plan.plan import serve_report
from tenfold.study.plan.requirements import launch_job
from tenfold.study.plan.serve import ServeQuestion, plan_serving
from tenfold.study.plan.train import TrainQuestion, plan_training

app = App(
    name="plan",
    help="Plan training jobs and services on a fleet",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)

app.command(diff_command, name="diff")

Html = Annotated[Path | None, Parameter(help="Also write an HTML report to this file")]
Force = Annotated[bool, Parameter(negative="", help="Overwrite existing files")]
Sensitivity = Annotated[
    bool,
    Parameter(
        negative="",
        help="Also show which input the plan is most sensitive to (slow)",
    ),
]
AT_LEAST_ONE = validators.Number(gte=1)
POSITIVE = validators.Number(gt=0, lte=1e9)


@app.command
@options_from(
    TrainQuestion,
    {
        "tokens": Option(name="--tokens", typed=str | None, read=parse_number),
        "deadline_s": Option(name="--deadline", typed=str | None, read=parse_duration),
        "budget_usd": Option(name="--budget", typed=str | None, read=parse_dollars),
    },
)
def train(
    question: TrainQuestion,
    *,
    calibrate: Annotated[
        Path | None, Parameter(help="Measured runs to calibrate with, as JSON Lines")
    ] = None,
    export: Annotated[
        str | None, Parameter(help=f"Write launch files for the best plan: {', '.join(FORMATS)}")
    ] = None,
    image: Annotated[str, Parameter(help="Container image for --export")] = "",
    out: Annotated[
        Path, Parameter(help="Directory for --export (default: current directory)")
    ] = Path(),
    sensitivity: Sensitivity = False,
    concurrent_runs: Annotated[
        int,
        Parameter(
            help="Runs that share the fleet, for --sensitivity (default: 1)", validator=AT_LEAST_ONE
        ),
    ] = 1,
    html: Html = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Find the best parallel layout for a training job on a fleet, and explain the choice.

    Selects the cheapest size that meets --deadline, the fastest size within --budget or, without
    either, the knee of the scaling curve. Exits with status 1 if nothing
    fits, or if the deadline or budget is missed.
    """
    watch = Stopwatch()
    observed = [] if calibrate is None else read_json_lines(calibrate, TrainRow)
    planned = plan_training(question, observed)
    if isinstance(planned.answer, Misfit):
        show_misfit(planned.answer, as_json)
        raise Exit(1)
    moves = run_train_sensitivity(planned, concurrent_runs) if sensitivity else None
    if html is not None:
        more = [] if moves is None else [sensitivity_section(moves, service=False)]
        _write_page(html, train_page(planned, load_facts(question.facts), more), force)
    if export is not None:
        job = launch_job(planned, image, overlap=not question.no_overlap)
        export_plan(planned, export, out, job, force=force)
    if as_json:
        more = {} if moves is None else {"sensitivity": moves.drivers}
        print_json({**train_json(planned, watch), **more})
    else:
        show_train(planned)
        if moves is not None:
            show_sensitivity(moves, service=False)
    missed = any(reason.code.endswith("-missed") for reason in planned.answer.why)
    raise Exit(1 if missed else 0)


def _write_page(path: Path, page: str, force: bool) -> None:
    write_new_file(path, page, force=force)
    print_note(f"report written to {path}")


@app.command
@options_from(ServeQuestion, {"precisions": Option(name="--precision")})
def serve(
    question: ServeQuestion,
    *,
    sensitivity: Sensitivity = False,
    usd_per_hour_max: Annotated[
        float | None,
        Parameter(help="Maximum cost per hour, for --sensitivity", validator=POSITIVE),
    ] = None,
    html: Html = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Find the cheapest set of replicas that meets a service's TTFT and TPOT targets.

    Exits with status 1 if no plan meets the targets.
    """
    watch = Stopwatch()
    planned = plan_serving(question)
    answer = planned.answer
    if isinstance(answer, Misfit):
        show_misfit(answer, as_json)
        raise Exit(1)
    moves = run_serve_sensitivity(planned, usd_per_hour_max) if sensitivity else None
    if html is not None:
        more = [] if moves is None else [sensitivity_section(moves, service=True)]
        notes = [("Note", note) for note in planned.notes]
        page = serve_report(answer, planned.request, assumptions=notes, more=more)
        _write_page(html, page, force)
    if as_json:
        found = {"searched": answer.searched, "seconds": watch.wall_s()}
        found |= {"plans": answer.plans, "why": answer.why, "notes": planned.notes}
        print_json(found if moves is None else {**found, "sensitivity": moves.drivers})
    else:
        show_serve(question, answer, planned.notes)
        if moves is not None:
            show_sensitivity(moves, service=True)
