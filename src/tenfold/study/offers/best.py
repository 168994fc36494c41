"""Rank offers for a workload: catalogues or price facts, terms, speeds, and one ranking."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from tenfold.compose.fleet import OwnFacts, load_facts
from tenfold.decide.layout.serve import ServeRequest
from tenfold.decide.provision.rank import Candidate, Ranking, RentalJob, moved, rank
from tenfold.files.jobs.size import size_of
from tenfold.files.jobs.submission import job_of, read_job_file
from tenfold.files.prices.offers import OfferNotes, read_offers
from tenfold.model.errors import InputError
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.facility import PriceKind
from tenfold.model.market.offer import Offer, Trust
from tenfold.model.market.quote import Quote, RentalRules
from tenfold.model.plan import ServiceDemand, TrainingJob
from tenfold.model.units import HOUR
from tenfold.report.figures import count
from tenfold.study.offers.speeds import (
    MTOK,
    Kind,
    NoSpeed,
    Speeds,
    job_speeds,
    kind_of,
    kinds_of,
    serve_speeds,
    train_speeds,
)
from tenfold.study.offers.terms import TermsTable, countries_of, offers_of_facts
from tenfold.study.plan.train import model_shape, train_request

DEFAULT_MODEL = "Llama 3.1 8B"
"""What is trained if nothing is stated: an assumption, and named as one in the answer."""
DEFAULT_GPUS = 8
DEFAULT_HOURS = 168.0
"""Length of a run whose work is not stated; it spreads start-up and egress."""
DEFAULT_KINDS: tuple[PriceKind, ...] = ("on-demand", "spot")
Positive = Annotated[float, Meta(gt=0, le=1e12)]
NotNegative = Annotated[float, Meta(ge=0, le=1e12)]


class CatalogueQuestion(Struct, frozen=True, kw_only=True):
    """Which offers to look at; without a catalogue, the medians of the price facts."""

    catalogue: Annotated[
        tuple[Path, ...],
        Meta(
            description="Price catalogue as CSV, CSV.gz, Parquet or JSON, in the layout of "
            "SkyPilot, gpuhunt or your own; repeatable (default: median of each provider)"
        ),
    ] = ()
    hosts: Annotated[
        Path | None,
        Meta(description="Prices of GCP machine types; GCP lists accelerators without their host"),
    ] = None
    provider: Annotated[
        str | None,
        Meta(description="Provider, if the catalogue has none (default: its file name)"),
    ] = None
    accelerator: Annotated[
        tuple[str, ...], Meta(description="Only offers of this accelerator; repeatable")
    ] = ()
    kind: Annotated[
        tuple[PriceKind, ...],
        Meta(description="Only on-demand, spot or reserved offers; repeatable"),
    ] = ()
    residency: Annotated[
        tuple[str, ...],
        Meta(description="Only offers in this country or area: DE, US, EU, EEA; repeatable"),
    ] = ()
    trust: Annotated[
        Trust,
        Meta(
            description="Minimum trust level of the operator: own, certified, standard or "
            "community (default: community)"
        ),
    ] = "community"
    facts: OwnFacts = None


class BestQuestion(CatalogueQuestion, frozen=True, kw_only=True):
    """The options of `offers best`: a workload, what moves, and what an offer must meet."""

    model: Annotated[
        str | None,
        Meta(
            description="Name of a known model, or path to its config.json (default: Llama 3.1 8B)"
        ),
    ] = None
    job: Annotated[
        Path | None,
        Meta(description="Job file; its accelerator, size and time limit are the workload"),
    ] = None
    gpus: Annotated[int | None, Meta(ge=1, description="GPUs of the training job (default: 8)")] = (
        None
    )
    tokens: Annotated[
        float | None, Meta(description="Length of the run in tokens, such as 1e12 or 15T")
    ] = None
    qps: Annotated[
        Positive | None, Meta(description="Requests per second: rank for a service, not a job")
    ] = None
    input_tokens: Annotated[
        int, Meta(ge=1, description="Prompt length in tokens, with --qps (default: 1000)")
    ] = 1000
    output_tokens: Annotated[
        int, Meta(ge=1, description="Response length in tokens, with --qps (default: 200)")
    ] = 200
    ttft_s: Annotated[
        Positive, Meta(description="Target time to first token, in seconds (default: 2)")
    ] = 2.0
    tpot_s: Annotated[
        Positive, Meta(description="Target time per output token, in seconds (default: 0.1)")
    ] = 0.1
    hours: Annotated[
        Positive,
        Meta(description="Length of the run without --tokens, in hours (default: 168)"),
    ] = DEFAULT_HOURS
    data_gb: Annotated[
        NotNegative, Meta(description="Data to move in before the start, in GB (default: 0)")
    ] = 0.0
    data_egress_usd_per_gb: Annotated[
        NotNegative, Meta(description="Egress price where that data is stored (default: 0)")
    ] = 0.0
    results_gb: Annotated[
        NotNegative, Meta(description="Data to move out at the end, in GB (default: 0)")
    ] = 0.0
    staging_gbps: Annotated[
        Positive, Meta(description="Transfer rate, in Gbit/s (default: 10)")
    ] = 10.0
    deadline_s: Annotated[
        float | None, Meta(description="Finish within this time, such as 10d")
    ] = None
    availability: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="Minimum availability of capacity, as a share of time (default: 0)",
        ),
    ] = 0.0


class Workload(Struct, frozen=True, kw_only=True):
    """What is to be run: its speed on each kind of instance, and the unit of its work."""

    speeds: Callable[[Sequence[Kind]], Speeds]
    unit: str
    work: float | None
    hours: float
    has_state: bool
    notes: tuple[str, ...]


class BestAnswer(Struct, frozen=True, kw_only=True):
    """The ranking, and what it rests on."""

    unit: str
    quotes: tuple[Quote, ...]
    excluded: dict[str, int]
    offers: int
    providers: int
    notes: tuple[str, ...]
    catalogue: OfferNotes | None
    moved: Mapping[str, tuple[int | None, int | None]] | None = None
    """Places of each provider before and after a change of prices."""


def read_market(
    question: CatalogueQuestion, catalogue: Catalogue
) -> tuple[list[Offer], OfferNotes | None]:
    """Return the offers that a question is about."""
    if question.catalogue:
        offers, notes = read_offers(
            question.catalogue,
            catalogue.accelerators,
            catalogue.providers,
            hosts=question.hosts,
            provider=question.provider,
        )
    else:
        offers, notes = offers_of_facts(catalogue), None
    names = {catalogue.accelerators.get(name).name: None for name in question.accelerator}
    kinds = question.kind or DEFAULT_KINDS
    found = [one for one in offers if one.kind in kinds and (not names or one.accelerator in names)]
    return found, notes


def best_offers(question: BestQuestion, before: Sequence[Path] = ()) -> BestAnswer:
    """Rank offers for a workload; `before` are catalogues of earlier prices to compare with."""
    catalogue = load_facts(question.facts)
    workload = _workload(question, catalogue)
    offers, notes = read_market(question, catalogue)
    ranking = _ranked(question, workload, offers, catalogue)
    earlier = None
    if before:
        then, _ = read_offers(
            before,
            catalogue.accelerators,
            catalogue.providers,
            hosts=question.hosts,
            provider=question.provider,
        )
        kept = [one for one in then if one.kind in (question.kind or DEFAULT_KINDS)]
        earlier = _ranked(question, workload, kept, catalogue)
    return BestAnswer(
        unit=workload.unit,
        quotes=ranking.quotes,
        excluded=ranking.excluded,
        offers=len(offers),
        providers=len(dict.fromkeys(one.offer.provider for one in ranking.quotes)),
        notes=(*workload.notes, *_assumed(ranking)),
        catalogue=notes,
        moved=None if earlier is None else moved(earlier, ranking),
    )


def _ranked(
    question: BestQuestion, workload: Workload, offers: Sequence[Offer], catalogue: Catalogue
) -> Ranking:
    speeds = workload.speeds(kinds_of(offers))
    table = TermsTable(catalogue.providers)
    candidates: list[Candidate] = []
    for one in offers:
        speed = speeds.get(kind_of(one), NoSpeed("part-of-a-gpu"))
        found = None if isinstance(speed, NoSpeed) else speed
        rule = speed.rule if isinstance(speed, NoSpeed) else ""
        candidates.append(Candidate(one, table.of(one), found, rule))
    deadline = question.deadline_s
    rules = RentalRules(
        countries=countries_of(question.residency),
        trust=question.trust,
        deadline_h=None if deadline is None else deadline / 3600,
        availability=question.availability,
    )
    job = RentalJob(
        work=workload.work,
        hours=workload.hours,
        has_state=workload.has_state,
        data_in_gb=question.data_gb,
        data_out_gb=question.results_gb,
        egress_in_usd_per_gb=question.data_egress_usd_per_gb,
        staging_gbps=question.staging_gbps,
        rules=rules,
    )
    return rank(candidates, job)


def _workload(question: BestQuestion, catalogue: Catalogue) -> Workload:
    if question.job is not None and question.model is None:
        return _job_workload(question, question.job, catalogue)
    model = question.model or DEFAULT_MODEL
    assumed = "" if question.model else " (assumed: no `--model` or `--job` is given)"
    if question.qps is not None:
        return _service(question, model, question.qps, catalogue)
    gpus = question.gpus or _gpus_of(question.job) or DEFAULT_GPUS
    request = train_request(TrainingJob(model=model, gpus=gpus, tokens=question.tokens), catalogue)
    return Workload(
        speeds=lambda kinds: train_speeds(request, gpus, kinds, catalogue),
        unit="million tokens trained",
        work=None if question.tokens is None else question.tokens / MTOK,
        hours=question.hours,
        has_state=True,
        notes=(
            f"training {model} on {count(gpus, 'GPU')}{assumed}",
            *_length(question),
        ),
    )


def _service(question: BestQuestion, model: str, qps: float, catalogue: Catalogue) -> Workload:
    demand = ServiceDemand(
        model=model,
        qps=qps,
        input_tokens=question.input_tokens,
        output_tokens=question.output_tokens,
        ttft_s=question.ttft_s,
        tpot_s=question.tpot_s,
    )
    request = ServeRequest(service=demand, shape=model_shape(model, catalogue))

    return Workload(
        speeds=lambda kinds: serve_speeds(request, kinds, catalogue),
        unit="million output tokens",
        work=None,
        hours=question.hours,
        has_state=False,
        notes=(
            f"serving {model} at {qps:g} requests/s, {demand.input_tokens:,} tokens in and "
            f"{demand.output_tokens:,} out, TTFT {demand.ttft_s:g} s, TPOT {demand.tpot_s:g} s, "
            "one spare replica",
            *_length(question),
        ),
    )


def _gpus_of(path: Path | None) -> int:
    return 0 if path is None else ceil(size_of(read_job_file(path)).gpus)


def _job_workload(question: BestQuestion, path: Path, catalogue: Catalogue) -> Workload:
    """Return a job file as a workload: hours on the accelerators that it names."""
    row = read_job_file(path)
    gpus = question.gpus or ceil(size_of(row).gpus)
    named = [row.accelerator] if isinstance(row.accelerator, str) else list(row.accelerator)
    if not gpus or not named:
        raise InputError(
            "missing-workload",
            f"job file `{path}` has no {'GPUs' if not gpus else 'accelerator'}",
            "add `gpus` and `accelerator` to it, or `--model` to compare accelerators by speed",
            file=str(path),
        )
    names = [catalogue.accelerators.get(name).name for name in named]
    limit_ms = job_of(row).limit_ms
    hours = question.hours if limit_ms is None else limit_ms / HOUR

    return Workload(
        speeds=lambda kinds: job_speeds(gpus, names, kinds, catalogue),
        unit="GPU-hour of work",
        work=gpus * hours,
        hours=hours,
        has_state=True,
        notes=(
            f"job `{row.name}`: {count(gpus, 'GPU')} for {hours:g} h; every accelerator that it "
            "names counts as equally fast, use `--model` to compare them",
        ),
    )


def _length(question: BestQuestion) -> tuple[str, ...]:
    if question.tokens is not None:
        return ()
    return (f"a run of {question.hours:g} h, over which start-up and data costs are spread",)


_TERMS = {
    "speed": "speed of accelerators without measured runs",
    "trust": "operator",
    "egress_usd_per_gb": "egress price",
    "startup_s": "start-up time",
    "failures_per_1000_node_days": "failure rate",
    "spot_up_h": "how long spot capacity is available",
    "spot_down_h": "how long spot capacity is unavailable",
    "availability": "availability",
}


def _assumed(ranking: Ranking) -> tuple[str, ...]:
    fields = dict.fromkeys(field for quote in ranking.quotes for field in quote.assumed)
    if not fields:
        return ()
    named = ", ".join(_TERMS[field] for field in _TERMS if field in fields)
    return (f"assumed where a provider does not state it: {named}; override with `--facts`",)
