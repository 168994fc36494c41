"""`tenfold advise`: scale up, out, on demand or apart, from four questions."""

import sys
from pathlib import Path
from typing import Annotated, get_args

from cyclopts import App, Parameter, validators
from msgspec.structs import replace
from rich.text import Text

from tenfold.cli.options import options_from
from tenfold.cli.output import print_json, show, table
from tenfold.compose.fleet import OpenFleet, open_fleet
from tenfold.model.errors import InputError
from tenfold.study.advise.advise import Advice, AdviseQuestion, advise, answers_to
from tenfold.study.advise.answers import Bandwidth, BoundBy, ModelSize
from tenfold.study.ceiling.upgrade import ASSUMED_PRICE, FabricPrice

app = App(
    name="advise",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)
POSITIVE = validators.Number(gt=0, lte=1e9)
ASKED = {
    "bound_by": ("What binds the work?", get_args(BoundBy)),
    "real_time": ("Does someone wait for each answer?", ("yes", "no")),
    "model_size": ("The smallest plan fills one gpu, one node, or is larger?", get_args(ModelSize)),
    "bandwidth": (
        "Between the GPUs: a thin line between sites, an ordinary network, a fast fabric?",
        get_args(Bandwidth),
    ),
}


Fleet = Annotated[Path | None, Parameter(help="A fleet file.")]
FabricShare = Annotated[
    float, Parameter(help="Price of a GPU's fabric over its own.", validator=POSITIVE)
]
Facts = Annotated[Path | None, Parameter(help="Folder of your own facts, over the shipped ones.")]
Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON.")]


@app.default
@options_from(AdviseQuestion)
def advise_command(
    question: AdviseQuestion,
    *,
    fleet: Fleet = None,
    fabric_share: FabricShare = ASSUMED_PRICE.share_of_gpu_hour,
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """Advise vertical, horizontal, elastic or distributed scaling, with reasons.

    Four questions decide: what binds the work, whether someone waits, how large the
    model is, and what joins the GPUs. A fleet and a model answer them; what is left open
    is asked at the prompt.
    """
    opened = None if fleet is None else open_fleet(fleet, facts)
    advice = advise(
        _answered(question, opened), opened, FabricPrice(share_of_gpu_hour=fabric_share)
    )
    if as_json:
        print_json(advice)
    else:
        show_advice(advice)


def _answered(question: AdviseQuestion, fleet: OpenFleet | None) -> AdviseQuestion:
    """Return the question with what is still open asked at the prompt."""
    missing = answers_to(question, fleet).missing
    if missing and not sys.stdin.isatty():
        options = ", ".join(f"`--{name.replace('_', '-')}`" for name in missing)
        raise InputError(
            "answers-missing",
            f"the spec does not answer {len(missing)} of the four questions",
            f"say {options}, or name a `--fleet` and a `--model`",
        )
    given = {name: ask_at_prompt(name) for name in missing}
    return replace(question, **given)


def ask_at_prompt(name: str) -> str | bool:
    """Ask one of the four questions until the answer is one of its choices.

    The prompt goes to standard error: standard output is data only.
    """
    text, choices = ASKED[name]
    while True:
        sys.stderr.write(f"{text} [{'/'.join(choices)}] ")
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            raise InputError(
                "answers-missing", f"no answer to: {text}", f"say --{name.replace('_', '-')}"
            )
        word = line.strip().lower()
        if word in choices:
            return word == "yes" if name == "real_time" else word


def show_advice(advice: Advice) -> None:
    """Print the steps, then the answers and triggers they rest on, then what scaling up costs."""
    show(Text(" + ".join(_names(advice)), style="bold"))
    show(table("", ["step", "why"], [[step.step, step.sentence] for step in advice.steps]), "")
    show(table("", ["question", "answer", "from"], _answers(advice)), "")
    states = {True: "fired", False: "quiet", None: "unknown"}
    rows = [[one.code, states[one.fired], one.sentence] for one in advice.triggers]
    show(table("", ["trigger", "state", "why"], rows))
    if advice.blast is not None:
        show("", f"blast radius: {advice.blast.sentence}")
    if advice.vertical_options:
        show("", table("", ["larger nodes"], [[one.sentence] for one in advice.vertical_options]))
    if advice.upgrade is not None:
        _show_upgrade(advice)
    for note in advice.notes:
        show(Text(f"note: {note}", style="dim"))


def _names(advice: Advice) -> list[str]:
    return list(dict.fromkeys(step.step for step in advice.steps))


def _answers(advice: Advice) -> list[list[str]]:
    answers = advice.answers
    words = {True: "yes", False: "no", None: "not known"}
    rows: list[list[str]] = []
    for name in ASKED:
        value: str | bool | None = getattr(answers, name)
        text = value if isinstance(value, str) else words[value]
        origin = "the spec" if name in answers.worked_out else "you" if value is not None else ""
        rows.append([name.replace("_", " "), text, origin])
    return rows


def _show_upgrade(advice: Advice) -> None:
    upgrade = advice.upgrade
    assert upgrade is not None, "only an upgrade that was found is shown"
    show("", f"fabric or GPUs, at {upgrade.gpus:,} GPUs: {upgrade.sentence}")
    show(table("", ["option", "what it gives"], [[o.name, o.sentence] for o in upgrade.options]))
    if upgrade.evidence == "assumption":
        share = upgrade.fabric_price.share_of_gpu_hour
        text = f"fabric at {share:.0%} of a GPU's price is an assumption; say --fabric-share"
        show(Text(f"note: {text}", style="dim"))
