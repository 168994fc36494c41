"""Whether the storage tier feeds the readers: aggregate demand against throughput, streams
against a knee.

A tier's rate is not a constant: it rises with streams until it is full, then falls as seeks,
locks and incast set in. Stalls follow from the shortfall after what prefetching hides.
"""

from dataclasses import dataclass

import numpy as np

from tenfold.physics.arrays import Floats


@dataclass(frozen=True, slots=True)
class Tier:
    """A storage tier as the readers see it."""

    read_bytes_per_s: Floats
    """Aggregate at its best number of streams."""
    stream_bytes_per_s: Floats
    """What one stream gets alone."""
    streams_knee: Floats
    """Streams beyond which the aggregate begins to fall."""
    derating: Floats
    """Loss exponent past the knee: 0 holds the rate, 0.5 halves it at four times the knee."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a job reads, all of its readers together."""

    readers: Floats
    streams_per_reader: Floats
    bytes_per_step: Floats
    step_s: Floats
    prefetch_share: Floats
    """Part of a read that runs beside compute."""


@dataclass(frozen=True, slots=True)
class Feed:
    """How a job's reading meets a tier."""

    demand_bytes_per_s: Floats
    supply_bytes_per_s: Floats
    stall_share: Floats
    """Share of the step time spent waiting for data."""
    bound: Floats
    """1 where the tier, not the accelerators, sets the pace."""


def tier_bytes_per_s(tier: Tier, streams: Floats) -> Floats:
    """Return what `streams` concurrent readers get together."""
    filling = np.minimum(streams * tier.stream_bytes_per_s, tier.read_bytes_per_s)
    crowding = np.maximum(streams / tier.streams_knee, 1.0) ** -tier.derating
    return filling * crowding


def feed(tier: Tier, reading: Reading, *, other_bytes_per_s: Floats | float = 0.0) -> Feed:
    """Return the stall of a job on a tier from which other jobs draw `other_bytes_per_s`."""
    streams = reading.readers * reading.streams_per_reader
    supply = np.maximum(tier_bytes_per_s(tier, streams) - other_bytes_per_s, 1.0)
    step_s, beside = reading.step_s, reading.prefetch_share
    read_s = reading.bytes_per_step / supply
    # What cannot be prefetched is waited for even by a tier that is fast enough.
    exposed_s = np.maximum(read_s - beside * step_s, (1.0 - beside) * read_s)
    exposed_s = np.maximum(exposed_s, 0.0)
    return Feed(
        demand_bytes_per_s=reading.bytes_per_step / step_s,
        supply_bytes_per_s=supply,
        stall_share=exposed_s / (step_s + exposed_s),
        bound=(read_s > step_s).astype(float),
    )


def readers_max(tier: Tier, bytes_per_s_per_reader: Floats, streams_per_reader: Floats) -> Floats:
    """Return how many readers a tier feeds without a stall (its ceiling in a fleet design)."""
    alone = tier.read_bytes_per_s / bytes_per_s_per_reader
    knee_readers = tier.streams_knee / streams_per_reader
    # Past the knee supply falls as n^-d while demand grows as n: the crossing has a closed form.
    crowded = (alone * knee_readers**tier.derating) ** (1.0 / (1.0 + tier.derating))
    full = np.where(alone > knee_readers, crowded, alone)
    slow_stream = bytes_per_s_per_reader > streams_per_reader * tier.stream_bytes_per_s
    return np.where(slow_stream, 0.0, np.floor(full))
