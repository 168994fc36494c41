"""Ceilings of storage: bandwidth and streams of the tier that jobs read from."""

import numpy as np

from tenfold.model.errors import InputError
from tenfold.model.fleet.spec import Tier
from tenfold.physics.operations.datafeed import Reading, feed, readers_max, tier_bytes_per_s
from tenfold.physics.operations.datafeed import Tier as TierRates
from tenfold.report.figures import count, rate_bytes
from tenfold.study.ceiling.design import Design
from tenfold.study.ceiling.layers import CeilingGrade, LayerBuilder, LayerCeiling, worst

BYTES_PER_TOKEN = 4.0
"""Tokens stored as 32-bit numbers; an assumption, and far too low for images or video."""
USUAL_STREAMS_PER_GPU = 1.0
"""One reader a GPU: 1,024 data-parallel GPUs are 1,024 concurrent reads; an assumption."""
PROCESS_BYTES_PER_S = 2.79e9
"""What one reading process gets, measured on one H200 node with local NVMe."""
STRIPE_DRIVES = 8
"""Drives that one read is spread over: the data part of the 8 of 11 code that tiers use."""
CROWDING = 0.5
"""Loss exponent beyond a tier's streams: four times as many halve its rate; an assumption."""
GPUS_RANKED_MAX = 1_000_000
"""Ceilings beyond this are not ranked: no fabric is that large."""
NO_TIER = "no storage tier at site `{site}`"
SLOW_ROLES = ("cold", "memory")
"""Tape and archives are not read in training; memory holds caches."""


def storage_layers(design: Design) -> list[LayerCeiling]:
    """Return the read bandwidth and the streams of the tier that jobs read from."""
    tier = feeding_tier(design)
    if tier is None:
        text = NO_TIER.format(site=design.site)
        names = ("storage-read", "storage-streams")
        return [LayerBuilder(name, "", design.gpus_today).unknown(text) for name in names]
    return [_read(design, tier), _streams(design, tier)]


def feeding_tier(design: Design) -> Tier | None:
    """Return the tier given, else the fastest one that training reads from."""
    required = design.question.tier
    if required is not None:
        named = next((tier for tier in design.tiers if tier.id == required), None)
        if named is None:
            known = ", ".join(f"`{tier.id}`" for tier in design.tiers)
            raise InputError(
                "unknown-tier",
                f"site `{design.site}` has no tier `{required}`",
                f"use one of {known}"
                if known
                else "it has no tiers: leave out `--tier`, or add a `[[tier]]` at this site",
            )
        return named
    quick = [tier for tier in design.tiers if tier.role not in SLOW_ROLES]
    return max(quick or design.tiers, key=lambda tier: tier.read_bandwidth, default=None)


def feed_rate(design: Design) -> tuple[float, CeilingGrade] | None:
    """Return bytes per second that a GPU reads, and how well that is known."""
    stated = design.question.feed_bytes_per_s_per_gpu
    if stated is not None:
        return stated, "stated"
    points = design.curve.points if design.curve else ()
    if not points:
        return None
    near = min(points, key=lambda point: abs(point.gpus - design.gpus_today))
    return near.tokens_per_s / near.gpus * BYTES_PER_TOKEN, "assumption"


def _read(design: Design, tier: Tier) -> LayerCeiling:
    name = LayerBuilder("storage-read", f"tier {tier.id} reads", design.gpus_today)
    known = feed_rate(design)
    if known is None:
        return name.unknown("no read rate; set `--feed-mb-per-s-per-gpu` or a model")
    rate, grade = known
    each = np.asarray(rate)
    rates, streams = tier_rates(design, tier), np.asarray(streams_per_gpu(design))
    ceiling = int(readers_max(rates, each, streams))
    text = (
        f"{tier.read_bandwidth / 1e9:,.0f} GB/s is enough for {count(ceiling, 'GPU')} at "
        f"{_rate_text(rate)} each"
    )
    if ceiling == 0:
        text = f"one GPU needs {_rate_text(rate)}, more than its streams get from tier {tier.id}"
        return name.binds(0, worst(grade, _axis(tier, "read_gb_per_s")), text)
    if ceiling > GPUS_RANKED_MAX:
        text = f"{_rate_text(rate)} per GPU does not saturate tier {tier.id} at any size"
        return name.free(worst(grade, _axis(tier, "read_gb_per_s")), text)
    crowded = ceiling * float(streams) > tier.streams
    if crowded:
        grade = "assumption"
        text = (
            f"past {tier.streams:,} streams the tier slows down: at {count(ceiling, 'GPU')} it "
            f"delivers {rate_bytes(ceiling * rate)}, {_rate_text(rate)} each"
        )
    loss = _stall(rates, 2.0 * ceiling, rate, float(streams))
    return name.binds(ceiling, worst(grade, _axis(tier, "read_gb_per_s")), text, loss)


def _rate_text(rate: float) -> str:
    return f"{rate / 1e6:,.1f} MB/s" if rate >= 1e5 else f"{rate / 1e3:,.2f} kB/s"


def _stall(rates: TierRates, readers: float, rate: float, streams: float) -> float:
    reading = Reading(
        readers=np.asarray(readers),
        streams_per_reader=np.asarray(streams),
        bytes_per_step=np.asarray(readers * rate),
        step_s=np.asarray(1.0),
        prefetch_share=np.asarray(1.0),
    )
    return float(feed(rates, reading).stall_share)


def _streams(design: Design, tier: Tier) -> LayerCeiling:
    name = LayerBuilder("storage-streams", f"tier {tier.id} streams", design.gpus_today)
    each = streams_per_gpu(design)
    ceiling = int(tier.streams / each)
    grade: CeilingGrade = "assumption" if design.question.streams_per_gpu is None else "stated"
    text = f"{tier.streams:,} concurrent streams, {each:g} per GPU"
    return name.binds(ceiling, worst(grade, _axis(tier, "streams")), text)


def streams_per_gpu(design: Design) -> float:
    """Return concurrent reads of one GPU."""
    return design.question.streams_per_gpu or USUAL_STREAMS_PER_GPU


def tier_rates(design: Design, tier: Tier) -> TierRates:
    """Return a tier as seen by readers: one stream gets at most the rate of one stripe."""
    catalogue = design.fleet.catalogue
    medium = catalogue.media.find(catalogue.tiers.get(tier.tier_class).medium)
    stripe = STRIPE_DRIVES * medium.read_gb_per_s * 1e9 if medium else PROCESS_BYTES_PER_S
    alone = min(stripe, PROCESS_BYTES_PER_S, float(tier.read_bandwidth))
    return TierRates(
        read_bytes_per_s=np.asarray(float(tier.read_bandwidth)),
        stream_bytes_per_s=np.asarray(alone),
        streams_knee=np.asarray(float(tier.streams)),
        derating=np.asarray(CROWDING),
    )


def supplied_bytes_per_s(design: Design, tier: Tier, gpus: int) -> float:
    """Return what a tier supplies to a job of this size."""
    streams = np.asarray(gpus * streams_per_gpu(design))
    return float(tier_bytes_per_s(tier_rates(design, tier), streams))


def _axis(tier: Tier, axis: str) -> CeilingGrade:
    return "supposed" if axis in tier.defaulted else "stated"
