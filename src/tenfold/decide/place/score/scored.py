"""Nodes chosen by score: all nodes that fit are compared.

For whole GPUs the tightest node is enough, and bitsets find it quickly. Once a job that requests
shares, CPUs or memory is running or in the mix, every single-node job is placed by score. Scores
are cached by shape, and a log of changed nodes tells which to recompute. All of it can be
rebuilt from the view.
"""

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from tenfold.decide.place.score.fragmentation import Fragmentation
from tenfold.decide.place.score.node_arrays import (
    Flags,
    Ints,
    NodeArrays,
    NodeRequest,
    node_request,
)
from tenfold.decide.place.score.scorers import DOES_NOT_FIT, BestFit, Gradient, Scorer
from tenfold.decide.place.score.shape_mix import ShapeMix
from tenfold.fleet.capacity import Capacity, FreeNodeIndex, Slots
from tenfold.fleet.fleet import FleetView
from tenfold.model.fleet.node import Node
from tenfold.model.ids import NodeId
from tenfold.model.job.job import Shape, Slot
from tenfold.model.policy.policy import Placement

LOG_MOST = 1 << 16
"""Length of the log of changed nodes; beyond it all scores are recomputed."""
BYTES_MOST = 1 << 28
BYTES_A_NODE = 6


class _Scores:
    """The scores of all nodes for one shape, as of a position in the log."""

    __slots__ = ("devices", "numbers", "request", "seen", "suits")

    def __init__(self, request: NodeRequest, suits: Flags) -> None:
        self.request = request
        self.suits = suits
        """Nodes that could hold it alone if they were empty."""
        self.numbers: NDArray[np.int32] = np.full(len(suits), DOES_NOT_FIT, np.int32)
        self.devices: NDArray[np.int8] = np.full(len(suits), -1, np.int8)
        self.seen = 0


