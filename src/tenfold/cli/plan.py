"""`tenfold plan`: lay out a training job, size a service."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from tenfold.cli.errors import Done
from tenfold.cli.output import print_json
from tenfold.cli.plan_export import export_plan
from tenfold.cli.plan_show import show_misfit, show_serve, show_train
from tenfold.cli.quantities import number, seconds
from tenfold.clock import Stopwatch
from tenfold.compose.planning import (
    ServeQuestion,
    TrainPlanned,
    TrainQuestion,
    plan_serving,
    plan_training,
)
from tenfold.files.estimate_rows import TrainRow
from tenfold.files.json_lines import read_json_lines
from tenfold.files.write import write_new_file
from tenfold.model.plan import Recompute, Shard, TrainPrecision
from tenfold.model.reason import Misfit
from tenfold.report.plan_report import serve_report, train_report

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
Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON.")]
Degree = Annotated[int | None, Parameter(help="Fix this degree instead of searching it.")]


@app.command
def train(
    *,
    model: Model,
    fleet: Fleet,
    gpus: Annotated[int | None, Parameter(help="How many GPUs; else the best number.")] = None,
    tokens: Annotated[str | None, Parameter(help="Length of the run in tokens: 1e12, 15T.")] = None,
    deadline: Annotated[str | None, Parameter(help="The run must end within: 30d.")] = None,
    budget: Annotated[str | None, Parameter(help="The run may cost, in dollars: 2e6.")] = None,
    seq: Annotated[int | None, Parameter(help="Tokens a sequence.")] = None,
    global_batch: Annotated[int | None, Parameter(help="Sequences a step.")] = None,
    precision: Annotated[TrainPrecision, Parameter(help="Of matrix products.")] = "bf16",
    accelerator: Annotated[str | None, Parameter(help="Which of the fleet's accelerators.")] = None,
    stack: Annotated[str | None, Parameter(help="Framework and version.")] = None,
    failures: Annotated[str | None, Parameter(help="A failure preset of the facts.")] = None,
    tp: Degree = None,
    pp: Degree = None,
    cp: Degree = None,
    ep: Degree = None,
    micro_batch: Degree = None,
    shard: Annotated[Shard | None, Parameter(help="Fix the sharding.")] = None,
    recompute: Annotated[Recompute | None, Parameter(help="Fix the recomputation.")] = None,
    calibrate: Annotated[Path | None, Parameter(help="Observed runs as JSON Lines.")] = None,
    export: Annotated[str | None, Parameter(help="Write the best plan for a launcher.")] = None,
    out: Annotated[Path, Parameter(help="Folder for --export.")] = Path(),
    html: Html = None,
    force: Force = False,
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """Search all layouts of a training job on a fleet, and say why the best is best.

    With a deadline the cheapest size that meets it is chosen, with a budget the fastest
    within it, with neither the knee of the scaling curve. Ends with status 1 where
    nothing fits or a deadline or budget is missed.
    """
    watch = Stopwatch()
    question = TrainQuestion(
        model=model,
        fleet=fleet,
        facts=facts,
        gpus=gpus,
        seq=seq,
        global_batch=global_batch,
        precision=precision,
        tokens=None if tokens is None else number(tokens, "--tokens"),
        deadline_s=None if deadline is None else seconds(deadline, "--deadline"),
        budget_usd=None if budget is None else number(budget, "--budget"),
        accelerator=accelerator,
        stack=stack,
        failures=failures,
        tp=tp,
        pp=pp,
        cp=cp,
        ep=ep,
        micro_batch=micro_batch,
        shard=shard,
        recompute=recompute,
    )
    observed = [] if calibrate is None else read_json_lines(calibrate, TrainRow)
    planned = plan_training(question, observed)
    if isinstance(planned.answer, Misfit):
        show_misfit(planned.answer, as_json)
        raise Done(1)
    if html is not None:
        page = train_report(planned.answer, planned.ask, planned.ground)
        write_new_file(html, page, force=force)
    if export is not None:
        export_plan(planned.answer.plans[0].plan, export, out, force=force)
    if as_json:
        print_json(_train_json(planned, watch))
    else:
        show_train(planned, watch.wall_s())
    missed = any(reason.code.endswith("-missed") for reason in planned.answer.why)
    raise Done(1 if missed else 0)


def _train_json(planned: TrainPlanned, watch: Stopwatch) -> dict[str, object]:
    answer = planned.answer
    assert not isinstance(answer, Misfit), "a misfit has been told by now"
    return {
        "searched": answer.curve.searched,
        "seconds": watch.wall_s(),
        "plans": planned.rows,
        "front": [
            {
                "gpus": one.plan.gpus,
                "step_s": one.step_s,
                "usd_per_step": one.usd_per_step,
                "failures_per_day": one.failures_per_day,
                "tp": one.plan.tp,
                "pp": one.plan.pp,
                "dp": one.plan.dp,
            }
            for one in answer.front
        ],
        "scaling": [
            {
                "gpus": point.gpus,
                "step_s": point.step_s,
                "tokens_per_s": point.tokens_per_s,
                "efficiency": point.efficiency,
            }
            for point in answer.curve.points
        ],
        "knee": answer.curve.knee,
        "turns_at": answer.curve.turns_at,
        "why": answer.why,
        "notes": planned.ground.notes,
    }


@app.command
def serve(
    *,
    model: Model,
    fleet: Fleet,
    qps: Annotated[float, Parameter(help="Requests a second.")],
    input_tokens: Annotated[int, Parameter(help="Tokens of a prompt.")],
    output_tokens: Annotated[int, Parameter(help="Tokens of an answer.")],
    ttft_s: Annotated[float, Parameter(help="Seconds to the first token, at most.")],
    tpot_s: Annotated[float, Parameter(help="Seconds a token, at most.")],
    precision: Annotated[
        tuple[TrainPrecision, ...], Parameter(help="Which to try; may be given several times.")
    ] = ("bf16", "fp8"),
    engine: Annotated[str | None, Parameter(help="Serving engine and version.")] = None,
    html: Html = None,
    force: Force = False,
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """Choose replicas that meet a service's objectives at the least cost per token.

    Ends with status 1 where nothing meets them.
    """
    watch = Stopwatch()
    question = ServeQuestion(
        model=model,
        fleet=fleet,
        qps=qps,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        ttft_s=ttft_s,
        tpot_s=tpot_s,
        precisions=precision,
        engine=engine,
        facts=facts,
    )
    ask, answer = plan_serving(question)
    if isinstance(answer, Misfit):
        show_misfit(answer, as_json)
        raise Done(1)
    if html is not None:
        write_new_file(html, serve_report(answer, ask), force=force)
    if as_json:
        print_json(
            {
                "searched": answer.searched,
                "seconds": watch.wall_s(),
                "plans": answer.plans,
                "why": answer.why,
            }
        )
    else:
        show_serve(ask, answer, watch.wall_s())
