"""How long a round of federated training takes, what it sends, and what would shorten it.

A site's time is download, local steps and upload. A round closes when its quorum has
answered; with randomly sampled sites, figures are exact means over all samples. Note that
the same number of steps is not the same progress: local steps make sites drift apart, and
no figure here says how many rounds a model needs.
"""

from collections.abc import Sequence
from math import comb

from msgspec import Struct
from msgspec.structs import replace

from tenfold.model.federated import FederatedJob, FederatedSite
from tenfold.model.reason import Misfit, Reason

DAY_S = 86_400.0
GB = 1e9


class SiteTime(Struct, frozen=True, kw_only=True):
    """One site's share of a round; the parts add up to `total_s`."""

    site: str
    download_s: float
    compute_s: float
    upload_s: float
    total_s: float
    weight: float
    """What the site counts in the average, of 1 for all."""
    closes: float
    """How often this site is the one that closes a round."""


class RoundTime(Struct, frozen=True, kw_only=True):
    """The parts of a round in seconds; they add up to its time."""

    download_s: float
    compute_s: float
    upload_s: float
    average_s: float
    abandoned_s: float
    """Waiting in rounds that never had their quorum."""


class Round(Struct, frozen=True, kw_only=True):
    """A round: its time and parts, its traffic, and how often it succeeds."""

    round_s: float
    breakdown_s: RoundTime
    sites: tuple[SiteTime, ...]
    succeeds: float
    rounds_per_day: float
    steps_per_day: float
    """Local steps of a site whose update was taken in, on average."""
    wan_bytes_per_round: float
    wan_bytes_per_day: float
    egress_usd_per_day: float


class Synchronous(Struct, frozen=True, kw_only=True):
    """The same steps with gradients exchanged over the same links after each."""

    step_s: float
    exchange_s: float
    """Of `step_s`: what crosses between sites."""
    round_steps_s: float
    """As many steps as a round has."""
    wan_bytes: float
    slower: float
    """How many times longer than the round."""


def federated_round(job: FederatedJob) -> Round | Misfit:
    """Return what a round takes, or why none can succeed."""
    times = sorted((_site_time(job, site) for site in job.sites), key=lambda one: one.total_s)
    chances = _closing_chances(len(times), job.per_round, job.quorum)
    deadline = float("inf") if job.deadline_s is None else job.deadline_s
    in_time = [
        chance if one.total_s + job.average_s <= deadline else 0.0
        for one, chance in zip(times, chances, strict=True)
    ]
    succeeds = min(1.0, sum(in_time))
    if succeeds <= 0:
        return _never(job, times, deadline)
    closing = list(zip(times, in_time, strict=True))
    parts = RoundTime(
        download_s=sum(one.download_s * chance for one, chance in closing),
        compute_s=sum(one.compute_s * chance for one, chance in closing),
        upload_s=sum(one.upload_s * chance for one, chance in closing),
        average_s=job.average_s * succeeds,
        abandoned_s=0.0 if succeeds >= 1 - 1e-12 else (1 - succeeds) * deadline,
    )
    round_s = sum(getattr(parts, name) for name in RoundTime.__struct_fields__)
    rounds = DAY_S / round_s
    share = job.per_round / len(job.sites)
    sent = [_wan_bytes(job, site) for site in job.sites]
    paid = sum(one * site.usd_per_gb / GB for one, site in zip(sent, job.sites, strict=True))
    return Round(
        round_s=round_s,
        breakdown_s=parts,
        sites=_named(job, times, in_time),
        succeeds=succeeds,
        rounds_per_day=rounds * succeeds,
        steps_per_day=rounds * succeeds * job.local_steps,
        wan_bytes_per_round=share * sum(sent),
        wan_bytes_per_day=share * sum(sent) * rounds,
        egress_usd_per_day=share * paid * rounds,
    )


def synchronous(job: FederatedJob, round_s: float) -> Synchronous:
    """Return what one job over all sites takes that exchanges gradients after each step.

    Gradients are as large as the model, uncompressed, and go up to the coordinator and
    back: the same links in the same way, so that only the number of exchanges differs.
    """
    plain = replace(job, compression=1.0)
    exchanges = [_site_time(plain, site) for site in job.sites]
    exchange_s = max(one.download_s + one.upload_s for one in exchanges)
    step_s = max(site.step_s * site.slowdown for site in job.sites) + exchange_s
    return Synchronous(
        step_s=step_s,
        exchange_s=exchange_s,
        round_steps_s=step_s * job.local_steps,
        wan_bytes=sum(_wan_bytes(plain, site) for site in job.sites) * job.local_steps,
        slower=step_s * job.local_steps / round_s,
    )


def _site_time(job: FederatedJob, site: FederatedSite) -> SiteTime:
    down = _transfer_s(site, job.model_bytes)
    up = _transfer_s(site, job.model_bytes / job.compression)
    compute = job.local_steps * site.step_s * site.slowdown
    return SiteTime(
        site=site.site,
        download_s=down,
        compute_s=compute,
        upload_s=up,
        total_s=down + compute + up,
        weight=0.0,
        closes=0.0,
    )


def _transfer_s(site: FederatedSite, payload: float) -> float:
    if site.bytes_per_s is None:
        return 0.0
    return site.latency_s + payload / site.bytes_per_s


def _wan_bytes(job: FederatedJob, site: FederatedSite) -> float:
    """Return what crosses between sites for one site in one round, both ways."""
    if site.bytes_per_s is None:
        return 0.0
    return job.model_bytes * (1 + 1 / job.compression)


def _closing_chances(sites: int, drawn: int, quorum: int) -> list[float]:
    """Return how often each site, fastest first, is the one that completes the quorum.

    Site i does where quorum - 1 of the i quicker ones are drawn, and the rest of the draw
    is slower.
    """
    assert 1 <= quorum <= drawn <= sites, "a quorum is of those drawn, and these of all"
    return [
        comb(at, quorum - 1) * comb(sites - at - 1, drawn - quorum) / comb(sites, drawn)
        for at in range(sites)
    ]


def _named(
    job: FederatedJob, times: Sequence[SiteTime], chances: Sequence[float]
) -> tuple[SiteTime, ...]:
    """Return the sites in the order of the job, with what each weighs and how often it closes."""
    samples = sum(site.samples for site in job.sites)
    found = {
        one.site: replace(one, closes=chance) for one, chance in zip(times, chances, strict=True)
    }
    return tuple(replace(found[site.site], weight=site.samples / samples) for site in job.sites)


def _never(job: FederatedJob, times: Sequence[SiteTime], deadline: float) -> Misfit:
    needed = times[job.quorum - 1]
    fields = {
        "quorum": job.quorum,
        "per_round": job.per_round,
        "deadline_s": float(deadline),
        "site": needed.site,
        "needed_s": float(needed.total_s + job.average_s),
    }
    return Misfit((Reason("deadline-before-quorum", fields),))