class ScoredCapacity(Capacity):
    """The free capacity of a fleet, allocated by score."""

    def __init__(self, placement: Placement = "tenfold") -> None:
        super().__init__()
        self._placement: Placement = placement
        self._shape_mix = ShapeMix()
        self._learned = 0
        """Number of the mix that the scorer last learned."""
        self._rows: NodeArrays | None = None
        self._scorer: Scorer | None = None
        self._kept: dict[str, _Scores] = {}
        self._log: list[int] = []
        self._counts_cpus = self._counts_memory = False
        self._fine: dict[str, bool] = {}
        self._fine_held = 0
        self._fine_mix = False

    @classmethod
    def of(cls, view: FleetView, placement: Placement = "tenfold") -> "ScoredCapacity":
        """Build the index from the current view."""
        capacity = cls(placement)
        for node in view.nodes.values():
            capacity.add(node, view)
        for kept in (view.orders, view.running):
            for held in kept.values():
                capacity._fine_held += capacity._is_fine(held.job.shape)
        capacity.refresh(view)
        return capacity

    def add(self, node: Node, view: FleetView) -> None:
        """Add one node from the view."""
        super().add(node, view)
        self._counts_cpus |= node.cpus_milli > 0
        self._counts_memory |= node.memory_mib > 0
        self._rows = None
        self._fine.clear()

    def set_open(self, node_id: NodeId, is_open: bool) -> None:
        """Open a node to new jobs, or hide it."""
        super().set_open(node_id, is_open)
        if self._rows is not None:
            row = self._rows.index[node_id]
            self._rows.is_open[row] = is_open
            self._log.append(row)

    def refresh(self, view: FleetView) -> None:
        """Learn the mix of finished jobs when an epoch begins."""
        if self._shape_mix.from_history(view):
            self._note_mix()

    def learn(self, shape: Shape) -> None:
        """Learn from one arrival, for runs in which nothing ever finishes."""
        if self._shape_mix.from_arrival(shape):
            self._note_mix()

    def know(self, shapes: Iterable[Shape]) -> None:
        """Use a mix that is known beforehand, as the published gradient does."""
        self._shape_mix.from_all(shapes)
        self._note_mix()

    def claim(self, shape: Shape) -> Slots | None:
        """Claim the best slots for a whole gang, or return None."""
        if self._is_fine(shape) or self._fine_held or self._fine_mix or self._placement == "fgd":
            return self._claim_scored(shape)
        slots = super().claim(shape)
        if slots is not None and self._rows is not None:
            self._touch(slots)
        return slots

    def take(self, slots: Slots, shape: Shape) -> None:
        """Allocate these exact slots."""
        super().take(slots, shape)
        self._fine_held += self._is_fine(shape)
        if self._rows is not None:
            self._touch(slots)

    def give(self, slots: Slots, shape: Shape) -> None:
        """Release slots."""
        super().give(slots, shape)
        self._fine_held -= self._is_fine(shape)
        if self._rows is not None:
            self._touch(slots)

    def _is_fine(self, shape: Shape) -> bool:
        """Return whether a shape requests more than whole GPUs, where that is counted."""
        fine = self._fine.get(shape.key)
        if fine is None:
            fine = shape.milli > 0 or (self._counts_cpus and shape.cpus_milli > 0)
            fine = fine or (self._counts_memory and shape.memory_mib > 0)
            self._fine[shape.key] = fine
        return fine

    def _note_mix(self) -> None:
        mix = self._shape_mix.mix.values()
        self._fine_mix = any(self._is_fine(shape) for shape, _ in mix)

    def _touch(self, slots: Slots) -> None:
        rows, log = self._rows, self._log
        assert rows is not None, "only existing rows can change"
        for slot in slots:
            row = rows.index[slot.node]
            rows.lay_out(row)
            log.append(row)

    def _claim_scored(self, shape: Shape) -> Slots | None:
        """Claim the node with the smallest score; gangs on several nodes use the bitsets."""
        rows, scorer = self._ready()
        scores = self._scores(rows, scorer, shape)
        if len(scores.numbers):
            row = int(scores.numbers.argmin())
            if scores.numbers[row] != DOES_NOT_FIT:
                node_index, number = rows.positions[row]
                if shape.milli:
                    device = int(scores.devices[row])
                    slots = (Slot(node_index.names[number], 0, shape.milli, device),)
                else:
                    slots = node_index.slots(number, shape.gpus)
                self.take(slots, shape)
                return slots
        for split in self.splits(shape):
            if split.members > 1 or split.rest:
                slots = self._claim_many(split, shape)
                if slots is not None:
                    return slots
        return None

    def _order(self) -> dict[NodeId, tuple[FreeNodeIndex, int]]:
        """Return the nodes in the order that breaks ties.

        Published scores take the first node. Ours uses a fixed shuffle of the names; otherwise
        the first nodes of each pool would all be fragmented together.
        """
        if self._placement != "tenfold":
            return self.place
        return dict(sorted(self.place.items(), key=lambda home: _shuffled(home[0])))

    def _ready(self) -> tuple[NodeArrays, Scorer]:
        """Return arrays and scorer, rebuilt or retrained if outdated."""
        rows, scorer = self._rows, self._scorer
        if rows is None or scorer is None:
            rows = self._rows = NodeArrays(self.node_indexes, self._order())
            scorer = self._scorer = _scorer(self._placement, rows)
            self._kept.clear()
            self._log.clear()
            self._learned = 0
        if scorer.learns and self._learned != self._shape_mix.taken:
            self._learned = self._shape_mix.taken
            counts: dict[NodeRequest, int] = {}
            for shape, count in self._shape_mix.mix.values():
                request = node_request(shape, rows.width)
                counts[request] = counts.get(request, 0) + count
            scorer.learn(counts)
            self._kept.clear()
        if len(self._log) > LOG_MOST:
            self._kept.clear()
            self._log.clear()
        return rows, scorer

    def _scores(self, rows: NodeArrays, scorer: Scorer, shape: Shape) -> _Scores:
        """Return the current scores of a shape for every node."""
        scores, log = self._kept.get(shape.key), self._log
        if scores is None:
            scores = _Scores(node_request(shape, rows.width), self._suits(rows, shape))
            if len(self._kept) >= max(16, BYTES_MOST // (BYTES_A_NODE * len(rows.positions) + 1)):
                del self._kept[next(iter(self._kept))]
            self._kept[shape.key] = scores
            at = np.nonzero(scores.suits)[0]
        elif scores.seen == len(log):
            return scores
        else:
            at: Ints = np.fromiter(dict.fromkeys(log[scores.seen :]), np.int64)
            at = at[scores.suits[at]]
        if len(at):
            scores.numbers[at], scores.devices[at] = scorer.score(scores.request, at)
        scores.seen = len(log)
        return scores

    def _suits(self, rows: NodeArrays, shape: Shape) -> Flags:
        """Return which nodes could hold the shape alone if they were empty."""
        alone = [
            split.node_index
            for split in self.splits(shape)
            if split.members == 1 and not split.rest
        ]
        node_indexes = np.array(
            [any(node_index is one for one in alone) for node_index in rows.node_indexes], np.bool_
        )
        return node_indexes[rows.node_index]


def make_capacity(view: FleetView, placement: Placement = "tenfold") -> ScoredCapacity:
    """Return the free capacity of a fleet, allocated by the score of this name."""
    return ScoredCapacity.of(view, placement)


def _scorer(placement: Placement, rows: NodeArrays) -> Scorer:
    match placement:
        case "best-fit":
            return BestFit(rows)
        case "fgd":
            return Gradient(rows)
        case "tenfold":
            return Fragmentation(rows)


def _shuffled(node_id: NodeId) -> bytes:
    return blake2b(node_id.encode(), digest_size=8).digest()
