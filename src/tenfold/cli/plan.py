"""`tenfold plan`: lay out a training job, size a service."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter, validators

from tenfold.cli.errors import Done
from tenfold.cli.output import print_json
from tenfold.cli.plan_export import export_plan
from tenfold.cli.plan_json import train_json, train_page
from tenfold.cli.plan_sensitivity import (
    ask_serve,
    ask_train,
    sensitivity_section,
    show_sensitivity,
)
from tenfold.cli.plan_show import show_misfit, show_serve, show_train
from tenfold.cli.quantities import number, seconds
from tenfold.clock import Stopwatch
from tenfold.compose.fleet import load_facts
from tenfold.compose.planning import TrainQuestion, plan_training
from tenfold.compose.planning_serve import ServeQuestion, plan_serving
from tenfold.files.json_lines import read_json_lines
from tenfold.files.launch.formats import FORMATS
from tenfold.files.write import write_new_file
from tenfold.model.errors import InputError
from tenfold.model.estimate import TrainRow
from tenfold.model.plan import Precision, Recompute, Shard
from tenfold.model.reason import Misfit
from tenfold.report.plan_report import serve_report

app = App(
    name="plan",
    help="Lay out training, size services.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)

Model = Annotated[str, Parameter(help="A model of the facts, or its config.json.")]
Fleet = Annotated[Path, Parameter(help="A fleet file.")]
Facts = Annotated[Path | None, Parameter(help="Folder of your own facts, over the shipped ones.")]
Html = Annotated[Path | None, Parameter(help="Also write a report with charts.")]
Force = Annotated[bool, Parameter(negative="", help="Write over existing files.")]
Sensitivity = Annotated[
    bool,
    Parameter(negative="", help="Also raise each driver of demand until the plan changes; slow."),
]
Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON.")]
AT_LEAST_ONE = validators.Number(gte=1)
POSITIVE = validators.Number(gt=0, lte=1e9)
Degree = Annotated[
    int | None,
    Parameter(help="Fix this degree instead of searching it.", validator=AT_LEAST_ONE),
]


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """What a training job is, and which of its degrees are fixed."""

    model: Model
    fleet: Fleet
    gpus: Annotated[
        int | None, Parameter(help="How many GPUs; else the best number.", validator=AT_LEAST_ONE)
    ] = None
    tokens: Annotated[str | None, Parameter(help="Length of the run in tokens: 1e12, 15T.")] = None
    deadline: Annotated[str | None, Parameter(help="The run must end within: 30d.")] = None
    budget: Annotated[str | None, Parameter(help="The run may cost, in dollars: 2e6.")] = None
    seq: Annotated[int | None, Parameter(help="Tokens a sequence.", validator=AT_LEAST_ONE)] = None
    global_batch: Annotated[
        int | None, Parameter(help="Sequences a step.", validator=AT_LEAST_ONE)
    ] = None
    precision: Annotated[Precision, Parameter(help="Of matrix products.")] = "bf16"
    accelerator: Annotated[str | None, Parameter(help="Which of the fleet's accelerators.")] = None
    stack: Annotated[str | None, Parameter(help="Framework and version.")] = None
    failures: Annotated[str | None, Parameter(help="A failure preset of the facts.")] = None
    tp: Degree = None
    pp: Degree = None
    cp: Degree = None
    ep: Degree = None
    micro_batch: Degree = None
    shard: Annotated[Shard | None, Parameter(help="Fix the sharding.")] = None
    recompute: Annotated[Recompute | None, Parameter(help="Fix the recomputation.")] = None
    gradient_bits: Annotated[
        Literal[8, 16, 32] | None, Parameter(help="Bits of gradients on the wire.")
    ] = None
    facts: Facts = None

    def question(self) -> TrainQuestion:
        """Return the question, with durations and amounts read."""
        if self.tokens is None and (self.deadline or self.budget):
            raise InputError(
                "missing-tokens",
                "a deadline or a budget is for a whole run, and its length is not known",
                "add the length of the run in tokens: `--tokens 1e12`",
                field="--tokens",
            )
        fields = {
            field: getattr(self, field)
            for field in TrainQuestion.__struct_fields__
            if hasattr(self, field)
        }
        fields["tokens"] = None if self.tokens is None else number(self.tokens, "--tokens")
        return TrainQuestion(
            **fields,
            deadline_s=None if self.deadline is None else seconds(self.deadline, "--deadline"),
            budget_usd=None if self.budget is None else number(self.budget, "--budget"),
        )


@app.command
def train(
    options: Annotated[TrainOptions, Parameter(name="*")],
    *,
    calibrate: Annotated[Path | None, Parameter(help="Observed runs as JSON Lines.")] = None,
    export: Annotated[
        str | None, Parameter(help=f"Write the best plan for a launcher: {', '.join(FORMATS)}.")
    ] = None,
    image: Annotated[str, Parameter(help="Container image for --export.")] = "",
    out: Annotated[Path, Parameter(help="Folder for --export.")] = Path(),
    sensitivity: Sensitivity = False,
    concurrent_runs: Annotated[
        int, Parameter(help="Runs that share the fleet, for --sensitivity.", validator=AT_LEAST_ONE)
    ] = 1,
    html: Html = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Search all layouts of a training job on a fleet, and say why the best is best.

    With a deadline the cheapest size that meets it is chosen, with a budget the fastest
    within it, with neither the knee of the scaling curve. Ends with status 1 where
    nothing fits or a deadline or budget is missed.
    """
    watch = Stopwatch()
    observed = [] if calibrate is None else read_json_lines(calibrate, TrainRow)
    planned = plan_training(options.question(), observed)
    if isinstance(planned.answer, Misfit):
        show_misfit(planned.answer, as_json)
        raise Done(1)
    moves = ask_train(planned, concurrent_runs) if sensitivity else None
    if html is not None:
        more = [] if moves is None else [sensitivity_section(moves)]
        _write_page(html, train_page(planned, load_facts(options.facts), more), force)
    if export is not None:
        export_plan(planned.answer.plans[0].plan, export, out, image=image, force=force)
    if as_json:
        more = {} if moves is None else {"sensitivity": moves.drivers}
        print_json({**train_json(planned, watch), **more})
    else:
        show_train(planned)
        if moves is not None:
            show_sensitivity(moves)
    missed = any(reason.code.endswith("-missed") for reason in planned.answer.why)
    raise Done(1 if missed else 0)


