"""Estimate a federated training job on a fleet: the round, its traffic and alternatives."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from tenfold.compose.fleet import OpenFleet
from tenfold.model.errors import InputError
from tenfold.model.estimate import TrainRow
from tenfold.model.federated import FederatedJob, FederatedSite
from tenfold.model.ids import SiteId
from tenfold.model.plan import Precision
from tenfold.model.reason import Misfit, Reason
from tenfold.physics.federated import Round, Synchronous, federated_round, synchronous
from tenfold.physics.federated_levers import Levers, levers
from tenfold.study.estimate.federated_sites import (
    CoordinatorPath,
    LocalWork,
    chosen_sites,
    local_work,
    most_linked,
    ways,
)

DEFAULT_WEIGHT_BITS = 16


Count = Annotated[int, Meta(ge=1, le=10**9)]
Delay = Annotated[float, Meta(ge=0, le=10**6)]


class FederatedQuestion(Struct, frozen=True, kw_only=True):
    """The options of `estimate federated`; None is assumed or estimated."""

    local_steps: Annotated[Count, Meta(description="Local steps per site per round")]
    model: Annotated[str | None, Meta(description="Name of a known model")] = None
    params: Annotated[
        float | None,
        Meta(
            description="Number of parameters, such as 11M; without --model, "
            "--step-s is also required"
        ),
    ] = None
    sites: Annotated[
        tuple[str, ...],
        Meta(description="Participating site; repeatable (default: all sites with accelerators)"),
    ] = ()
    coordinator: Annotated[
        str | None,
        Meta(description="Site that averages the models (default: the one with the most links)"),
    ] = None
    seq: Annotated[Count, Meta(description="Sequence length in tokens")] | None = None
    batch: Annotated[Count, Meta(description="Sequences per local step at each site")] | None = None
    precision: Annotated[
        Precision | None, Meta(description="Precision of local steps (default: bf16)")
    ] = None
    stack: Annotated[str | None, Meta(description="Training framework and version")] = None
    step_s: Annotated[
        Mapping[str, float],
        Meta(description="SITE=SECONDS: measured time of a local step (default: estimated)"),
    ] = {}
    samples: Annotated[
        Mapping[str, float],
        Meta(
            description="SITE=NUMBER: number of samples, used as the site's weight in the average"
        ),
    ] = {}
    slowdown: Annotated[
        Mapping[str, float], Meta(description="SITE=FACTOR: how many times slower a straggler is")
    ] = {}
    compression: Annotated[
        float, Meta(ge=1, le=10**6, description="Compression factor of uploads (default: 1)")
    ] = 1.0
    weight_bits: Annotated[Count, Meta(description="Bits per weight sent (default: 16)")] | None = (
        None
    )
    per_round: (
        Annotated[Count, Meta(description="Sites sampled per round (default: all)")] | None
    ) = None
    quorum: (
        Annotated[Count, Meta(description="Site updates needed to complete a round (default: all)")]
        | None
    ) = None
    deadline_s: Annotated[
        float | None,
        Meta(description="Abandon a round that has no quorum after this time, such as 30m"),
    ] = None
    average_s: (
        Annotated[Delay, Meta(description="Seconds needed to average the models (default: 0)")]
        | None
    ) = None
    wan_gbps: (
        Annotated[
            float,
            Meta(
                gt=0,
                le=100_000,
                description="Bandwidth in Gbit/s to assume for sites without a link "
                "in the fleet file",
            ),
        ]
        | None
    ) = None
    wan_latency_ms: (
        Annotated[
            Delay,
            Meta(
                description="Latency in ms to assume for sites without a link in the "
                "fleet file (default: 0)"
            ),
        ]
        | None
    ) = None
    link_share: (
        Annotated[
            float,
            Meta(
                gt=0,
                le=1,
                description="Share of each link that is available to the job (default: 1)",
            ),
        ]
        | None
    ) = None


class FederatedAnswer(Struct, frozen=True, kw_only=True):
    """The estimate of a round, or why none succeeds, and the assumptions made."""

    fleet: str
    model: str
    model_bytes: float
    coordinator: str
    job: FederatedJob
    work: tuple[LocalWork, ...]
    ways: dict[SiteId, CoordinatorPath]
    round: Round | None
    synchronous: Synchronous | None
    levers: Levers | None
    reasons: tuple[Reason, ...]
    assumptions: tuple[str, ...]


def estimate_federated(fleet: OpenFleet, question: FederatedQuestion) -> FederatedAnswer:
    """Return the estimate of a federated round on the sites of a fleet."""
    spec = fleet.spec
    sites = chosen_sites(spec, question.sites)
    [coordinator] = chosen_sites(spec, (question.coordinator or most_linked(spec),))
    _check_names(question, sites)
    name, params = _model(fleet, question)
    model_bytes = params * (question.weight_bits or DEFAULT_WEIGHT_BITS) / 8
    work = local_work(fleet, sites, _row(question), question.step_s)
    assumed = None
    if question.wan_gbps is not None:
        assumed = (question.wan_gbps * 1e9 / 8, (question.wan_latency_ms or 0.0) / 1e3)
    share = 1.0 if question.link_share is None else question.link_share
    found = ways(spec, sites, coordinator, model_bytes, share=share, assumed=assumed)
    job = _job(question, work, found, model_bytes)
    answer = federated_round(job)
    unfit = tuple(_unfit(one, name) for one in work if not one.fits)
    found_round = answer if isinstance(answer, Round) and not unfit else None
    return FederatedAnswer(
        fleet=spec.name,
        model=name,
        model_bytes=model_bytes,
        coordinator=coordinator,
        job=job,
        work=tuple(work),
        ways=found,
        round=found_round,
        synchronous=found_round and synchronous(job, found_round.round_s),
        levers=found_round and levers(job, found_round),
        reasons=(*unfit, *(answer.reasons if isinstance(answer, Misfit) else ())),
        assumptions=tuple(_assumptions(question, work, found, coordinator)),
    )


def _check_names(question: FederatedQuestion, sites: list[SiteId]) -> None:
    options = {
        "--step-s": question.step_s,
        "--samples": question.samples,
        "--slow": question.slowdown,
    }
    for option, values in options.items():
        for name in values:
            if name not in sites:
                raise InputError(
                    "unknown-site",
                    f"`{option}` names `{name}`, which is not a site of this job",
                    f"sites: {', '.join(sites)}",
                    field=option,
                )
    bare = [site for site in sites if question.samples and site not in question.samples]
    if bare:
        raise InputError(
            "missing-samples",
            f"`--samples` is missing for {', '.join(bare)}",
            "set `--samples` for every site, or for none",
            field="--samples",
        )
    drawn = len(sites) if question.per_round is None else question.per_round
    quorum = drawn if question.quorum is None else question.quorum
    if not quorum <= drawn <= len(sites):
        raise InputError(
            "bad-quorum",
            f"impossible quorum: {quorum} of {drawn} sites per round, with {len(sites)} sites",
            "keep `--quorum` <= `--per-round` <= number of sites",
            field="--quorum",
        )


def _model(fleet: OpenFleet, question: FederatedQuestion) -> tuple[str, float]:
    if question.model is not None:
        preset = fleet.catalogue.models.get(question.model)
        return preset.name, float(question.params or preset.shape.params)
    if question.params is None:
        raise InputError(
            "missing-model",
            "no model given",
            "set `--model`, or `--params 11M` and `--step-s`",
            field="--model",
        )
    return f"{question.params:,.0f} parameters", question.params


def _row(question: FederatedQuestion) -> TrainRow | None:
    """Return the configuration shared by all sites; accelerators are filled in per site."""
    if question.model is None:
        return None
    return TrainRow(
        id="",
        model=question.model,
        accelerator="",
        gpus=1,
        seq=question.seq,
        global_batch=question.batch,
        precision=question.precision,
        stack=question.stack,
    )


def _job(
    question: FederatedQuestion,
    work: list[LocalWork],
    found: dict[SiteId, CoordinatorPath],
    model_bytes: float,
) -> FederatedJob:
    sites = tuple(
        FederatedSite(
            site=SiteId(one.site),
            step_s=one.step_s,
            samples=question.samples.get(one.site, 1.0),
            slowdown=question.slowdown.get(one.site, 1.0),
            bytes_per_s=found[SiteId(one.site)].bytes_per_s,
            latency_s=found[SiteId(one.site)].latency_s,
            usd_per_gb=found[SiteId(one.site)].usd_per_gb,
        )
        for one in work
    )
    drawn = question.per_round or len(sites)
    job = FederatedJob(
        sites=sites,
        model_bytes=model_bytes,
        local_steps=question.local_steps,
        per_round=drawn,
        quorum=question.quorum or drawn,
        compression=question.compression,
        deadline_s=question.deadline_s,
    )
    return job if question.average_s is None else replace(job, average_s=question.average_s)


def _unfit(one: LocalWork, model: str) -> Reason:
    fields = {"model": model, "accelerator": one.accelerator, "site": one.site}
    return Reason("does-not-fit", fields)


def _assumptions(
    question: FederatedQuestion,
    work: list[LocalWork],
    found: dict[SiteId, CoordinatorPath],
    coordinator: SiteId,
) -> list[str]:
    """Return the assumptions made, each with the option that overrides it."""
    lines: list[str] = []
    if question.coordinator is None:
        lines.append(
            f"{coordinator} is the coordinator because it has the most links (--coordinator)"
        )
    if question.weight_bits is None:
        lines.append(f"weights are sent in {DEFAULT_WEIGHT_BITS} bits (--weight-bits)")
    if not question.samples:
        lines.append("all sites have the same weight in the average (--samples)")
    if question.link_share is None:
        lines.append("the job gets the full rate of its links (--link-share)")
    used = [link for way in found.values() for link in way.over if link != "assumed"]
    if len(dict.fromkeys(used)) < len(used):
        lines.append("sites that share a link split it evenly")
    guessed = [site for site, way in found.items() if way.over == ("assumed",)]
    if guessed:
        delay = question.wan_latency_ms or 0.0
        lines.append(
            f"{', '.join(guessed)}: no link in the fleet file, so {question.wan_gbps:g} Gbit/s and "
            f"{delay:g} ms (--wan-gbps, --wan-latency-ms)"
        )
    if question.average_s is None:
        lines.append("averaging takes no time (--average-s)")
    estimated = [one for one in work if one.step_basis == "estimated"]
    if estimated:
        lines.append("local steps are estimated, not measured (--step-s SITE=SECONDS)")
    for note in dict.fromkeys(note for one in estimated for note in one.notes):
        where = [one.site for one in estimated if note in one.notes]
        lines.append(note if len(where) == len(estimated) else f"{', '.join(where)}: {note}")
    return lines
