"""`tenfold offers`: list and rank accelerator offers, and estimate the cost of leaving a
provider."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from tenfold.cli.arguments import AT_LEAST_ONE, Json
from tenfold.cli.errors import Exit
from tenfold.cli.offers.render import show_best, show_exit, show_medians, show_notes
from tenfold.cli.options import Option, options_from
from tenfold.cli.output import print_json
from tenfold.cli.quantities import parse_duration, parse_number
from tenfold.compose.fleet import load_facts
from tenfold.model.errors import InputError
from tenfold.study.offers.best import BestQuestion, CatalogueQuestion, best_offers, read_market
from tenfold.study.offers.exit import ExitQuestion, exit_report
from tenfold.study.offers.terms import countries_of, medians_usd

app = App(
    name="offers",
    help="List and rank accelerator offers, and estimate the cost of leaving a provider",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)

Top = Annotated[int, Parameter(help="Rows to print (default: 25)", validator=AT_LEAST_ONE)]


@app.command(name="list")
@options_from(CatalogueQuestion)
def list_command(question: CatalogueQuestion, *, as_json: Json = False) -> None:
    """List the median price of a GPU-hour by accelerator and provider.

    Placeholders, bid floors and prices that exclude the host are dropped; the number dropped
    by each rule is printed to standard error. With --json, every offer is listed.
    """
    catalogue = load_facts(question.facts)
    offers, notes = read_market(question, catalogue)
    countries = countries_of(question.residency)
    kept = [one for one in offers if not countries or one.country in countries]
    if as_json:
        print_json({"offers": kept, "catalogue": notes})
        return
    show_notes(notes)
    show_medians(medians_usd(kept))


@app.command
@options_from(
    BestQuestion,
    {
        "tokens": Option(name="--tokens", typed=str | None, read=parse_number),
        "deadline_s": Option(name="--deadline", typed=str | None, read=parse_duration),
    },
)
def best(
    question: BestQuestion,
    *,
    before: Annotated[
        tuple[Path, ...],
        Parameter(
            help="Catalogue of earlier prices, to compare ranks with; repeatable",
            negative="",
        ),
    ] = (),
    all_offers: Annotated[
        bool, Parameter(negative="", help="Show every offer, not only the best of each provider")
    ] = False,
    top: Top = 25,
    as_json: Json = False,
) -> None:
    """Rank offers by cost per unit of useful work (goodput), not by hourly price.

    The speed of the workload on each accelerator is estimated; failures, reclaimed spot capacity,
    start-up and egress are added. Exits with status 1 if no offer matches.
    """
    answer = best_offers(question, before)
    if as_json:
        print_json(answer)
    else:
        show_best(answer, all_offers=all_offers, top=top)
    raise Exit(0 if answer.quotes else 1)


@app.command(name="exit")
@options_from(ExitQuestion)
def exit_command(
    question: ExitQuestion,
    *,
    rework: Annotated[
        tuple[str, ...],
        Parameter(
            help="Days of work to replace a service that no other provider has, such as queues=20; "
            "repeatable",
            negative="",
        ),
    ] = (),
    as_json: Json = False,
) -> None:
    """Estimate the days and dollars to leave a provider, and how portable the workload is."""
    answer = exit_report(question, dict(_rework(text) for text in rework))
    if as_json:
        print_json(answer)
    else:
        show_exit(answer)


def _rework(text: str) -> tuple[str, float]:
    name, mark, days = text.rpartition("=")
    if not mark or not name.strip():
        raise InputError(
            "bad-line",
            f"`--rework {text}` must be NAME=DAYS",
            "write a name, `=` and days: `--rework queues=20`",
            field="--rework",
        )
    return name.strip(), parse_number(days, "--rework", "write days, such as 20")