def _write_page(path: Path, page: str, force: bool) -> None:
    write_new_file(path, page, force=force)
    sys.stderr.write(f"note: the report is written to {path}\n")


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """What a service carries, and what its users may wait."""

    model: Model
    fleet: Fleet
    qps: Annotated[float, Parameter(help="Requests a second.", validator=POSITIVE)]
    input_tokens: Annotated[int, Parameter(help="Tokens of a prompt.", validator=AT_LEAST_ONE)]
    output_tokens: Annotated[int, Parameter(help="Tokens of an answer.", validator=AT_LEAST_ONE)]
    ttft_s: Annotated[
        float, Parameter(help="Seconds to the first token, at most.", validator=POSITIVE)
    ]
    tpot_s: Annotated[float, Parameter(help="Seconds a token, at most.", validator=POSITIVE)]
    precision: Annotated[
        tuple[Precision, ...],
        Parameter(help="Which to try; may be given several times.", negative=""),
    ] = ("bf16", "fp8")
    engine: Annotated[str | None, Parameter(help="Serving engine and version.")] = None
    facts: Facts = None

    def question(self) -> ServeQuestion:
        """Return the question."""
        asked = ServeQuestion.__struct_fields__
        fields = {field: getattr(self, field) for field in asked if hasattr(self, field)}
        return ServeQuestion(**fields, precisions=self.precision)


@app.command
def serve(
    options: Annotated[ServeOptions, Parameter(name="*")],
    *,
    sensitivity: Sensitivity = False,
    usd_per_hour_max: Annotated[
        float | None,
        Parameter(help="What an hour may cost, for --sensitivity.", validator=POSITIVE),
    ] = None,
    html: Html = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Choose replicas that meet a service's objectives at the least cost per token.

    Ends with status 1 where nothing meets them.
    """
    watch = Stopwatch()
    planned = plan_serving(options.question())
    answer = planned.answer
    if isinstance(answer, Misfit):
        show_misfit(answer, as_json)
        raise Done(1)
    moves = ask_serve(planned, usd_per_hour_max) if sensitivity else None
    if html is not None:
        more = [] if moves is None else [sensitivity_section(moves)]
        notes = [("note", note) for note in planned.notes]
        page = serve_report(answer, planned.ask, assumptions=notes, more=more)
        _write_page(html, page, force)
    if as_json:
        found = {"searched": answer.searched, "seconds": watch.wall_s()}
        found |= {"plans": answer.plans, "why": answer.why, "notes": planned.notes}
        print_json(found if moves is None else {**found, "sensitivity": moves.drivers})
    else:
        show_serve(planned.ask, answer, planned.notes)
        if moves is not None:
            show_sensitivity(moves)
