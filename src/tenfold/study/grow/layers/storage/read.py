"""Storage read: bytes a second that jobs read from a tier against what it reads out."""

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
    draws_of,
    tier_evidence,
    unlimited,
)
from tenfold.study.grow.layers.storage.shelves import more_shelves
from tenfold.study.grow.state import State


class StorageRead(FiguredLayer):
    """What all jobs read from a tier, on average."""

    name = "storage-read"
    breaks = "jobs read more from a tier than its `read_gb_per_s`"
    cause_rank = 31
    grows_with = ("data", "jobs", "nodes")
    asked_with = ("job-size",)
    needs = NO_DRAW
    fixed_by = "shelves"
    assumes = "every GPU reads the tokens of the model expected, at 4 bytes each"
    lead_times = ("storage",)

    def laws(self, state: State, axis: Axis) -> Iterable[Law]:
        """Return a law for each tier that jobs read from."""
        if not state.spec.tiers:
            return [self.unknown("tiers", "a tier that jobs read from")]
        if not state.once(draws_of):
            return [self.unknown("tiers")]
        return [
            self._tier(state, axis, tier, draw)
            for tier, draw in drawn_tiers(state)
            if draw.read_bytes_per_s
        ]

    def _tier(self, state: State, axis: Axis, tier: Tier, draw: Draw) -> Law:
        running, there = busier(axis, draw.load), float(tier.read_bandwidth)

        def wanted(factor: float) -> float:
            return draw.read_bytes_per_s * running(factor) * grown_by(axis, "data", factor)

        def seen(factor: float) -> str:
            want, reads = rate_bytes(wanted(factor)), rate_bytes(there)
            return f"jobs want {want} of tier {tier.id}, which reads {reads}"

        law = self.law(
            f"tier {tier.id}",
            wanted,
            there,
            weakest(draw.evidence, tier_evidence(tier, "read_gb_per_s")),
            seen,
            lambda dose: [more_shelves(state, tier, dose)],
        )
        return law.slowing_runs(unlimited(tier))
