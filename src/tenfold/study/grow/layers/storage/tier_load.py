"""Load on storage tiers, from job profiles and the history, as a mean over its time span.

Peaks are left to simulation. Without profiles every GPU is assumed to read for the expected model.
The GPUs limit how many jobs run: once the fleet is full, further jobs wait and read nothing.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from tenfold.model.fleet.spec import FleetSpec, Tier
from tenfold.model.job.job import Job
from tenfold.model.units import SECOND, BytesPerSecond
from tenfold.physics.growth.breaking import ASSUMED, DEFAULTED, STATED, Evidence
from tenfold.study.ceiling.storage import feed_rate, feeding_tier
from tenfold.study.grow.history import gpus_of, span_s
from tenfold.study.grow.layer import Unlimited
from tenfold.study.grow.state import State

NEEDS_PROFILES = "`--profiles` with a job history, or `model` under `[expects]`"
LIMITLESS = BytesPerSecond(10**18)
"""Bandwidth of a relaxed tier: more than any fleet uses."""


class TierLoad(Struct, frozen=True, kw_only=True):
    """Load of jobs on one tier today, and how full the fleet is meanwhile."""

    read_bytes_per_s: float = 0.0
    write_bytes_per_s: float = 0.0
    readers: float = 0.0
    """GPUs that read, on average."""
    load: float = 1.0
    """GPUs in use over GPUs available."""
    evidence: Evidence


def tier_loads(state: State) -> dict[str, TierLoad]:
    """Return the load on each tier: from the history, else from the expected model."""
    profiles = state.inputs.profiles
    known = [job for job in state.inputs.jobs if job.profile in profiles and job.duration_ms]
    if known:
        return _history_draws(state, known)
    design = state.expected.design
    if design is None:
        return {}
    tier, rate = feeding_tier(design), feed_rate(design)
    if tier is None or rate is None:
        return {}
    gpus = float(design.gpus_today)
    return {tier.id: TierLoad(read_bytes_per_s=rate[0] * gpus, readers=gpus, evidence=ASSUMED)}


def _history_draws(state: State, known: Sequence[Job]) -> dict[str, TierLoad]:
    span = span_s(known)
    gpus = max(1, state.spec.gpus)
    load = sum(gpus_of(job) * _runs_s(job) for job in state.inputs.jobs) / (gpus * span)
    draws: dict[str, TierLoad] = {}
    for job in known:
        traffic = state.inputs.profiles[job.profile].traffic
        if not traffic.tier:
            continue
        share = _runs_s(job) / span
        every_s = traffic.checkpoint_every_ms / SECOND
        saves = traffic.checkpoint_bytes / every_s if every_s else 0.0
        reads = bool(traffic.read_bytes_per_s_per_gpu)
        old = draws.get(traffic.tier, TierLoad(load=load, evidence=STATED))
        draws[traffic.tier] = TierLoad(
            read_bytes_per_s=old.read_bytes_per_s
            + traffic.read_bytes_per_s_per_gpu * gpus_of(job) * share,
            write_bytes_per_s=old.write_bytes_per_s + saves * share,
            readers=old.readers + (gpus_of(job) * share if reads else 0.0),
            load=load,
            evidence=STATED,
        )
    return draws


def _runs_s(job: Job) -> float:
    return (job.duration_ms or 0) / SECOND


def loaded_tiers(state: State) -> list[tuple[Tier, TierLoad]]:
    """Return the tiers with a known load, each with that load."""
    draws = state.once(tier_loads)
    return [(tier, draws[tier.id]) for tier in state.spec.tiers if tier.id in draws]


def tier_evidence(tier: Tier, key: str) -> Evidence:
    """Return how well a figure of a tier is known, by its key in the fleet file."""
    return DEFAULTED if key in tier.defaulted else STATED


def unlimited(tier: Tier) -> Unlimited:
    """Return a change of the fleet after which this tier slows no job down."""

    def relaxed(spec: FleetSpec) -> FleetSpec:
        tiers = tuple(
            replace(one, read_bandwidth=LIMITLESS, write_bandwidth=LIMITLESS)
            if one.id == tier.id
            else one
            for one in spec.tiers
        )
        return replace(spec, tiers=tiers)

    return relaxed
