"""Print offers, rankings and exit reports as text."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tenfold.cli.output import print_note, show, table
from tenfold.cli.screen import Text
from tenfold.files.prices.offers import OfferNotes
from tenfold.model.market.quote import Quote
from tenfold.report.figures import count, share
from tenfold.study.offers.best import BestAnswer
from tenfold.study.offers.exit import ExitAnswer

if TYPE_CHECKING:
    from rich.table import Table

RULES = {
    "residency": "in another country",
    "country-unknown": "country unknown",
    "trust": "operator's trust level too low",
    "availability": "too rarely available",
    "split": "needs several instances that are not whole servers",
    "part-of-a-gpu": "sold in parts of a GPU",
    "does-not-fit": "the model does not fit",
    "misses-targets": "misses the latency targets",
    "inference-only": "does not train",
    "other-accelerator": "an accelerator that the job does not name",
    "deadline": "too slow for the deadline",
}
"""What each rule that excludes offers means."""


def show_notes(notes: OfferNotes | None) -> None:
    """Print what a catalogue lost, to standard error."""
    if notes is None or notes.offers_used == notes.offers_read:
        return
    print_note(f"{notes.offers_used:,} of {notes.offers_read:,} prices used")
    for rule, dropped in notes.dropped.items():
        if dropped:
            print_note(f"{count(dropped, 'price')} dropped by rule `{rule}`")
    if notes.unresolved:
        print_note(f"no accelerator fact for {', '.join(notes.unresolved)}")


def show_medians(medians: Mapping[tuple[str, str, str], tuple[float, int]]) -> None:
    """Print the median price by accelerator, kind and provider, cheapest first."""
    if not medians:
        show("no offer matches")
        return
    rows = [
        [accelerator, kind, provider, f"{price:,.2f}", f"{offers:,}"]
        for (accelerator, kind, provider), (price, offers) in sorted(
            medians.items(), key=lambda one: (*one[0][:2], one[1][0], one[0][2])
        )
    ]
    show(table("", ["accelerator", "kind", "provider", ">USD/GPU-h", ">offers"], rows))


def show_best(answer: BestAnswer, *, all_offers: bool, top: int) -> None:
    """Print the ranking, why the first is first, and what was excluded."""
    show_notes(answer.catalogue)
    quotes = answer.quotes if all_offers else _best_of_each(answer.quotes)
    if not quotes:
        show("no offer matches")
    else:
        show(
            f"{answer.notes[0]}: {count(len(answer.quotes), 'offer')} from {answer.providers} "
            f"providers, by dollars per {answer.unit}",
            "",
        )
        show(_ranking(quotes[:top], answer))
        if len(quotes) > top:
            show(f"{len(quotes) - top:,} more with --top or --json")
        show("", *_why(quotes))
    for rule, excluded in answer.excluded.items():
        show(Text(f"excluded: {count(excluded, 'offer')}, {RULES[rule]} ({rule})", style="dim"))
    for note in answer.notes[1:]:
        show(Text(f"note: {note}", style="dim"))


def _best_of_each(quotes: Sequence[Quote]) -> Sequence[Quote]:
    found: dict[str, Quote] = {}
    for quote in quotes:
        found.setdefault(quote.offer.provider, quote)
    return list(found.values())


def _ranking(quotes: Sequence[Quote], answer: BestAnswer) -> "Table":
    before = answer.moved
    rows = [
        [
            str(place),
            *([] if before is None else [_was(before.get(one.offer.provider, (None, None))[0])]),
            one.offer.provider,
            one.offer.accelerator,
            one.offer.kind,
            one.offer.country or one.offer.region or "any",
            str(one.gpus),
            f"{one.usd_per_gpu_hour:,.2f}",
            f"{one.effective_share:.0%}",
            f"{one.calendar_h:,.0f}",
            f"{one.usd_per_unit:,.4f}",
        ]
        for place, one in enumerate(quotes, start=1)
    ]
    columns = [
        ">#",
        *([] if before is None else [">was"]),
        "provider",
        "accelerator",
        "kind",
        "country",
        ">GPUs",
        ">list $/GPU-h",
        ">goodput",
        ">hours",
        ">$/unit",
    ]
    return table("", columns, rows)


def _was(place: int | None) -> str:
    return "new" if place is None else str(place)


def _why(quotes: Sequence[Quote]) -> list[str]:
    """Say why the first offer is first: against the second, and against the lowest list price."""
    best = quotes[0]
    lines = [f"first: {best.offer.name}, {best.how}; ${best.usd:,.0f} for {best.billed_h:,.0f} h"]
    if len(quotes) > 1:
        lines.append(f"compared with {quotes[1].offer.provider}: {_difference(best, quotes[1])}")
    listed = min(quotes, key=lambda one: one.usd_per_gpu_hour)
    if listed not in quotes[:2]:
        lines.append(
            f"lowest list price is {listed.offer.provider} ${listed.usd_per_gpu_hour:,.2f}/GPU-h "
            f"on {listed.offer.accelerator}: {_difference(best, listed)}"
        )
    return lines


def _difference(best: Quote, other: Quote) -> str:
    """Return by how much each factor of the cost differs."""
    speed = best.work_per_hour / best.gpus / (other.work_per_hour / other.gpus)
    said = [
        f"{share(1 - best.usd_per_unit / other.usd_per_unit)} less per unit",
        f"price {best.usd_per_gpu_hour / other.usd_per_gpu_hour:.2f}x",
        f"speed {speed:.2f}x",
        f"goodput {best.effective_share:.0%} vs {other.effective_share:.0%}",
    ]
    if best.usd_egress or other.usd_egress:
        said.append(f"egress ${best.usd_egress:,.0f} vs ${other.usd_egress:,.0f}")
    return ", ".join(said)


def show_exit(answer: ExitAnswer) -> None:
    """Print what leaves, what it costs, and the score with its parts."""
    show(
        Text(
            f"leaving {answer.provider}: {answer.days:,.1f} days and ${answer.usd:,.0f}; "
            f"portability {answer.score:.0f} of 100",
            style="bold",
        ),
        "",
    )
    rows = [
        [line.item, line.leaves, f"{line.days:,.1f}", f"{line.usd:,.0f}", line.note]
        for line in answer.lines
    ]
    show(table("", ["item", "", ">days", ">$", ""], rows), "")
    parts = [[one.part, f"{100 * one.score:.0f}", one.because] for one in answer.parts]
    show(table("", ["portability", ">score", "because"], parts), "")
    if answer.alternatives:
        listed = ", ".join(f"{name} ${price:,.2f}" for name, price in answer.alternatives[:6])
        more = len(answer.alternatives) - 6
        tail = f" and {more} more" if more > 0 else ""
        show(f"{answer.accelerator} elsewhere, per GPU-hour: {listed}{tail}")
    cheapest = answer.usd_per_month_cheapest
    if cheapest is not None:
        difference = answer.usd_per_month_now - cheapest
        word = "less" if difference >= 0 else "more"
        show(
            f"${answer.usd_per_month_now:,.0f} a month now, ${cheapest:,.0f} at the lowest "
            f"on-demand median: ${abs(difference):,.0f} {word}"
        )
    for note in answer.notes:
        show(Text(f"note: {note}", style="dim"))
