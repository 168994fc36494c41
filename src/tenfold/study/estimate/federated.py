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

    local_steps: Annotated[Count, Meta(description="Local steps per site and round")]
    model: Annotated[str | None, Meta(description="Model name from the facts")] = None
    params: Annotated[
        float | None,
        Meta(description="Number of parameters, such as 11M; without --model, set --step-s too"),
    ] = None
    sites: Annotated[
        tuple[str, ...],
        Meta(description="Site that takes part; repeatable (default: all sites with accelerators)"),
    ] = ()
    coordinator: Annotated[
        str | None,
        Meta(description="Site that averages the models (default: the one with the most links)"),
    ] = None
    seq: Annotated[Count, Meta(description="Sequence length in tokens")] | None = None
    batch: Annotated[Count, Meta(description="Sequences per local step and site")] | None = None
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
        Meta(description="SITE=NUMBER: samples, the site's weight in the average"),
    ] = {}
    slowdown: Annotated[
        Mapping[str, float], Meta(description="SITE=FACTOR: straggler, this many times slower")
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
        Annotated[Count, Meta(description="Answers needed to close a round (default: all)")] | None
    ) = None
    deadline_s: Annotated[
        float | None,
        Meta(description="Abandon a round without quorum after this time, such as 30m"),
    ] = None
    average_s: (
        Annotated[Delay, Meta(description="Seconds to average the models (default: 0)")] | None
    ) = None
    wan_gbps: (
        Annotated[
            float,
            Meta(
                gt=0,
                le=100_000,
                description="Assumed rate for sites without a link in the fleet file",
            ),
        ]
        | None
    ) = None
    wan_latency_ms: (
        Annotated[Delay, Meta(description="Assumed latency for sites without a link (default: 0)")]
        | None
    ) = None
    link_share: (
        Annotated[
            float, Meta(gt=0, le=1, description="Share of each link that the job gets (default: 1)")
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


def estimate_federated(fleet: OpenFleet, asked: FederatedQuestion) -> FederatedAnswer:
    """Return the estimate of a federated round on the sites of a fleet."""
    spec = fleet.spec
    sites = chosen_sites(spec, asked.sites)
    [coordinator] = chosen_sites(spec, (asked.coordinator or most_linked(spec),))
    _check_names(asked, sites)
    name, params = _model(fleet, asked)
    model_bytes = params * (asked.weight_bits or DEFAULT_WEIGHT_BITS) / 8
    work = local_work(fleet, sites, _row(asked), asked.step_s)
    assumed = None
    if asked.wan_gbps is not None:
        assumed = (asked.wan_gbps * 1e9 / 8, (asked.wan_latency_ms or 0.0) / 1e3)
    share = 1.0 if asked.link_share is None else asked.link_share
    found = ways(spec, sites, coordinator, model_bytes, share=share, assumed=assumed)
    job = _job(asked, work, found, model_bytes)
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
        assumptions=tuple(_assumptions(asked, work, found, coordinator)),
    )


def _check_names(asked: FederatedQuestion, sites: list[SiteId]) -> None:
    options = {
        "--step-s": asked.step_s,
        "--samples": asked.samples,
        "--slow": asked.slowdown,
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
    bare = [site for site in sites if asked.samples and site not in asked.samples]
    if bare:
        raise InputError(
            "missing-samples",
            f"`--samples` is missing for {', '.join(bare)}",
            "set `--samples` for every site, or for none",
            field="--samples",
        )
    drawn = len(sites) if asked.per_round is None else asked.per_round
    quorum = drawn if asked.quorum is None else asked.quorum
    if not quorum <= drawn <= len(sites):
        raise InputError(
            "bad-quorum",
            f"impossible quorum: {quorum} of {drawn} sites per round, with {len(sites)} sites",
            "keep `--quorum` <= `--per-round` <= number of sites",
            field="--quorum",
        )


def _model(fleet: OpenFleet, asked: FederatedQuestion) -> tuple[str, float]:
    if asked.model is not None:
        preset = fleet.catalogue.models.get(asked.model)
        return preset.name, float(asked.params or preset.shape.params)
    if asked.params is None:
        raise InputError(
            "missing-model",
            "no model given",
            "set `--model`, or `--params 11M` and `--step-s`",
            field="--model",
        )
    return f"{asked.params:,.0f} parameters", asked.params


def _row(asked: FederatedQuestion) -> TrainRow | None:
    """Return the configuration shared by all sites; accelerators are filled in per site."""
    if asked.model is None:
        return None
    return TrainRow(
        id="",
        model=asked.model,
        accelerator="",
        gpus=1,
        seq=asked.seq,
        global_batch=asked.batch,
        precision=asked.precision,
        stack=asked.stack,
    )


def _job(
    asked: FederatedQuestion,
    work: list[LocalWork],
    found: dict[SiteId, CoordinatorPath],
    model_bytes: float,
) -> FederatedJob:
    sites = tuple(
        FederatedSite(
            site=SiteId(one.site),
            step_s=one.step_s,
            samples=asked.samples.get(one.site, 1.0),
            slowdown=asked.slowdown.get(one.site, 1.0),
            bytes_per_s=found[SiteId(one.site)].bytes_per_s,
            latency_s=found[SiteId(one.site)].latency_s,
            usd_per_gb=found[SiteId(one.site)].usd_per_gb,
        )
        for one in work
    )
    drawn = asked.per_round or len(sites)
    job = FederatedJob(
        sites=sites,
        model_bytes=model_bytes,
        local_steps=asked.local_steps,
        per_round=drawn,
        quorum=asked.quorum or drawn,
        compression=asked.compression,
        deadline_s=asked.deadline_s,
    )
    return job if asked.average_s is None else replace(job, average_s=asked.average_s)


def _unfit(one: LocalWork, model: str) -> Reason:
    fields = {"model": model, "accelerator": one.accelerator, "site": one.site}
    return Reason("does-not-fit", fields)


def _assumptions(
    asked: FederatedQuestion,
    work: list[LocalWork],
    found: dict[SiteId, CoordinatorPath],
    coordinator: SiteId,
) -> list[str]:
    """Return the assumptions made, each with the option that overrides it."""
    said: list[str] = []
    if asked.coordinator is None:
        said.append(f"{coordinator} coordinates, having the most links (--coordinator)")
    if asked.weight_bits is None:
        said.append(f"weights are sent in {DEFAULT_WEIGHT_BITS} bits (--weight-bits)")
    if not asked.samples:
        said.append("all sites have the same weight in the average (--samples)")
    if asked.link_share is None:
        said.append("the job gets the full rate of its links (--link-share)")
    used = [link for way in found.values() for link in way.over if link != "assumed"]
    if len(dict.fromkeys(used)) < len(used):
        said.append("sites that share a link split it evenly")
    guessed = [site for site, way in found.items() if way.over == ("assumed",)]
    if guessed:
        delay = asked.wan_latency_ms or 0.0
        said.append(
            f"{', '.join(guessed)}: no link in the fleet file, so {asked.wan_gbps:g} Gbit/s and "
            f"{delay:g} ms (--wan-gbps, --wan-latency-ms)"
        )
    if asked.average_s is None:
        said.append("averaging takes no time (--average-s)")
    estimated = [one for one in work if one.step_basis == "estimated"]
    if estimated:
        said.append("local steps are estimated, not measured (--step-s SITE=SECONDS)")
    for note in dict.fromkeys(note for one in estimated for note in one.notes):
        where = [one.site for one in estimated if note in one.notes]
        said.append(note if len(where) == len(estimated) else f"{', '.join(where)}: {note}")
    return said
