"""Scores that compare nodes: best fit, and the published fragmentation gradient.

A scorer gives every node an integer, smaller is better, and for a share the device to use. Ties
go to the first node, so the resolution of the score is part of the rule: it decides how often
node order matters.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from tenfold.decide.place.score.node_arrays import PLENTY, Floats, Ints, NodeArrays, NodeRequest
from tenfold.decide.place.score.usable import UsableCapacity, Weights
from tenfold.model.job.job import WHOLE

DOES_NOT_FIT = (1 << 31) - 1
"""The score of a node that cannot hold the request."""

CPUS_MILLI_FULL, GPUS_MILLI_FULL = 128_000, 8 * WHOLE
"""A full node, to which best fit compares what is left."""

POPULAR_SHARE = 0.95
"""The gradient uses the most popular requests that make up this share of all."""


class Scorer(Protocol):
    """A score for one set of nodes."""

    @property
    def learns(self) -> bool:
        """Whether it depends on the mix of requests."""
        ...

    def learn(self, counts: Mapping[NodeRequest, int]) -> None:
        """Learn how often each request occurs."""
        ...

    def score(self, request: NodeRequest, at: Ints) -> tuple[Ints, Ints]:
        """Return score and device for each of these nodes, all of an allowed type."""
        ...


class BestFit:
    """Leave as little as possible: half by CPUs, half by GPUs, in whole percents."""

    learns = False

    def __init__(self, rows: NodeArrays) -> None:
        self._rows = rows

    def learn(self, counts: Mapping[NodeRequest, int]) -> None:
        """Learn nothing: only what is left counts."""

    def score(self, request: NodeRequest, at: Ints) -> tuple[Ints, Ints]:
        """Score by what would be left; a share goes to the device with the most left."""
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
    """The base of scores by lost usable capacity; they differ in weights, steps and ties."""

    learns = True

    def __init__(self, rows: NodeArrays) -> None:
        self._rows = rows
        self._usable = UsableCapacity(rows, self.weights({}))

    def learn(self, counts: Mapping[NodeRequest, int]) -> None:
        """Build the tables for this mix."""
        self._usable = UsableCapacity(self._rows, self.weights(counts))

    def score(self, request: NodeRequest, at: Ints) -> tuple[Ints, Ints]:
        """Score by the usable capacity lost on the node, or on its best device."""
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
        """Return the weight of each request of a mix."""
        ...

    @abstractmethod
    def number(self, lost: Floats) -> Ints:
        """Return lost capacity as integer steps."""
        ...

    @abstractmethod
    def device(self, numbers: Ints, left: Ints) -> Ints:
        """Return the device of each node for a share."""
        ...


class Gradient(FragmentationScorer):
    """Fragmentation gradient descent as published: popular requests by count, a rounded sigmoid."""

    def weights(self, counts: Mapping[NodeRequest, int]) -> Weights:
        """Weigh the most popular requests by count; memory is ignored."""
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
        """Take the first device with the best score."""
        return numbers.argmin(1)
