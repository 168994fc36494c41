"""The load a job puts on shared network, storage and power.

Rates are those of a job that runs without contention. Note that a share is the part of the step
that gets longer when the rate is not available: traffic that overlaps with compute has a rate and a
small share, and data that every step waits for has a share of 1.
"""

from msgspec import Struct

from tenfold.model.units import Bytes, Millis


class Traffic(Struct, frozen=True, kw_only=True, gc=False):
    """The load of one profile, per GPU where the name says so."""

    network_bytes_per_s_per_gpu: float = 0.0
    """Send rate of a GPU to the rest of its gang while it communicates."""
    network_share: float = 0.0
    """Fraction of a step without contention that is exposed communication between nodes."""
    read_bytes_per_s_per_gpu: float = 0.0
    """Read rate of a GPU from `tier`, averaged over a step."""
    read_share: float = 1.0
    """Fraction of a step that waits for late data. Prefetching hides latency, not a lasting lack of
bandwidth, so it is 1 unless most of the data is cached near the GPU."""
    tier: str = ""
    """Storage tier for reads and checkpoints; empty means no shared tier."""
    checkpoint_bytes: Bytes = Bytes(0)
    """Size of one checkpoint of the whole gang."""
    checkpoint_every_ms: Millis = Millis(0)
    """Checkpoint interval; 0 means no checkpoints."""
    power_w_per_gpu: float | None = None
    """Power of a GPU with its part of the node; None means that of a fully loaded node."""


class WorkProfile(Struct, frozen=True, kw_only=True, gc=False):
    """The load of jobs with this profile, and how efficiently they scale."""

    traffic: Traffic = Traffic()
    scaling: tuple[tuple[int, float], ...] = ()
    """(GPUs, efficiency at that size), by increasing GPUs; empty means always 1."""
