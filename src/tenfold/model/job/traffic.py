"""What a job draws from what it shares with its neighbours.

Rates are those of a job that runs undisturbed. What a reader would get wrong: a share is
the part of the step that grows when the rate is not granted, so traffic that hides under
compute has a rate and a small share, and data that every step needs has a share of 1.
"""

from msgspec import Struct

from tenfold.model.units import Bytes, Millis


class Traffic(Struct, frozen=True, kw_only=True, gc=False):
    """The draw of one profile, for each GPU of the gang where the name says so."""

    network_bytes_per_s_per_gpu: float = 0.0
    """What a GPU sends to the others of its gang while it communicates."""
    network_share: float = 0.0
    """Part of an undisturbed step that is communication between nodes, exposed."""
    read_bytes_per_s_per_gpu: float = 0.0
    """What a GPU reads from `tier`, on average over a step."""
    read_share: float = 1.0
    """Part of a step that waits when data is late. Reading ahead hides delay, not a
    lasting shortage, so it is 1 unless most of the data is kept near the GPU.
    """
    tier: str = ""
    """Name of the storage tier that is read from and saved to; empty means none that is shared."""
    checkpoint_bytes: Bytes = Bytes(0)
    """Size of one save by the whole gang."""
    checkpoint_every_ms: Millis = Millis(0)
    """Time between two saves; 0 means that the job does not save."""
    power_w_per_gpu: float | None = None
    """Draw of a GPU with its part of the node; None means that of a fully loaded node."""


class WorkProfile(Struct, frozen=True, kw_only=True, gc=False):
    """What a job with this profile draws, and how well it uses more GPUs."""

    traffic: Traffic = Traffic()
    scaling: tuple[tuple[int, float], ...] = ()
    """GPUs and the efficiency at that size, rising in GPUs; empty means always 1."""
