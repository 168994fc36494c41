"""`tenfold grow`: what breaks first when demand or the fleet grows, and what to do about it."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter, validators

from tenfold.cli.errors import Exit
from tenfold.cli.grow.json import document, meets_requirement
from tenfold.cli.grow.page import grow_page
from tenfold.cli.grow.render import show_grow
from tenfold.cli.output import print_json
from tenfold.files.core.write import open_new_file
from tenfold.model.errors import InputError
from tenfold.model.growth.growth import Axis
from tenfold.study.grow.analyse import analyse
from tenfold.study.grow.answer import GrowAnswer
from tenfold.study.grow.inputs import MIX_LOAD, GrowFiles, GrowInputs, grow_inputs
from tenfold.study.grow.question import GrowQuestion, check_question

app = App(name="grow", help_format="plaintext", default_parameter=Parameter(show_default=False))

FleetFile = Annotated[Path, Parameter(help="A fleet file.")]
Jobs = Annotated[Path | None, Parameter(help="The history: a job table or a public trace.")]
Mix = Annotated[str, Parameter(help="A workload of the facts, where there is no history.")]
Load = Annotated[
    float,
    Parameter(
        help="Share of the fleet that the mix fills today, 0.6.",
        validator=validators.Number(gt=0, lte=100),
    ),
]
RunOutcome = Annotated[str, Parameter(help="What the history ran under: a policy or a slurm.conf.")]
Profiles = Annotated[Path | None, Parameter(help="What jobs draw: `[profile.NAME]` tables.")]
ExpectedDesign = Annotated[
    Path | None,
    Parameter(name="--grow", help="Limits, controllers, services, people, lead times and pace."),
]
Measured = Annotated[Path | None, Parameter(help="A table of measured usage by factor.")]
Timed = Annotated[
    Path | None,
    Parameter(
        name="--calibrate", help="Runs that were timed, as JSON Lines: larger jobs go by them."
    ),
]
Along = Annotated[Axis, Parameter(help="What grows; all.")]
To = Annotated[str, Parameter(help="Factors of interest, 2,5,10; the ladder ends at the largest.")]
Require = Annotated[
    str | None, Parameter(help="Status 1 unless the fleet as it is stands this factor, as 2x.")
]
Failures = Annotated[
    str | None, Parameter(help="Failures of runs and saves: a preset or a fault trace.")
]
CountAssumed = Annotated[
    bool, Parameter(negative="", help="Let layers that rest on an assumption break, too.")
]
Seeds = Annotated[
    int,
    Parameter(
        help="Courses of luck that runs are made with, 5.",
        validator=validators.Number(gte=1, lte=100),
    ),
]
Seed = Annotated[int, Parameter(help="The same seed gives the same answer.")]
Facts = Annotated[Path | None, Parameter(help="Folder of your own facts, over the shipped ones.")]
Html = Annotated[Path | None, Parameter(help="Also write a report with charts.")]
Force = Annotated[bool, Parameter(negative="", help="Write over an existing report.")]
Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON.")]


@app.default
def grow_command(
    fleet: FleetFile,
    *,
    jobs: Jobs = None,
    mix: Mix = "",
    load: Load = MIX_LOAD,
    policy: RunOutcome = "tenfold",
    profiles: Profiles = None,
    grow: ExpectedDesign = None,
    measured: Measured = None,
    timed: Timed = None,
    axis: Along = "all",
    to: To = "2,5,10",
    require: Require = None,
    failures: Failures = None,
    count_assumed: CountAssumed = False,
    seed: Seed = 0,
    seeds: Seeds = 5,
    facts: Facts = None,
    html: Html = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Name the layer that breaks first as a fleet grows, what relieves it, and what breaks next.

    jobs: arrivals. job-size: GPUs of each job. data: bytes stored, read and saved. traffic:
    requests. teams: more queues of these kinds. nodes: the fleet by its own pattern, with work
    for it, on the layers shared today. all: nodes, data, traffic, teams.
    """
    question = GrowQuestion(
        axis=axis,
        to=tuple(_factor(word, "--to") for word in to.split(",")),
        seed=seed,
        seeds=seeds,
        failures=failures,
        require=None if require is None else _factor(require, "--require"),
        count_assumed=count_assumed,
    )
    files = GrowFiles(
        fleet=fleet,
        jobs=jobs,
        mix=mix,
        load=load,
        policy=policy,
        failures=failures or "none",
        profiles=profiles,
        grow=grow,
        measured=measured,
        timed=timed,
        facts=facts,
        seed=seed,
    )
    _answer(check_question(question), grow_inputs(files), html, force, as_json)


def _answer(
    question: GrowQuestion, inputs: GrowInputs, html: Path | None, force: bool, as_json: bool
) -> None:
    if html is None:
        _show(_analysed(inputs, question), question, as_json)
        return
    # The file is opened first: an answer may take a minute, and is not to be lost to a name.
    with open_new_file(html, force=force) as page:
        answer = _analysed(inputs, question)
        page.write(grow_page(answer, question).encode())
    sys.stderr.write(f"note: the report is written to {html}\n")
    _show(answer, question, as_json)


def _analysed(inputs: GrowInputs, question: GrowQuestion) -> GrowAnswer:
    if not inputs.jobs or not sys.stderr.isatty():
        return analyse(inputs, question)
    # What draws the count takes longer to load than a ladder without runs takes to climb.
    from tenfold.cli.grow.progress import counting  # noqa: PLC0415

    with counting("runs of the grown fleet") as done:
        return analyse(inputs, question, done)


def _show(answer: GrowAnswer, question: GrowQuestion, as_json: bool) -> None:
    if as_json:
        print_json(document(answer, question))
    else:
        show_grow(answer, question)
    if not meets_requirement(answer, question):
        raise Exit(1)


def _factor(word: str, option: str) -> float:
    """Return a factor as people write it: `2`, `2x`, `1.5`."""
    text = word.strip().lower()
    try:
        return float(text[:-1] if text.endswith("x") else text)
    except ValueError:
        raise InputError(
            "not-a-factor",
            f"`{option}` is given `{word}`, which is not a factor",
            "write it as `2x` or `2`; several as `2,5,10`",
        ) from None
