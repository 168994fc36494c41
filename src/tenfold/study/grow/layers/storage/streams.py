"""Storage streams: GPUs that read a tier at once against the streams that it takes.

One stream a GPU is an assumption, so this law is one too.
"""

from collections.abc import Iterable

from tenfold.model.fleet.spec import Tier
from tenfold.model.growth.growth import Axis
from tenfold.physics.growth.law import ASSUMED
from tenfold.study.ceiling.storage import USUAL_STREAMS_PER_GPU
from tenfold.study.grow.history import busier
from tenfold.study.grow.layer import FiguredLayer, Law
from tenfold.study.grow.layers.storage.draws import NO_DRAW, Draw, drawn_tiers
from tenfold.study.grow.layers.storage.shelves import more_shelves
from tenfold.study.grow.state import State


class StorageStreams(FiguredLayer):
    """Streams of all GPUs that read, on average."""

    name = "storage-streams"
    breaks = "more GPUs read a tier at once than its `streams`"
    cause_rank = 32
    grows_with = ("jobs", "nodes")
    needs = NO_DRAW
    fixed_by = "shelves"
    assumes = "every GPU that reads keeps one stream open"
    lead_times = ("storage",)

    def laws(self, state: State, axis: Axis) -> Iterable[Law]:
        """Return a law for each tier that jobs read from; reads ask for what is missing."""
        for tier, draw in drawn_tiers(state):
            if draw.read_bytes_per_s:
                yield self._tier(state, axis, tier, draw)

    def _tier(self, state: State, axis: Axis, tier: Tier, draw: Draw) -> Law:
        running = busier(axis, draw.load)

        def wanted(factor: float) -> float:
            return draw.readers * USUAL_STREAMS_PER_GPU * running(factor)

        def seen(factor: float) -> str:
            takes = f"{tier.streams:,}"
            return f"{wanted(factor):,.0f} streams read tier {tier.id}, which takes {takes}"

        return self.law(
            f"tier {tier.id}",
            wanted,
            float(tier.streams),
            ASSUMED,
            seen,
            lambda dose: [more_shelves(state, tier, dose)],
        )
