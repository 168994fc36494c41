"""Nodes as flat arrays, one row each in fleet order, so that many are scored at once.

Whole GPUs are allocated by count and shares by device. A row therefore orders its devices from
what its node has left: shared ones in place, then those in use, then free ones. It depends only
on the fleet's view.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenfold.fleet.capacity import FreeNodeIndex
from tenfold.model.ids import NodeId
from tenfold.model.job.job import WHOLE, Shape, per_member

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Kind = tuple[str, str, int, int, int]
"""Site, accelerator, GPUs, CPU thousandths and MiB: what nodes of one index share."""

PLENTY = 1 << 40
"""CPUs or memory of a node where they are not counted."""


class NodeRequest(NamedTuple):
    """What one member of a gang requests from its node."""

    cpus_milli: int
    memory_mib: int
    gpus: int
    milli: int
    """Thousandths of each GPU: all of it, or a share of one; 0 without GPUs."""
    accelerators: tuple[str, ...]

    @property
    def gpus_milli(self) -> int:
        """Thousandths of a GPU in total."""
        return self.gpus * self.milli


def node_request(shape: Shape, node_gpus_most: int) -> NodeRequest:
    """Return what each gang member requests, given the GPUs of the largest node."""
    if shape.milli:
        return NodeRequest(shape.cpus_milli, shape.memory_mib, 1, shape.milli, shape.accelerators)
    if not shape.gpus:
        return NodeRequest(shape.cpus_milli, shape.memory_mib, 0, 0, shape.accelerators)
    gpus = max(1, min(shape.gpus, shape.gpus_per_node or node_gpus_most))
    cpus, memory = per_member(shape, -(-shape.gpus // gpus))
    return NodeRequest(cpus, memory, gpus, WHOLE, shape.accelerators)


class NodeArrays:
    """What every node has in total and has left."""

    def __init__(
        self,
        node_indexes: Mapping[Kind, FreeNodeIndex],
        place: Mapping[NodeId, tuple[FreeNodeIndex, int]],
    ) -> None:
        count = len(place)
        self.positions = list(place.values())
        self.index = {node_id: row for row, node_id in enumerate(place)}
        self.width = max((node_index.size for node_index in node_indexes.values()), default=0)
        self.kinds: dict[str, int] = {}
        """Number of each accelerator type, from 1; 0 is for nodes without GPUs."""
        self.kind = np.zeros(count, np.int64)
        self.node_index = np.zeros(count, np.int64)
        """Position of the node's index among all indexes."""
        self.gpus_all = np.zeros(count, np.int64)
        self.cpus_all = np.zeros(count, np.int64)
        self.memory_all = np.zeros(count, np.int64)
        self.cpus = np.zeros(count, np.int64)
        self.memory = np.zeros(count, np.int64)
        self.left = np.zeros((count, self.width), np.int64)
        """Thousandths left of each device."""
        self.is_open = np.zeros(count, np.bool_)
        self.node_indexes = list(node_indexes.values())
        number_of = {
            id(node_index): (place, kind)
            for place, (kind, node_index) in enumerate(node_indexes.items())
        }
        for row, (node_index, number) in enumerate(self.positions):
            self.node_index[row], (_, accelerator, gpus, cpus, memory) = number_of[id(node_index)]
            if gpus:
                self.kind[row] = self.kinds.setdefault(accelerator, len(self.kinds) + 1)
            self.gpus_all[row] = gpus
            self.cpus_all[row] = cpus or PLENTY
            self.memory_all[row] = memory or PLENTY
            self.is_open[row] = node_index.is_open[number]
            self.lay_out(row)
        self.gpus_total = int(self.gpus_all.sum())

    def lay_out(self, row: int) -> None:
        """Update one row from its node."""
        node_index, number = self.positions[row]
        self.cpus[row] = node_index.cpus[number] if node_index.counts_cpus else PLENTY
        self.memory[row] = node_index.memory[number] if node_index.counts_memory else PLENTY
        free, size = node_index.free[number], node_index.size
        given = node_index.given.get(number)
        if not given:
            left = self.left[row]
            left[: size - free] = 0
            left[size - free : size] = WHOLE
            return
        taken = size - free - len(given)
        devices = [0] * self.width
        for device in range(size):
            if milli := given.get(device):
                devices[device] = WHOLE - milli
            elif taken:
                taken -= 1
            else:
                devices[device] = WHOLE
        self.left[row] = devices

    def allowed(self, request: NodeRequest) -> Flags:
        """Return for each accelerator type whether the request may use it."""
        flags = np.ones(len(self.kinds) + 1, np.bool_)
        if request.accelerators:
            flags[0] = "" in request.accelerators
            for name, number in self.kinds.items():
                flags[number] = name in request.accelerators
        if request.gpus:
            flags[0] = False
        return flags

    def gpus_for(self, request: NodeRequest) -> int:
        """Return the GPUs of all nodes that could hold the request if they were empty."""
        able = self.allowed(request)[self.kind] & (self.gpus_all >= request.gpus)
        able &= (self.cpus_all >= request.cpus_milli) & (self.memory_all >= request.memory_mib)
        return int(self.gpus_all[able].sum())

    def fits(self, request: NodeRequest, rows: Ints) -> Flags:
        """Return which of these nodes can hold the request now; the caller checks types."""
        fits = self.is_open[rows] & (self.cpus[rows] >= request.cpus_milli)
        fits &= self.memory[rows] >= request.memory_mib
        if request.gpus == 1:
            fits &= self.left[rows].max(1, initial=0) >= request.milli
        elif request.gpus:
            fits &= (self.left[rows] >= request.milli).sum(1) >= request.gpus
        return fits
