"""Storage streams: GPUs that read a tier at once against the streams it supports.

One stream per GPU is an assumption, and so is this constraint.
"""

from collections.abc import Iterable

from tenfold.model.fleet.spec import Tier
from tenfold.model.growth.growth import Axis
from tenfold.physics.growth.breaking import ASSUMED
from tenfold.study.ceiling.storage import USUAL_STREAMS_PER_GPU
from tenfold.study.grow.history import running_growth
from tenfold.study.grow.layer import ComputedLayer, Constraint
from tenfold.study.grow.layers.storage.shelves import more_shelves
from tenfold.study.grow.layers.storage.tier_load import NEEDS_PROFILES, TierLoad, loaded_tiers
from tenfold.study.grow.state import State


class StorageStreams(ComputedLayer):
    """Streams of all GPUs that read, on average."""

    name = "storage-streams"
    breaks = "more GPUs read from a tier at the same time than it has `streams`"
    cause_rank = 32
    grows_with = ("jobs", "nodes")
    grows_by = "GPUs that read, until all are in use"
    needs = NEEDS_PROFILES
    fixed_by = "more storage shelves"
    assumes = "one open stream per reading GPU"
    lead_times = ("storage",)

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return a constraint for each tier read by jobs; `storage-read` reports missing inputs."""
        for tier, draw in loaded_tiers(state):
            if draw.read_bytes_per_s:
                yield self._tier(state, axis, tier, draw)

    def _tier(self, state: State, axis: Axis, tier: Tier, draw: TierLoad) -> Constraint:
        running = running_growth(axis, draw.load)

        def demand(factor: float) -> float:
            return draw.readers * USUAL_STREAMS_PER_GPU * running(factor)

        def symptom(factor: float) -> str:
            return f"read streams on {tier.id}: {demand(factor):,.0f} of {tier.streams:,}"

        return self.constraint(
            f"tier {tier.id}",
            demand,
            float(tier.streams),
            ASSUMED,
            symptom,
            lambda multiple: [more_shelves(state, tier, multiple)],
        )
