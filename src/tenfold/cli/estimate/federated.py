"""`tenfold estimate federated`: the time and traffic of a round over several sites."""

from math import isfinite
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tenfold.cli.arguments import Facts, Json
from tenfold.cli.errors import Exit
from tenfold.cli.estimate.federated_render import federated_json, show_federated
from tenfold.cli.options import Option, options_from
from tenfold.cli.output import print_json
from tenfold.cli.quantities import parse_duration, parse_number
from tenfold.compose.fleet import open_fleet
from tenfold.model.errors import InputError
from tenfold.study.estimate.federated import FederatedQuestion, estimate_federated

Fleet = Annotated[Path, Parameter(help="Fleet file with sites and the links between them")]


def _by_site(texts: tuple[str, ...], option: str) -> dict[str, float]:
    """Return values by site from text such as `north=0.5`."""
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
                f"`{option} {text}` must be SITE=NUMBER",
                f"write `{option} SITE=NUMBER`, once per site",
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
    """Estimate a round of federated training: time, traffic, and what would shorten it.

    Bandwidth between sites comes from the links in the fleet file. Exits with status 1 if no
    round can succeed.
    """
    answer = estimate_federated(open_fleet(fleet, facts), question)
    if as_json:
        print_json(federated_json(answer))
    else:
        show_federated(answer)
    raise Exit(0 if answer.round is not None else 1)
