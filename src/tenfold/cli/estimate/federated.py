"""`tenfold estimate federated`: what a round over several sites takes."""

from math import isfinite
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tenfold.cli.errors import Exit
from tenfold.cli.estimate.federated_render import federated_json, show_federated
from tenfold.cli.options import Option, options_from
from tenfold.cli.output import print_json
from tenfold.cli.quantities import parse_duration, parse_number
from tenfold.compose.fleet import open_fleet
from tenfold.model.errors import InputError
from tenfold.study.estimate.federated import FederatedQuestion, estimate_federated

Fleet = Annotated[Path, Parameter(help="A fleet file with sites and the links between them.")]
Facts = Annotated[Path | None, Parameter(help="Folder of your own facts, over the shipped ones.")]
Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON.")]


def _by_site(texts: tuple[str, ...], option: str) -> dict[str, float]:
    """Return values by site from words such as `north=0.5`."""
    found: dict[str, float] = {}
    for text in texts:
        name, mark, value = text.rpartition("=")
        try:
            figure = float(value)
        except ValueError:
            figure = 0.0
        if not mark or not name or not isfinite(figure) or figure <= 0:
            raise InputError(
                "bad-site-value",
                f"`{option}` is `{text}`, which is no site with a number above 0",
                f"write {option} SITE=NUMBER, once a site",
                field=option,
            )
        found[name] = figure
    return found


@options_from(
    FederatedQuestion,
    {
        "params": Option(name="--params", typed=str | None, read=parse_number),
        "sites": Option(name="--site"),
        "step_s": Option(name="--step-s", typed=tuple[str, ...], read=_by_site),
        "samples": Option(name="--samples", typed=tuple[str, ...], read=_by_site),
        "slowdown": Option(name="--slow", typed=tuple[str, ...], read=_by_site),
        "deadline_s": Option(name="--deadline", typed=str | None, read=parse_duration),
    },
)
def federated_command(
    question: FederatedQuestion,
    *,
    fleet: Fleet,
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """Estimate a round of federated training: its time, its traffic, and what would shorten it.

    Rates between sites come from the links of the fleet file. Ends with status 1 where no
    round can succeed.
    """
    answer = estimate_federated(open_fleet(fleet, facts), question)
    if as_json:
        print_json(federated_json(answer))
    else:
        show_federated(answer)
    raise Exit(0 if answer.round is not None else 1)
