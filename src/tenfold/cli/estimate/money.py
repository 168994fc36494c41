"""`tenfold estimate month` and `own-or-rent`: a monthly bill, and whether to buy or rent."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

from tenfold.cli.arguments import Facts, Json
from tenfold.cli.options import options_from
from tenfold.cli.output import print_json, show, table
from tenfold.cli.quantities import parse_dollars
from tenfold.cli.screen import Text
from tenfold.model.errors import InputError
from tenfold.report.figures import share
from tenfold.study.estimate.money import (
    MonthAnswer,
    OwnAnswer,
    OwnQuestion,
    estimate_month,
    own_or_rent,
)

GAIN = validators.Number(gt=0, lte=10_000)


def month_command(
    *,
    fleet: Annotated[
        Path | None, Parameter(help="Fleet file, for the cost of pools and storage tiers")
    ] = None,
    line: Annotated[
        tuple[str, ...],
        Parameter(help="Monthly cost in dollars, such as gpus=35000; repeatable", negative=""),
    ] = (),
    gain_percent: Annotated[
        float | None,
        Parameter(help="Show the value of raising utilisation by this much, in %", validator=GAIN),
    ] = None,
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """Show a monthly bill by component, and the value of better utilisation.

    Pools and tiers come from the fleet file and are billed for every hour of the month. --line
    adds a cost; a line with the same name as a pool or tier replaces its cost.
    """
    answer = estimate_month(
        dict(_line(text) for text in line),
        fleet=fleet,
        gain=None if gain_percent is None else gain_percent / 100,
        facts=facts,
    )
    if as_json:
        print_json(answer)
    else:
        show_month(answer)


def _line(text: str) -> tuple[str, float]:
    name, mark, amount = text.rpartition("=")
    if not mark or not name.strip():
        raise InputError(
            "bad-line",
            f"`--line {text}` must be NAME=AMOUNT",
            "write a name, `=` and dollars: `--line gpus=35000`",
            field="--line",
        )
    return name.strip(), parse_dollars(amount, "--line")


def show_month(answer: MonthAnswer) -> None:
    """Print the bill, and what better utilisation is worth."""
    rows = [[one.name, f"{one.usd:,.2f}", _part(one.usd, answer)] for one in answer.lines]
    rows.append(["total", f"{answer.total_usd:,.2f}", ""])
    show(table("", ["item", ">$/month", ">share"], rows))
    if answer.gain is not None:
        show(
            "",
            f"{answer.gain:.0%} better utilisation is worth:",
            f"- ${answer.same_work_saved_usd:,.2f}/month if you can release the freed capacity "
            "(same work, smaller bill)",
            f"- ${answer.extra_work_usd:,.2f}/month if you cannot (more work for the same bill, at "
            "today's cost)",
        )
    _show_notes(answer.notes)


def _part(usd: float, answer: MonthAnswer) -> str:
    return share(usd / answer.total_usd) if answer.total_usd else ""


def _show_notes(notes: tuple[str, ...]) -> None:
    for note in notes:
        show(Text(f"note: {note}", style="dim"))


@options_from(OwnQuestion)
def own_command(question: OwnQuestion, *, as_json: Json = False) -> None:
    """Show at what utilisation, and after how many months, owning is cheaper than renting."""
    answer = own_or_rent(question)
    if as_json:
        print_json(answer)
    else:
        show_own(answer)


def show_own(answer: OwnAnswer) -> None:
    """Print the verdict, the break-even, and both costs by utilisation."""
    verdict = "own" if answer.own else "rent"
    show(
        Text(
            f"recommended: {verdict}. At {answer.busy:.0%} utilisation, {answer.accelerator} costs "
            f"${answer.owned_usd_per_hour:,.2f} per hour in use if owned, "
            f"${answer.rent_usd_per_hour:,.2f} if rented",
            style="bold",
        ),
        _even(answer),
        f"owning costs ${answer.always_usd_per_hour:,.2f}/h, plus "
        f"${answer.load_usd_per_hour:,.2f}/h under load",
        "",
    )
    rows = [
        [
            f"{one.busy:.0%}",
            f"{one.owned_usd_per_hour:,.2f}",
            f"{answer.rent_usd_per_hour:,.2f}",
            "never" if one.payback_months is None else f"{one.payback_months:,.0f}",
        ]
        for one in answer.by_busy
    ]
    show(table("", [">utilisation", ">owned $/h", ">rented $/h", ">payback months"], rows))
    _show_notes(answer.notes)


def _even(answer: OwnAnswer) -> str:
    if answer.break_even is None:
        return "owning is never cheaper: power alone costs more than the rent"
    if answer.break_even > 1:
        return (
            f"owning is never cheaper: it would break even at {answer.break_even:.0%} utilisation"
        )
    return f"owning is cheaper above {answer.break_even:.0%} utilisation"
