"""Checkpoint burst: saves of all jobs together against what a tier writes.

Beyond the tier's rate saves run into each other.
"""

from collections.abc import Iterable

from tenfold.model.fleet.spec import Tier
from tenfold.model.growth.growth import Axis, grown_by
from tenfold.physics.growth.law import weakest
from tenfold.report.figures import rate_bytes
from tenfold.study.grow.history import busier
from tenfold.study.grow.layer import FiguredLayer, Law
from tenfold.study.grow.layers.storage.draws import (
    NO_DRAW,
    Draw,
    drawn_tiers,
    tier_evidence,
    unlimited,
)
from tenfold.study.grow.layers.storage.shelves import more_shelves
from tenfold.study.grow.state import State


class CheckpointBurst(FiguredLayer):
    """What all jobs save to a tier, on average."""

    name = "checkpoint-burst"
    breaks = "jobs save more to a tier than its `write_gb_per_s`"
    cause_rank = 33
    grows_with = ("data", "jobs", "nodes")
    needs = NO_DRAW
    fixed_by = "shelves"

    def laws(self, state: State, axis: Axis) -> Iterable[Law]:
        """Return a law for each tier that jobs save to; reads ask for what is missing."""
        for tier, draw in drawn_tiers(state):
            if draw.write_bytes_per_s:
                yield self._tier(state, axis, tier, draw)

    def _tier(self, state: State, axis: Axis, tier: Tier, draw: Draw) -> Law:
        running, there = busier(axis, draw.load), float(tier.write_bandwidth)

        def wanted(factor: float) -> float:
            return draw.write_bytes_per_s * running(factor) * grown_by(axis, "data", factor)

        def seen(factor: float) -> str:
            want, writes = rate_bytes(wanted(factor)), rate_bytes(there)
            return f"saves want {want} of tier {tier.id}, which writes {writes}"

        law = self.law(
            f"tier {tier.id}",
            wanted,
            there,
            weakest(draw.evidence, tier_evidence(tier, "write_gb_per_s")),
            seen,
            lambda dose: [more_shelves(state, tier, dose)],
        )
        return law.slowing_runs(unlimited(tier))
