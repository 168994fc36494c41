"""Storage capacity: bytes of datasets against the capacity of their tier."""

from collections.abc import Iterable

from tenfold.model.fleet.spec import Tier
from tenfold.model.growth.growth import Axis, Dataset, grows_along
from tenfold.study.grow.layer import ComputedLayer, Constraint
from tenfold.study.grow.layers.storage.shelves import more_shelves
from tenfold.study.grow.layers.storage.tier_load import tier_evidence
from tenfold.study.grow.state import State


class StorageCapacity(ComputedLayer):
    """Data on a tier; each dataset grows along an axis of its own."""

    name = "storage-capacity"
    breaks = "the datasets on a tier need more than its `capacity_tb`"
    cause_rank = 30
    grows_with = ("data",)
    grows_by = "bytes of each dataset; one with `grows_with` grows along that axis instead"
    needs = "`[[dataset]]` in the grow file: what is stored on which tier"
    fixed_by = "more storage shelves"
    lead_times = ("storage",)

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return a constraint for each tier with a dataset."""
        tiers, datasets = state.spec.tiers, state.grow.datasets
        if tiers and not datasets:
            return [self.unknown("tiers")]
        held = dict.fromkeys(dataset.tier for dataset in datasets)
        return [self._tier(state, axis, tier) for tier in tiers if tier.id in held]

    def _tier(self, state: State, axis: Axis, tier: Tier) -> Constraint:
        held = [dataset for dataset in state.grow.datasets if dataset.tier == tier.id]

        def demand(factor: float) -> float:
            return sum(dataset.bytes * dataset_growth(dataset, axis, factor) for dataset in held)

        def symptom(factor: float) -> str:
            return f"{tier.id}: {demand(factor) / 1e12:,.0f} of {tier.capacity / 1e12:,.0f} TB used"

        return self.constraint(
            f"tier {tier.id}",
            demand,
            float(tier.capacity),
            tier_evidence(tier, "capacity_tb"),
            symptom,
            lambda multiple: [more_shelves(state, tier, multiple)],
        )


def dataset_growth(dataset: Dataset, axis: Axis, factor: float) -> float:
    """Return how much larger a dataset is at a factor; one with `all` grows along any axis."""
    along = dataset.grows_with
    return factor if along == "all" or grows_along(axis, along) else 1.0
