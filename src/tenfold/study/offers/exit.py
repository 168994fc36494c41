"""What leaving a provider takes, in days and dollars, and how portable the workload is.

Work to rebuild what runs nowhere else is stated by you: there is no honest figure for it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from tenfold.compose.fleet import load_facts, open_fleet
from tenfold.model.errors import InputError
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.hardware import Accelerator
from tenfold.model.market.offer import Offer
from tenfold.model.units import HOURS_PER_MONTH, usd
from tenfold.report.figures import count
from tenfold.study.offers.best import CatalogueQuestion, NotNegative, Positive, read_market
from tenfold.study.offers.terms import TermsTable, countries_of, medians_usd

GB = 10**9
GBIT_PER_GB = 8.0
DAY_S = 86_400.0
# Where a part of the score reaches its end; assumptions, printed with the score.
ENOUGH_PROVIDERS = 3
DATA_DAYS_MOST = 30.0
REWORK_DAYS_MOST = 90.0
COMMITMENT_MONTHS_MOST = 36.0

Leaves = Literal["moves", "stays", "is paid"]


class ExitQuestion(CatalogueQuestion, frozen=True, kw_only=True):
    """The options of `offers exit`: what is at the provider today."""

    leaving: Annotated[str, Meta(description="Provider to leave, as in the catalogue")]
    fleet: Annotated[
        Path | None,
        Meta(description="Fleet file whose tiers and pools are at the provider"),
    ] = None
    gpus: Annotated[int | None, Meta(ge=1, description="GPUs in use there")] = None
    usd_per_gpu_hour: Annotated[
        Positive | None, Meta(description="Price that you pay (default: median of the provider)")
    ] = None
    data_gb: Annotated[NotNegative | None, Meta(description="Data to move out, in GB")] = None
    gbps: Annotated[Positive, Meta(description="Transfer rate, in Gbit/s (default: 10)")] = 10.0
    commitment_months: Annotated[
        NotNegative, Meta(description="Months left on the commitment (default: 0)")
    ] = 0.0
    commitment_usd_per_month: Annotated[
        NotNegative, Meta(description="What the commitment costs per month (default: 0)")
    ] = 0.0


class ExitLine(Struct, frozen=True, kw_only=True):
    """One thing that leaves, stays or is paid."""

    item: str
    leaves: Leaves
    days: float
    usd: float
    note: str = ""


class ScorePart(Struct, frozen=True, kw_only=True):
    """One part of the portability score, from 0 (locked in) to 1 (portable)."""

    part: str
    score: float
    because: str


class ExitAnswer(Struct, frozen=True, kw_only=True):
    """The report on leaving a provider."""

    provider: str
    accelerator: str
    lines: tuple[ExitLine, ...]
    days: float
    """Until you could be gone: data and rework, one after the other."""
    usd: float
    score: float
    """The mean of its parts, times 100."""
    parts: tuple[ScorePart, ...]
    alternatives: tuple[tuple[str, float], ...]
    """Other providers with the same accelerator, by median price per GPU-hour."""
    usd_per_month_now: float
    usd_per_month_cheapest: float | None
    notes: tuple[str, ...]


class _Present(Struct, frozen=True, kw_only=True):
    """What is at the provider."""

    accelerator: Accelerator
    gpus: int
    data_gb: float
    usd_per_gpu_hour: float
    egress_usd_per_gb: float
    notes: tuple[str, ...]


def exit_report(question: ExitQuestion, rework_days: Mapping[str, float]) -> ExitAnswer:
    """Return what leaves with you, and what leaving costs; rework is by what needs it."""
    question = replace(question, leaving=question.leaving.casefold())
    catalogue = load_facts(question.facts)
    if not question.accelerator and question.fleet is None:
        raise InputError(
            "missing-workload",
            "no accelerator is given, so no other provider can be compared",
            "add `--accelerator`, or `--fleet` with a fleet file",
            field="--accelerator",
        )
    offers, _ = read_market(replace(question, accelerator=()), catalogue)
    present = _present(question, offers, catalogue)
    part = present.accelerator
    countries = countries_of(question.residency)
    elsewhere = [
        one
        for one in offers
        if one.provider != question.leaving and (not countries or one.country in countries)
    ]
    alternatives = _medians(elsewhere, part.name)
    lines = _lines(question, present, rework_days)
    days = sum(line.days for line in lines)
    parts = _parts(question, present, lines, _runtimes(elsewhere, part, catalogue), alternatives)
    cheapest = min((price for _, price in alternatives), default=None)
    return ExitAnswer(
        provider=question.leaving,
        accelerator=part.name,
        lines=lines,
        days=days,
        usd=sum(line.usd for line in lines),
        score=100.0 * sum(one.score for one in parts) / len(parts),
        parts=parts,
        alternatives=alternatives,
        usd_per_month_now=present.gpus * present.usd_per_gpu_hour * HOURS_PER_MONTH,
        usd_per_month_cheapest=(
            None if cheapest is None else present.gpus * cheapest * HOURS_PER_MONTH
        ),
        notes=(*present.notes, *_rework_note(part, rework_days)),
    )


def _present(question: ExitQuestion, offers: Sequence[Offer], catalogue: Catalogue) -> _Present:
    pools_gpus, tiers_gb, name, price = 0, 0.0, "", None
    notes: list[str] = []
    if question.fleet is not None:
        fleet = open_fleet(question.fleet, question.facts)
        pools = [pool for pool in fleet.spec.pools if pool.gpus and pool.accelerator]
        name = pools[0].accelerator or "" if pools else ""
        alike = [pool for pool in pools if pool.accelerator == name]
        pools_gpus = sum(pool.gpus for pool in alike)
        tiers_gb = sum(tier.capacity for tier in fleet.spec.tiers) / GB
        priced = [pool.price.usd_micros_per_hour for pool in alike if pool.price is not None]
        price = usd(max(priced)) if priced else None
        if tiers_gb and question.data_gb is None:
            notes.append("storage tiers are taken to be full; state less with `--data-gb`")
    part = catalogue.accelerators.get(question.accelerator[0] if question.accelerator else name)
    paid = question.usd_per_gpu_hour or price or _median_of(offers, question.leaving, part.name)
    if paid is None:
        raise InputError(
            "no-price",
            f"`{question.leaving}` has no on-demand price for {part.name} in the catalogue",
            "state what you pay with `--usd-per-gpu-hour`",
            field="--usd-per-gpu-hour",
        )
    probe = Offer(
        provider=question.leaving,
        accelerator=part.name,
        gpus=1.0,
        kind="on-demand",
        usd_micros_per_hour=0,  # pyright: ignore[reportArgumentType]
    )
    terms = TermsTable(catalogue.providers).of(probe)
    if "egress_usd_per_gb" in terms.assumed:
        notes.append(
            f"egress of ${terms.egress_usd_per_gb:g}/GB assumed for {question.leaving}; "
            "override with `--facts`"
        )
    return _Present(
        accelerator=part,
        gpus=question.gpus or pools_gpus or 1,
        data_gb=tiers_gb if question.data_gb is None else question.data_gb,
        usd_per_gpu_hour=paid,
        egress_usd_per_gb=terms.egress_usd_per_gb,
        notes=tuple(notes),
    )


def _medians(offers: Sequence[Offer], accelerator: str) -> tuple[tuple[str, float], ...]:
    rows = [
        (provider, price)
        for (name, kind, provider), (price, _) in medians_usd(offers).items()
        if name == accelerator and kind == "on-demand"
    ]
    return tuple(sorted(rows, key=lambda row: (row[1], row[0])))


def _median_of(offers: Sequence[Offer], provider: str, accelerator: str) -> float | None:
    return dict(_medians(offers, accelerator)).get(provider)


def _lines(
    question: ExitQuestion, present: _Present, rework_days: Mapping[str, float]
) -> tuple[ExitLine, ...]:
    days = present.data_gb * GBIT_PER_GB / question.gbps / DAY_S
    daily = present.gpus * present.usd_per_gpu_hour * 24
    lines = [
        ExitLine(
            item=f"data, {present.data_gb:,.0f} GB",
            leaves="moves",
            days=days,
            usd=present.data_gb * present.egress_usd_per_gb,
            note=f"${present.egress_usd_per_gb:g}/GB out, at {question.gbps:g} Gbit/s",
        ),
        ExitLine(
            item=f"{count(present.gpus, 'GPU')} at both providers during the data move",
            leaves="is paid",
            days=0.0,
            usd=days * daily,
            note="the old capacity is kept until the data has moved",
        ),
        ExitLine(
            item="jobs, images and plans",
            leaves="moves",
            days=0.0,
            usd=0.0,
            note="job files and launch files run on Slurm, Ray and Kubernetes as they are",
        ),
    ]
    if question.commitment_months:
        lines.append(
            ExitLine(
                item=f"commitment, {question.commitment_months:g} months left",
                leaves="stays",
                days=0.0,
                usd=question.commitment_months * question.commitment_usd_per_month,
                note="paid whether it is used or not",
            )
        )
    lines.extend(
        ExitLine(item=f"rework: {name}", leaves="stays", days=taken, usd=0.0, note="stated by you")
        for name, taken in rework_days.items()
    )
    return tuple(lines)


def _runtimes(offers: Sequence[Offer], part: Accelerator, catalogue: Catalogue) -> int:
    """Return how many other providers have accelerators of the same software runtime."""
    alike = {one.name for one in catalogue.accelerators if one.runtime == part.runtime}
    return len(dict.fromkeys(one.provider for one in offers if one.accelerator in alike))


def _parts(
    question: ExitQuestion,
    present: _Present,
    lines: Sequence[ExitLine],
    runtimes: int,
    alternatives: Sequence[tuple[str, float]],
) -> tuple[ScorePart, ...]:
    data_days = lines[0].days
    rework = sum(line.days for line in lines if line.item.startswith("rework"))
    monthly = present.gpus * present.usd_per_gpu_hour * HOURS_PER_MONTH
    paid = sum(line.usd for line in lines if line.leaves != "stays")
    part = present.accelerator
    return (
        ScorePart(
            part="accelerator",
            score=min(1.0, len(alternatives) / ENOUGH_PROVIDERS),
            because=f"{count(len(alternatives), 'other provider')} with {part.name}; "
            f"{ENOUGH_PROVIDERS} are enough",
        ),
        ScorePart(
            part="software",
            score=min(1.0, runtimes / ENOUGH_PROVIDERS),
            because=f"{count(runtimes, 'other provider')} with {part.runtime} accelerators; "
            f"{ENOUGH_PROVIDERS} are enough",
        ),
        ScorePart(
            part="data",
            score=_left(data_days, DATA_DAYS_MOST),
            because=f"{data_days:.1f} days to move; {DATA_DAYS_MOST:g} score 0",
        ),
        ScorePart(
            part="cost",
            score=_left(paid, monthly),
            because=f"${paid:,.0f} to leave; a month of use (${monthly:,.0f}) scores 0",
        ),
        ScorePart(
            part="commitment",
            score=_left(question.commitment_months, COMMITMENT_MONTHS_MOST),
            because=f"{question.commitment_months:g} months; {COMMITMENT_MONTHS_MOST:g} score 0",
        ),
        ScorePart(
            part="rework",
            score=_left(rework, REWORK_DAYS_MOST),
            because=f"{rework:g} days stated; {REWORK_DAYS_MOST:g} score 0",
        ),
    )


def _left(taken: float, most: float) -> float:
    return max(0.0, 1.0 - taken / most) if most > 0 else 1.0


def _rework_note(part: Accelerator, rework_days: Mapping[str, float]) -> tuple[str, ...]:
    if rework_days:
        return ()
    runtime = "" if part.runtime == "cuda" else f", and the port from {part.runtime}"
    return (
        "not included: rework of services that run nowhere else (managed queues, file systems, "
        f"identity{runtime}); add it with `--rework NAME=DAYS`",
    )
