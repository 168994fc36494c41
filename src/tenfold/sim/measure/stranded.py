"""GPUs that lie idle while jobs wait, because no node has enough of them left.

At even moments of a window: of all that is free, what lies on nodes that could hold a member of
a waiting job if they were empty, and cannot now. Nodes of another type, and free nodes that a
quota or a reserved start withholds, are not stranded: better placement would not help.
Waiting jobs count equally; a sample without waiting jobs counts as nothing stranded. CPUs and
memory are ignored, and GPU fractions are assumed movable within their node.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import WHOLE, Job, Shape, Slot
from tenfold.sim.measure.meters import Meters
from tenfold.sim.measure.timeline import Span
from tenfold.sim.measure.window import Window

SAMPLES = 100
_END, _RETURNED, _LOST, _SUBMITTED, _START = range(5)
_Change = tuple[int, int, Job | NodeId, tuple[Slot, ...]]
"""When, in which order at one moment, a job or a node, and the job's slots."""


def stranded_share(
    nodes: Sequence[Node], jobs: Sequence[Job], runs: Sequence[Span], meters: Meters, window: Window
) -> float:
    """Return the mean share of all GPUs that were stranded while jobs waited."""
    whole = sum(node.gpus for node in nodes) * WHOLE
    if not whole:
        return 0.0
    state = _State(nodes, jobs, meters)
    changes = _changes(jobs, runs, meters, window)
    at, total = 0, 0.0
    for number in range(SAMPLES):
        sample_ms = window.from_ms + window.length_ms * (number + 0.5) / SAMPLES
        while at < len(changes) and changes[at][0] <= sample_ms:
            state.change(changes[at])
            at += 1
        total += state.stranded_milli()
    return total / SAMPLES / whole


def _changes(
    jobs: Sequence[Job], runs: Iterable[Span], meters: Meters, window: Window
) -> list[_Change]:
    refused = {job.id: True for job in meters.refused_jobs}
    changes: list[_Change] = [
        (job.submitted_ms, _SUBMITTED, job, ()) for job in jobs if job.id not in refused
    ]
    over = {job.id: end for job, _, _, _, end in meters.ends}
    for job, slots, start, end in runs:
        if start < end:
            changes.append((start, _START, job, slots))
        elif over.get(job.id) == end:
            changes.append((start, _START, job, ()))
        if start < end < window.until_ms:
            changes.append((end, _END, job, slots))
    changes += [(at, _LOST, node, ()) for at, node in meters.lost]
    changes += [(at, _RETURNED, node, ()) for at, node in meters.returned]
    return sorted(changes, key=lambda change: change[:2])


class _State:
    """What is held on the nodes and who waits, as a run goes on."""

    def __init__(self, nodes: Sequence[Node], jobs: Sequence[Job], meters: Meters) -> None:
        self._places = {node.id: place for place, node in enumerate(nodes)}
        self._size: NDArray[np.int64] = np.array([node.gpus for node in nodes], dtype=np.int64)
        self._held: NDArray[np.int64] = np.zeros(len(nodes), dtype=np.int64)
        self._up: NDArray[np.bool_] = np.ones(len(nodes), dtype=np.bool_)
        self._types: list[str] = [node.accelerator for node in nodes]
        self._types_of: dict[tuple[str, ...], NDArray[np.bool_]] = {}
        self._shapes = {job.shape.key: job.shape for job in jobs}
        self._waiting: Counter[str] = Counter()
        self._over: dict[JobId, int] = {job.id: end for job, _, _, _, end in meters.ends}

    def change(self, change: _Change) -> None:
        """Let one thing happen."""
        at, kind, subject, slots = change
        if not isinstance(subject, Job):
            self._up[self._places[subject]] = kind == _RETURNED
            return
        sign = {_START: 1, _END: -1}.get(kind, 0)
        for slot in slots:
            self._held[self._places[slot.node]] += sign * (slot.milli or slot.gpus * WHOLE)
        if kind == _START:
            self._waiting[subject.shape.key] -= 1
        elif kind == _SUBMITTED or self._over.get(subject.id) != at:
            self._waiting[subject.shape.key] += 1

    def stranded_milli(self) -> float:
        """Return what no waiting job could use, as a mean over those that wait."""
        waiting = {key: count for key, count in self._waiting.items() if count > 0}
        gpu_shapes = {
            key: count for key, count in waiting.items() if self._needs_gpus(self._shapes[key])
        }
        if not gpu_shapes:
            return 0.0
        free = np.where(self._up, self._size * WHOLE - self._held, 0)
        stranded = sum(
            count * float(free[self._blocked_nodes(self._shapes[key], free)].sum())
            for key, count in gpu_shapes.items()
        )
        return stranded / sum(gpu_shapes.values())

    @staticmethod
    def _needs_gpus(shape: Shape) -> bool:
        return bool(shape.gpus or shape.milli)

    def _blocked_nodes(self, shape: Shape, free: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return the nodes that could hold a member if they were empty, and cannot now."""
        if shape.milli:
            wanted = np.full(len(free), shape.milli)
        else:
            member_gpus = min(shape.gpus_per_node or shape.gpus, shape.gpus)
            # Without a word on how it is spread, a large gang takes nodes of any size whole.
            spread = shape.gpus_per_node is not None
            whole = (
                np.full(len(free), member_gpus) if spread else np.minimum(member_gpus, self._size)
            )
            wanted = np.maximum(1, whole) * WHOLE
        usable_milli = free if shape.milli else free // WHOLE * WHOLE
        return (
            self._matching_nodes(shape) & (self._size * WHOLE >= wanted) & (usable_milli < wanted)
        )

    def _matching_nodes(self, shape: Shape) -> NDArray[np.bool_]:
        matching = self._types_of.get(shape.accelerators)
        if matching is None:
            wanted_types = shape.accelerators
            matching = np.array(
                [not wanted_types or one in wanted_types for one in self._types], dtype=np.bool_
            )
            self._types_of[wanted_types] = matching
        return matching
