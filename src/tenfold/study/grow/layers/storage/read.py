"""Storage read: bytes per second that jobs read from a tier against its read bandwidth."""

from collections.abc import Iterable

from tenfold.model.fleet.spec import Tier
from tenfold.model.growth.growth import Axis
from tenfold.physics.growth.breaking import weakest
from tenfold.report.figures import rate_bytes
from tenfold.study.grow.history import running_growth
from tenfold.study.grow.layer import ComputedLayer, Constraint
from tenfold.study.grow.layers.storage.shelves import more_shelves
from tenfold.study.grow.layers.storage.tier_load import (
    NEEDS_PROFILES,
    TierLoad,
    loaded_tiers,
    tier_evidence,
    tier_loads,
    unlimited,
)
from tenfold.study.grow.state import State


class StorageRead(ComputedLayer):
    """What all jobs read from a tier, on average."""

    name = "storage-read"
    title = "Storage reads"
    breaks = "jobs read more from a tier than its `read_gb_per_s`"
    cause_rank = 31
    grows_with = ("jobs", "nodes")
    grows_by = "GPUs that read, until all are in use; the read rate of each GPU stays the same"
    missing_reported_with = ("job-size",)
    needs = NEEDS_PROFILES
    fixed_by = "more storage shelves"
    assumes = "every GPU reads training tokens at the rate of the expected model, 4 bytes per token"
    lead_times = ("storage",)

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return a constraint for each tier that jobs read from."""
        if not state.spec.tiers:
            return [self.unknown("tiers", "a `[[tier]]` that jobs read from")]
        if not state.once(tier_loads):
            return [self.unknown("tiers")]
        return [
            self._tier(state, axis, tier, draw)
            for tier, draw in loaded_tiers(state)
            if draw.read_bytes_per_s
        ]

    def _tier(self, state: State, axis: Axis, tier: Tier, draw: TierLoad) -> Constraint:
        running, there = running_growth(axis, draw.load), float(tier.read_bandwidth)

        def demand(factor: float) -> float:
            return draw.read_bytes_per_s * running(factor)

        def symptom(factor: float) -> str:
            want, reads = rate_bytes(demand(factor)), rate_bytes(there)
            return f"reads from {tier.id}: {want} of {reads}"

        constraint = self.constraint(
            f"tier {tier.id}",
            demand,
            there,
            weakest(draw.evidence, tier_evidence(tier, "read_gb_per_s")),
            symptom,
            lambda multiple: [more_shelves(state, tier, multiple)],
        )
        return constraint.slowing_jobs(unlimited(tier))
