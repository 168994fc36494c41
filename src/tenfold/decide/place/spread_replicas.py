"""Start a replica of a service away from the service's other replicas, if a node is equivalent.

Everything else about the other decider's choice stays, as in `avoid_failed_nodes`: the replacement
is in the same pool, has enough free and is not reserved. Domains are compared from the largest to
the smallest: a replica goes where its service has the fewest replicas by failure domain, then by
rack, then by node. Gangs, shares of a GPU and constrained shapes stay where they are.
"""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from tenfold.decide.place.avoid_failed_nodes import FreeAfter
from tenfold.decide.place.moved_starts import MovedStarts
from tenfold.fleet.services import replica_of
from tenfold.fleet.view import FleetView
from tenfold.model.actions import Action, StartJob
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, Slot


class SpreadReplicas(MovedStarts):
    """Moves starts of another decider apart, if they are replicas of one service."""

    def moved(self, view: FleetView, actions: Sequence[Action]) -> Sequence[Action]:
        """Return the actions, with replicas on other nodes."""
        return spread(view, actions) if view.services else actions


def spread(view: FleetView, actions: Sequence[Action]) -> list[Action]:
    """Return the actions, with starts of replicas apart from others of their service."""
    services = {
        action.job_id: ref.service
        for action in actions
        if isinstance(action, StartJob)
        and (ref := replica_of(view.pending[action.job_id])) is not None
    }
    if not services:
        return list(actions)
    free_after = FreeAfter(view, actions)
    taken = {name: _Taken(view, name) for name in dict.fromkeys(services.values())}
    found: list[Action] = []
    for action in actions:
        service = services.get(action.job_id)
        if service is None or not isinstance(action, StartJob):
            found.append(action)
            continue
        others, job = taken[service], view.pending[action.job_id]
        slots = (
            action.slots
            if not _may_move(job, action.slots)
            else _apart(view, free_after, others, job, action.slots)
        )
        others.add(slots)
        found.append(replace(action, slots=slots))
    return found


def _may_move(job: Job, slots: Sequence[Slot]) -> bool:
    where = job.shape.where
    is_free = where is None or not where.within
    return is_free and len(slots) == 1 and not slots[0].milli


def _apart(
    view: FleetView, free_after: FreeAfter, others: "_Taken", job: Job, slots: tuple[Slot, ...]
) -> tuple[Slot, ...]:
    """Return the slot of a replica on the equivalent node that shares the least."""
    [slot] = slots
    best, least = slot.node, others.shared(view.nodes[slot.node])
    if not any(least):
        return slots
    for node in free_after.alike(job, slots, slot):
        shared = others.shared(view.nodes[node])
        if shared < least:
            best, least = node, shared
    return slots if best == slot.node else free_after.move(job, slots, 0, best)


class _Taken:
    """How many replicas a service has in each place."""

    def __init__(self, view: FleetView, service: str) -> None:
        self._view = view
        self._counts: dict[tuple[str, str], int] = {}
        for slots in _held(view, [one.id for one in view.services[service].replicas]):
            self.add(slots)

    def add(self, slots: Sequence[Slot]) -> None:
        """Count a replica."""
        for slot in slots:
            for place in _places(self._view.nodes[slot.node]):
                self._counts[place] = self._counts.get(place, 0) + 1

    def shared(self, node: Node) -> tuple[int, ...]:
        """Return how many replicas share each place of a node, the largest place first."""
        return tuple(self._counts.get(place, 0) for place in _places(node))


def _places(node: Node) -> Iterator[tuple[str, str]]:
    for domain in reversed(node.domains):
        yield "domain", domain
    if node.rack:
        yield "rack", node.rack
    yield "node", node.id


def _held(view: FleetView, replicas: Sequence[JobId]) -> Iterator[tuple[Slot, ...]]:
    for job_id in replicas:
        run = view.running.get(job_id) or view.orders.get(job_id)
        if run is not None:
            yield run.slots
