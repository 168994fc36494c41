"""`tenfold estimate month` and `own-or-rent`: a bill, and whether to buy."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators
from rich.text import Text

from tenfold.cli.options import options_from
from tenfold.cli.output import print_json, show, table
from tenfold.cli.quantities import parse_number
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

Facts = Annotated[Path | None, Parameter(help="Folder of your own facts, over the shipped ones.")]
Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON.")]


def month_command(
    *,
    fleet: Annotated[Path | None, Parameter(help="A fleet file, for pools and tiers.")] = None,
    line: Annotated[
        tuple[str, ...],
        Parameter(help="A line in dollars, such as gpus=35000; several times.", negative=""),
    ] = (),
    gain_percent: Annotated[
        float | None, Parameter(help="Price so much better utilisation.", validator=GAIN)
    ] = None,
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """Add up a month's bill by component, and say what better utilisation is worth.

    Pools and tiers come from a fleet file, every hour paid for; lines are added to them,
    and one of the same name replaces theirs.
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
            f"`--line` is `{text}`, which is no name with dollars",
            "write a name, `=` and dollars: gpus=35000",
            field="--line",
        )
    return name.strip(), parse_number(amount, "--line")


def show_month(answer: MonthAnswer) -> None:
    """Print the bill and the two worths of a gain."""
    rows = [[one.name, f"{one.usd:,.2f}", _part(one.usd, answer)] for one in answer.lines]
    rows.append(["sum", f"{answer.total_usd:,.2f}", ""])
    show(table("", ["a month", ">dollars", ">share"], rows))
    if answer.gain is not None:
        show(
            "",
            f"{answer.gain:.0%} better utilisation, two ways to count it:",
            f"- the same work on less capacity saves ${answer.same_work_saved_usd:,.2f} a month, "
            "if capacity can be given back",
            f"- more work for the same bill is worth ${answer.extra_work_usd:,.2f} a month "
            "at today's cost, if not",
        )
    _show_notes(answer.notes)


def _part(usd: float, answer: MonthAnswer) -> str:
    return share(usd / answer.total_usd) if answer.total_usd else ""


def _show_notes(notes: tuple[str, ...]) -> None:
    for note in notes:
        show(Text(f"note: {note}", style="dim"))


@options_from(OwnQuestion)
def own_command(question: OwnQuestion, *, as_json: Json = False) -> None:
    """Say above which busy share, and after how many months, owning beats renting by the hour."""
    answer = own_or_rent(question)
    if as_json:
        print_json(answer)
    else:
        show_own(answer)


def show_own(answer: OwnAnswer) -> None:
    """Print the verdict, the break-even, and both costs by busy share."""
    verdict = "own" if answer.own else "rent"
    show(
        Text(
            f"{verdict}: at {answer.busy:.0%} busy a useful hour of {answer.accelerator} costs "
            f"${answer.owned_usd_per_hour:,.2f} owned and ${answer.rent_usd_per_hour:,.2f} rented",
            style="bold",
        ),
        _even(answer),
        f"owning costs ${answer.always_usd_per_hour:,.2f} an hour always and "
        f"${answer.load_usd_per_hour:,.2f} more under load",
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
    show(table("", [">busy", ">owned $/h", ">rented $/h", ">months to pay back"], rows))
    _show_notes(answer.notes)


def _even(answer: OwnAnswer) -> str:
    if answer.break_even is None:
        return "no busy share makes owning cheaper: power alone costs more than the rent"
    if answer.break_even > 1:
        return (
            "no busy share makes owning cheaper: it would have to work "
            f"{answer.break_even:.0%} of its hours"
        )
    return f"owning is cheaper above a busy share of {answer.break_even:.0%}"
