"""Start a job on another node than those on which it failed, if one is equivalent.

Everything else about the other decider's choice stays. The replacement is in the same pool, has
enough free, is not reserved, and the job has not failed on it. Without one the job starts as
decided, since a node that failed once may be fine. Only live executors report failures, so
simulations never change.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from tenfold.decide.place.moved_starts import MovedStarts
from tenfold.fleet.view import FleetView
from tenfold.model.actions import Action, ResizeJob, StartJob
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Job, Slot, per_member

Taken = tuple[int, int, int]
"""GPUs, CPU thousandths and MiB."""


class AvoidFailedNodes(MovedStarts):
    """Moves starts of another decider away from nodes on which the job failed."""

    def moved(self, view: FleetView, actions: Sequence[Action]) -> Sequence[Action]:
        """Return the actions, with some nodes replaced."""
        return moved(view, actions) if view.failure_log.failures else actions


def moved(view: FleetView, actions: Sequence[Action]) -> list[Action]:
    """Return the actions, with starts moved off nodes on which the job failed."""
    failed = _failed_on(view, actions)
    if not failed:
        return list(actions)
    free_after = FreeAfter(view, actions)
    found: list[Action] = []
    for action in actions:
        avoided = failed.get(action.job_id)
        if avoided and isinstance(action, StartJob):
            job = view.pending[action.job_id]
            found.append(replace(action, slots=free_after.moved(job, action.slots, avoided)))
        else:
            found.append(action)
    return found


def _failed_on(view: FleetView, actions: Sequence[Action]) -> dict[JobId, dict[NodeId, None]]:
    """Return the nodes on which the jobs about to start have failed."""
    again: dict[JobId, dict[NodeId, None]] = {
        action.job_id: {}
        for action in actions
        if isinstance(action, StartJob) and action.job_id in view.past
    }
    if again:
        for node, failures in view.failure_log.failures.items():
            for one in failures:
                if one.job_id in again:
                    again[one.job_id][node] = None
    return {job_id: nodes for job_id, nodes in again.items() if nodes}


class FreeAfter:
    """What is free once the actions of a decision have been carried out."""

    def __init__(self, view: FleetView, actions: Sequence[Action]) -> None:
        self._view = view
        self._taken: dict[NodeId, Taken] = {}
        self._kept = {
            slot.node: job_id for job_id, one in view.reservations.items() for slot in one.slots
        }
        for action in actions:
            if isinstance(action, StartJob):
                self._take(view.pending[action.job_id], action.slots, 1)
            elif isinstance(action, ResizeJob):
                self._take(view.running[action.job_id].job, action.slots, 1)

    def moved(
        self, job: Job, slots: tuple[Slot, ...], avoided: dict[NodeId, None]
    ) -> tuple[Slot, ...]:
        """Return slots with nodes to avoid replaced where another node is equivalent."""
        if job.shape.where is not None or any(slot.milli for slot in slots):
            return slots
        made = slots
        for place, slot in enumerate(slots):
            if slot.node in avoided:
                other = self._other(job, made, slot, avoided)
                if other is not None:
                    made = self.move(job, made, place, other)
        return made

    def alike(self, job: Job, slots: tuple[Slot, ...], slot: Slot) -> list[NodeId]:
        """Return the other nodes like that of a slot which could hold it, in fleet order."""
        own, cpus_memory = _kind(self._view, slot.node), per_member(job.shape, len(slots))
        mine = {one.node: None for one in slots}
        return [
            node.id
            for node in self._view.nodes.values()
            if node.id not in mine
            and (node.pool, node.site, node.accelerator, node.tags) == own
            and self._accepts(node, job)
            and self._holds(node, slot, cpus_memory)
        ]

    def move(self, job: Job, slots: tuple[Slot, ...], place: int, node: NodeId) -> tuple[Slot, ...]:
        """Return slots with one of them on another node, and count it there."""
        self._take(job, slots, -1)
        made = (*slots[:place], replace(slots[place], node=node), *slots[place + 1 :])
        self._take(job, made, 1)
        return made

    def _other(
        self, job: Job, slots: tuple[Slot, ...], slot: Slot, avoided: dict[NodeId, None]
    ) -> NodeId | None:
        """Return the fullest node with enough free; among equals the first."""
        found = [node for node in self.alike(job, slots, slot) if node not in avoided]
        return min(found, key=lambda node: self._free(node)[0], default=None)

    def _holds(self, node: Node, slot: Slot, cpus_memory: tuple[int, int]) -> bool:
        """Return whether a node has enough free for a slot."""
        gpus, cpus_free, memory_free = self._free(node.id)
        cpus, memory = cpus_memory
        has_rest = (not node.cpus_milli or cpus_free >= cpus) and (
            not node.memory_mib or memory_free >= memory
        )
        return gpus >= slot.gpus and has_rest

    def _accepts(self, node: Node, job: Job) -> bool:
        """Return whether a node is up and not reserved for another job."""
        return self._view.states[node.id] == "up" and self._kept.get(node.id, job.id) == job.id

    def _free(self, node: NodeId) -> Taken:
        view, (gpus, cpus, memory) = self._view, self._taken.get(node, (0, 0, 0))
        return (
            view.gpus_free[node] - gpus,
            view.cpus_milli_free[node] - cpus,
            view.memory_mib_free[node] - memory,
        )

    def _take(self, job: Job, slots: tuple[Slot, ...], sign: int) -> None:
        cpus, memory = per_member(job.shape, len(slots))
        for slot in slots:
            before = self._taken.get(slot.node, (0, 0, 0))
            held = slot.gpus + (1 if slot.milli else 0)
            more = (sign * held, sign * cpus, sign * memory)
            self._taken[slot.node] = (
                before[0] + more[0],
                before[1] + more[1],
                before[2] + more[2],
            )


def _kind(view: FleetView, node: NodeId) -> tuple[object, ...]:
    """Return what makes nodes equivalent: pool, site, accelerator and tags."""
    found = view.nodes[node]
    return found.pool, found.site, found.accelerator, found.tags
