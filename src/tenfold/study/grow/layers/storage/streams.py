"""Storage streams: GPUs that read a tier at once against the streams that it takes.

One stream a GPU is an assumption, so this law is one too.
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
    breaks = "more GPUs read a tier at once than its `streams`"
    cause_rank = 32
    grows_with = ("jobs", "nodes")
    needs = NEEDS_PROFILES
    fixed_by = "shelves"
    assumes = "every GPU that reads keeps one stream open"
    lead_times = ("storage",)

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return a law for each tier that jobs read from; reads ask for what is missing."""
        for tier, draw in loaded_tiers(state):
            if draw.read_bytes_per_s:
                yield self._tier(state, axis, tier, draw)

    def _tier(self, state: State, axis: Axis, tier: Tier, draw: TierLoad) -> Constraint:
        running = running_growth(axis, draw.load)

        def demand(factor: float) -> float:
            return draw.readers * USUAL_STREAMS_PER_GPU * running(factor)

        def symptom(factor: float) -> str:
            takes = f"{tier.streams:,}"
            return f"{demand(factor):,.0f} streams read tier {tier.id}, which takes {takes}"

        return self.constraint(
            f"tier {tier.id}",
            demand,
            float(tier.streams),
            ASSUMED,
            symptom,
            lambda multiple: [more_shelves(state, tier, multiple)],
        )
