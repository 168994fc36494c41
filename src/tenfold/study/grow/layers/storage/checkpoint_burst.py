"""Checkpoint writes: checkpoints of all jobs together against the write bandwidth of a tier.

Beyond that bandwidth checkpoints overlap.
"""

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
    unlimited,
)
from tenfold.study.grow.state import State


class CheckpointBurst(ComputedLayer):
    """What all jobs write to a tier, on average."""

    name = "checkpoint-burst"
    title = "Checkpoint writes"
    breaks = "jobs write more to a tier than its `write_gb_per_s`"
    cause_rank = 33
    grows_with = ("jobs", "nodes")
    grows_by = "jobs that write, until all GPUs are in use; the size of a checkpoint stays the same"
    needs = NEEDS_PROFILES
    fixed_by = "more storage shelves"

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return one constraint per tier written to; `storage-read` reports missing inputs."""
        for tier, draw in loaded_tiers(state):
            if draw.write_bytes_per_s:
                yield self._tier(state, axis, tier, draw)

    def _tier(self, state: State, axis: Axis, tier: Tier, draw: TierLoad) -> Constraint:
        running, there = running_growth(axis, draw.load), float(tier.write_bandwidth)

        def demand(factor: float) -> float:
            return draw.write_bytes_per_s * running(factor)

        def symptom(factor: float) -> str:
            want, writes = rate_bytes(demand(factor)), rate_bytes(there)
            return f"checkpoint writes to {tier.id}: {want} of {writes}"

        constraint = self.constraint(
            f"tier {tier.id}",
            demand,
            there,
            weakest(draw.evidence, tier_evidence(tier, "write_gb_per_s")),
            symptom,
            lambda multiple: [more_shelves(state, tier, multiple)],
        )
        return constraint.slowing_jobs(unlimited(tier))
