"""The default score: lose as little usable capacity as possible for the recent job mix.

It differs from the published gradient in four ways. Requests that few nodes can hold weigh more;
small requests weigh less for their size than large ones, since they fit anywhere in the end; the
mix is learned over time from a weak prior; and losses are compared in even steps, so that a
large loss is distinguished from a larger one.
"""

from collections.abc import Mapping

import numpy as np

from tenfold.decide.place.score.node_arrays import PLENTY, Floats, Ints, NodeArrays, NodeRequest
from tenfold.decide.place.score.scorers import FragmentationScorer
from tenfold.decide.place.score.usable import Weights
from tenfold.model.job.job import WHOLE

SCARCITY_POWER = 1.0
SCARCITY_MOST = 30.0
SIZE_POWER = -0.5
STEP_MILLI = 40
"""Losses that differ by less are equal; then node order decides."""

PRIOR_JOBS = 16
PRIOR = ((1, 500, 0.2), (1, WHOLE, 0.5), (2, WHOLE, 0.1), (4, WHOLE, 0.1), (8, WHOLE, 0.1))
"""GPUs, thousandths of each, and share of jobs, before any has been seen."""
PRIOR_CPUS = 0.75
"""CPUs of a prior request relative to those that come with its GPUs."""


class Fragmentation(FragmentationScorer):
    """The score of placement `tenfold`."""

    def __init__(self, rows: NodeArrays) -> None:
        self._scarcities: dict[NodeRequest, float] = {}
        self._prior = _prior(rows)
        super().__init__(rows)

    def weights(self, counts: Mapping[NodeRequest, int]) -> Weights:
        """Weigh requests by count, by how few nodes can hold them, and by size."""
        total = sum(counts.values()) + PRIOR_JOBS
        weights: list[tuple[NodeRequest, float]] = []
        for request, count in counts.items():
            if request.gpus:
                size = (request.gpus_milli / WHOLE) ** SIZE_POWER
                weights.append((request, count * self._scarcity(request) * size / total))
        weights += [(request, share * PRIOR_JOBS / total) for request, share in self._prior]
        return weights

    def number(self, lost: Floats) -> Ints:
        """Compare in even steps."""
        return np.rint(lost / STEP_MILLI).astype(np.int64)

    def device(self, numbers: Ints, left: Ints) -> Ints:
        """Choose the best score; among equals the fullest device, then the first."""
        return (numbers * (WHOLE + 1) + left).argmin(1)

    def _scarcity(self, request: NodeRequest) -> float:
        """Return how much more a request weighs because few nodes can hold it."""
        scarcity = self._scarcities.get(request)
        if scarcity is None:
            able = self._rows.gpus_for(request)
            scarcity = (self._rows.gpus_total / able) ** SCARCITY_POWER if able else 0.0
            scarcity = self._scarcities[request] = min(scarcity, SCARCITY_MOST)
        return scarcity


def _prior(rows: NodeArrays) -> list[tuple[NodeRequest, float]]:
    """Return the requests assumed at the start, with the CPUs that this fleet has for them."""
    counted = (rows.gpus_all > 0) & (rows.cpus_all < PLENTY)
    cpus_milli = int(rows.cpus_all[counted].sum()) // max(1, rows.gpus_total)
    return [
        (
            NodeRequest(int(cpus_milli * gpus * milli / WHOLE * PRIOR_CPUS), 0, gpus, milli, ()),
            share,
        )
        for gpus, milli, share in PRIOR
    ]
