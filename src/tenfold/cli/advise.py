"""`tenfold advise`: scale up, out, elastically or across sites, from four questions."""

import sys
from pathlib import Path
from typing import Annotated, get_args

from cyclopts import App, Parameter, validators
from msgspec.structs import replace

from tenfold.cli.arguments import Facts, Json
from tenfold.cli.options import Option, options_from
from tenfold.cli.output import print_json, prompt, show, table
from tenfold.cli.screen import Text
from tenfold.compose.fleet import OpenFleet, load_facts, open_fleet
from tenfold.model.errors import InputError
from tenfold.study.advise.advise import Advice, AdviseQuestion, advise, answers_to
from tenfold.study.advise.answers import BoundBy, ModelSize
from tenfold.study.ceiling.upgrade import ASSUMED_PRICE, FabricPrice
from tenfold.study.plan.train import model_shape

app = App(
    name="advise",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)
POSITIVE = validators.Number(gt=0, lte=1e9)
BANDWIDTHS = {"wan": "thin", "ordinary": "ordinary", "fast": "fast"}
"""The answer, as JSON has it, for each choice."""
PROMPTS = {
    "bound_by": ("What is the bottleneck?", get_args(BoundBy)),
    "real_time": ("Do users wait for each answer?", ("yes", "no")),
    "model_size": ("What does the model need: one GPU, one node, or more?", get_args(ModelSize)),
    "bandwidth": (
        "Network between the GPUs: a slow link between sites, ordinary, or a fast fabric?",
        tuple(BANDWIDTHS),
    ),
}

QUESTIONS = {
    "bound_by": "bottleneck",
    "real_time": "real time",
    "model_size": "model size",
    "bandwidth": "network",
}
SHOWN = {"thin": "slow (between sites)"}
TRIGGERS = {
    "model-over-node": "model size",
    "dataset-over-local-storage": "dataset size",
    "concurrency-over-replica": "load",
}


Fleet = Annotated[Path | None, Parameter(help="Fleet file")]
FabricShare = Annotated[
    float,
    Parameter(
        help="Network cost per GPU as a share of the GPU price (default: 0.15)", validator=POSITIVE
    ),
]


def _bandwidth(text: str, option: str) -> str:
    """Return the answer for a choice; `thin` is a former name of `wan`."""
    word = text.strip().lower()
    if word not in (*BANDWIDTHS, "thin"):
        raise InputError(
            "wrong-value",
            f"`{option}` must be one of {', '.join(BANDWIDTHS)}, got `{text}`",
            "see `tenfold advise --help`",
            field=option,
        )
    return BANDWIDTHS.get(word, word)


@app.default
@options_from(
    AdviseQuestion,
    {"bandwidth": Option(name="--bandwidth", typed=str | None, read=_bandwidth)},
)
def advise_command(
    question: AdviseQuestion,
    *,
    fleet: Fleet = None,
    fabric_share: FabricShare = ASSUMED_PRICE.share_of_gpu_hour,
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """Recommend vertical, horizontal, elastic or distributed scaling."""
    opened = None if fleet is None else open_fleet(fleet, facts)
    if opened is None and question.model is not None:
        # Without a fleet the model only has a name, which must not be a typo.
        model_shape(question.model, load_facts(facts))
    advice = advise(
        _answered(question, opened), opened, FabricPrice(share_of_gpu_hour=fabric_share)
    )
    if as_json:
        print_json(advice)
    else:
        show_advice(advice)


def _answered(question: AdviseQuestion, fleet: OpenFleet | None) -> AdviseQuestion:
    """Return the question with open answers from the prompt."""
    missing = answers_to(question, fleet).missing
    if missing and not sys.stdin.isatty():
        options = ", ".join(f"`--{name.replace('_', '-')}`" for name in missing)
        raise InputError(
            "answers-missing",
            f"missing input: {', '.join(QUESTIONS[name] for name in missing)}",
            f"set {options}, or `--fleet` and `--model`",
        )
    given = {name: ask_at_prompt(name) for name in missing}
    return replace(question, **given)


def ask_at_prompt(name: str) -> str | bool:
    """Ask one of the four questions until the answer is one of its choices.

    The prompt goes to standard error: standard output is data only.
    """
    text, choices = PROMPTS[name]
    while True:
        line = prompt(f"{text} [{'/'.join(choices)}] ")
        if not line:
            raise InputError(
                "answers-missing", f"no answer to: {text}", f"set `--{name.replace('_', '-')}`"
            )
        word = line.strip().lower()
        if word in choices:
            return word == "yes" if name == "real_time" else BANDWIDTHS.get(word, word)


def show_advice(advice: Advice) -> None:
    """Print the steps, then the answers and triggers behind them, then the cost of scaling up."""
    show(Text(f"recommended: {' + '.join(_names(advice))}", style="bold"))
    show(table("", ["step", "why"], [[step.step, step.sentence] for step in advice.steps]), "")
    show(table("", ["question", "answer", "source"], _answers(advice)), "")
    states = {True: "yes", False: "no", None: "unknown"}
    rows = [[TRIGGERS[one.code], states[one.fired], one.sentence] for one in advice.triggers]
    show(table("", ["reason to scale out", "applies", "why"], rows))
    if advice.blast is not None:
        show("", f"blast radius: {advice.blast.sentence}")
    if advice.vertical_options:
        show(
            "",
            table(
                "", ["larger nodes available"], [[one.sentence] for one in advice.vertical_options]
            ),
        )
    if advice.upgrade is not None:
        _show_upgrade(advice)
    for note in advice.notes:
        show(Text(f"note: {note}", style="dim"))


def _names(advice: Advice) -> list[str]:
    return list(dict.fromkeys(step.step for step in advice.steps))


def _answers(advice: Advice) -> list[list[str]]:
    answers = advice.answers
    words = {True: "yes", False: "no", None: "unknown"}
    rows: list[list[str]] = []
    for name in PROMPTS:
        value: str | bool | None = getattr(answers, name)
        text = SHOWN.get(value, value) if isinstance(value, str) else words[value]
        derived = "workload" if name == "real_time" else "fleet"
        origin = derived if name in answers.worked_out else "option" if value is not None else ""
        rows.append([QUESTIONS[name], text, origin])
    return rows


def _show_upgrade(advice: Advice) -> None:
    upgrade = advice.upgrade
    assert upgrade is not None, "only an upgrade that was found is shown"
    show("", f"at {upgrade.gpus:,} GPUs, {upgrade.sentence}")
    show(table("", ["option", "effect"], [[o.name, o.sentence] for o in upgrade.options]))
    if upgrade.evidence == "assumption":
        share = upgrade.fabric_price.share_of_gpu_hour
        text = f"assumed network cost: {share:.0%} of the GPU price; set `--fabric-share`"
        show(Text(f"note: {text}", style="dim"))
