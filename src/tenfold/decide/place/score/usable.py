"""How much of a node's free GPUs typical requests could use, from two tables.

Requests for one GPU or a share see single devices: `one` gives the value of a device by what is
left of it. Requests for several GPUs need whole devices: `several` gives the value of a number
of them. Both depend on the accelerator type and on the CPUs left. The value of a node is then a
few look-ups, and a placement loses the value before, less the value after, less what it uses.
"""

from collections.abc import Sequence

import numpy as np

from tenfold.decide.place.score.node_arrays import Flags, Floats, Ints, NodeArrays, NodeRequest
from tenfold.model.job.job import WHOLE

Weights = Sequence[tuple[NodeRequest, float]]


class UsableCapacity:
    """The tables for one mix of requests."""

    def __init__(self, rows: NodeArrays, weights: Weights) -> None:
        self._rows = rows
        requests = [request for request, _ in weights]
        self._cpus = np.unique(np.array([request.cpus_milli for request in requests], np.int64))
        millis = np.unique(
            np.array([request.milli for request in requests if request.gpus == 1], np.int64)
        )
        self._step = np.searchsorted(millis, np.arange(WHOLE + 1), "right")
        """For what is left of a device: how many of the requested sizes fit."""
        types, levels = len(rows.kinds) + 1, len(self._cpus) + 1
        self._levels, self._steps, self._most = levels, len(millis) + 1, rows.width + 1
        one = np.zeros((types, levels, self._steps))
        several = np.zeros((types, levels, self._most))
        for request, weight in weights:
            if not 0 < request.gpus <= rows.width:
                continue
            level = int(np.searchsorted(self._cpus, request.cpus_milli)) + 1
            for kind in np.nonzero(rows.allowed(request))[0].tolist():
                if request.gpus == 1:
                    one[kind, level, self._step[request.milli]] += weight
                else:
                    several[kind, level, request.gpus] += weight
        self._one: Floats = one.cumsum(1).cumsum(2).ravel()
        sizes: Floats = np.arange(self._most, dtype=np.float64) * WHOLE
        self._several: Floats = (several.cumsum(1).cumsum(2) * sizes).ravel()

    def lost(self, request: NodeRequest, at: Ints, fits: Flags) -> Floats:
        """Return the capacity lost by the request on each node, in thousandths of a GPU."""
        left, whole, before, _, after = self._lookup(request, at, fits)
        worth = self._devices(after, left).sum(1)
        if request.gpus:
            full = np.full((len(at), 1), WHOLE)
            worth -= request.gpus * self._devices(after, full)[:, 0]
            whole = np.maximum(whole - request.gpus, 0)
        worth += self._several[after * self._most + whole]
        return before - worth - request.gpus_milli

    def lost_by_device(self, request: NodeRequest, at: Ints, fits: Flags) -> tuple[Floats, Ints]:
        """Return the same for a share on each device, and what is left of the devices."""
        left, whole, before, is_whole, after = self._lookup(request, at, fits)
        kept = self._devices(after, left)
        worth = kept.sum(1)[:, None] - kept
        worth += self._devices(after, np.maximum(left - request.milli, 0))
        worth += self._several[(after * self._most + whole)[:, None] - is_whole]
        return before[:, None] - worth - request.gpus_milli, left

    def _lookup(
        self, request: NodeRequest, at: Ints, fits: Flags
    ) -> tuple[Ints, Ints, Floats, Flags, Ints]:
        """Return devices, whole ones, the value now, which are whole, the table offset after."""
        rows = self._rows
        left, cpus = rows.left[at], rows.cpus[at]
        base = rows.kind[at] * self._levels
        now = base + self._cpus.searchsorted(cpus, "right")
        after = base + self._cpus.searchsorted(
            np.where(fits, cpus - request.cpus_milli, 0), "right"
        )
        is_whole = left == WHOLE
        whole = is_whole.sum(1)
        before = self._devices(now, left).sum(1) + self._several[now * self._most + whole]
        return left, whole, before, is_whole, after

    def _devices(self, base: Ints, left: Ints) -> Floats:
        """Return the value of each device."""
        return self._one[(base * self._steps)[:, None] + self._step[left]] * left
