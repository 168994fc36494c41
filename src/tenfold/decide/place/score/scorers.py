"""Rules by which nodes are compared: best fit, and the published fragmentation gradient.

A rule gives every node a whole number, the smaller the better, and for a share the device
to use. Ties go to the node that stands first in the fleet, so the coarseness of the number
is part of the rule: it decides how often that order speaks.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from tenfold.decide.place.score.node_arrays import PLENTY, Floats, Ints, NodeArrays, NodeRequest
from tenfold.decide.place.score.usable import UsableCapacity, Weights
from tenfold.model.job.job import WHOLE

DOES_NOT_FIT = (1 << 31) - 1
"""The number of a node that cannot hold the ask."""

CPUS_MILLI_FULL, GPUS_MILLI_FULL = 128_000, 8 * WHOLE
"""A full node, to which best fit compares what is left."""

POPULAR_SHARE = 0.95
"""The gradient looks at the most popular asks that make up this share of all."""


class Scorer(Protocol):
    """A rule for one set of nodes."""

    @property
    def learns(self) -> bool:
        """Whether the mix of asks matters to it."""
        ...

    def learn(self, counts: Mapping[NodeRequest, int]) -> None:
        """Hear which asks come how often."""
        ...

    def score(self, request: NodeRequest, at: Ints) -> tuple[Ints, Ints]:
        """Return number and device for each of these nodes, all of an allowed type."""
        ...


class BestFit:
    """Leave as little as possible: half by CPUs, half by GPUs, in whole percents."""

    learns = False

    def __init__(self, rows: NodeArrays) -> None:
        self._rows = rows

    def learn(self, counts: Mapping[NodeRequest, int]) -> None:
        """Learn nothing: only what is left counts."""

    def score(self, request: NodeRequest, at: Ints) -> tuple[Ints, Ints]:
        """Compare by what would be left; a share goes to the device with the most left."""
        rows = self._rows
        left, cpus = rows.left[at], rows.cpus[at]
        cpus_left = np.where(cpus >= PLENTY, 0, cpus - request.cpus_milli) / CPUS_MILLI_FULL
        gpus_left = (left.sum(1) - request.gpus_milli) / GPUS_MILLI_FULL
        score = -np.floor((1 - (cpus_left * 0.5 + gpus_left * 0.5)) * 100)
        numbers = np.where(rows.fits(request, at), score.astype(np.int64), DOES_NOT_FIT)
        if 0 < request.milli < WHOLE:
            return numbers, left.argmax(1)
        return numbers, np.full(len(at), -1)


class FragmentationScorer(ABC):
    """What rules by spoilt worth have in common; they differ in weights, steps and ties."""

    learns = True

    def __init__(self, rows: NodeArrays) -> None:
        self._rows = rows
        self._usable = UsableCapacity(rows, self.weights({}))

    def learn(self, counts: Mapping[NodeRequest, int]) -> None:
        """Make the tables for this mix."""
        self._usable = UsableCapacity(self._rows, self.weights(counts))

    def score(self, request: NodeRequest, at: Ints) -> tuple[Ints, Ints]:
        """Compare by what the ask would spoil, here or on the best device here."""
        fits = self._rows.fits(request, at)
        if 0 < request.milli < WHOLE:
            lost, left = self._usable.lost_by_device(request, at, fits)
            numbers = np.where(left >= request.milli, self.number(lost), DOES_NOT_FIT)
            device = self.device(numbers, left)
            return np.where(fits, numbers[np.arange(len(at)), device], DOES_NOT_FIT), device
        lost = self._usable.lost(request, at, fits)
        return np.where(fits, self.number(lost), DOES_NOT_FIT), np.full(len(at), -1)

    @abstractmethod
    def weights(self, counts: Mapping[NodeRequest, int]) -> Weights:
        """Return what each ask of a mix counts for."""
        ...

    @abstractmethod
    def number(self, lost: Floats) -> Ints:
        """Return the steps in which spoilt worth is compared."""
        ...

    @abstractmethod
    def device(self, numbers: Ints, left: Ints) -> Ints:
        """Return the device of each node that a share goes to."""
        ...


class Gradient(FragmentationScorer):
    """Fragmentation gradient descent as published: popular asks by count, a rounded sigmoid."""

    def weights(self, counts: Mapping[NodeRequest, int]) -> Weights:
        """Weigh the most popular asks by their count; memory tells no two apart."""
        alike: dict[NodeRequest, int] = {}
        for request, count in counts.items():
            key = request._replace(
                memory_mib=0, accelerators=request.accelerators if request.gpus else ()
            )
            alike[key] = alike.get(key, 0) + count
        total, covered = sum(alike.values()), 0
        popular: list[tuple[NodeRequest, int]] = []
        for request, count in sorted(alike.items(), key=lambda one: (-one[1], one[0])):
            if covered >= POPULAR_SHARE * total:
                break
            popular.append((request, count))
            covered += count
        return [(request, count / covered) for request, count in popular]

    def number(self, lost: Floats) -> Ints:
        """Compare in hundredths of a sigmoid."""
        return -np.floor(100 / (1 + np.exp(lost / WHOLE))).astype(np.int64)

    def device(self, numbers: Ints, left: Ints) -> Ints:
        """Take the first device of the best number."""
        return numbers.argmin(1)
