"""What is read from a file of timings."""

from msgspec import Struct

from tenfold.model.baseline import Measured

KEYS = ("gpus", "accelerator", "model", "precision", "global_batch", "stack")
"""What a run says about itself; a difference in any but `stack` makes it another workload."""
TIMES_MAX_S = 1e9


class Reading(Struct, frozen=True, kw_only=True):
    """A measurement, what the run said of itself, and what a reader should know."""

    measured: Measured
    keys: dict[str, str] = {}
    notes: tuple[str, ...] = ()
