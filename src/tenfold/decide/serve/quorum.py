"""Which failure domains a service cannot lose: without them, too few of its replicas are ready.

The quorum is `replicas_min`. A service that is below it already has no domain listed.
"""

from collections.abc import Iterator

from msgspec import Struct

from tenfold.fleet.view import FleetView
from tenfold.model.ids import JobId
from tenfold.model.service.state import ServiceState

KINDS = ("site", "domain", "rack", "node")


class QuorumRisk(Struct, frozen=True, kw_only=True):
    """A domain whose loss takes a service below its quorum."""

    kind: str
    """`site`, `domain`, `rack` or `node`."""
    name: str
    ready_left: int


def quorum_risks(state: ServiceState, view: FleetView) -> list[QuorumRisk]:
    """Return the domains that a service cannot lose, the largest kind first."""
    ready = [one for one in state.replicas if one.serves]
    if len(ready) < state.spec.replicas_min or not state.spec.replicas_min:
        return []
    lost: dict[tuple[str, str], int] = {}
    for one in ready:
        for place in dict.fromkeys(_places(view, one.id)):
            lost[place] = lost.get(place, 0) + 1
    risks = [
        QuorumRisk(kind=kind, name=name, ready_left=len(ready) - count)
        for (kind, name), count in lost.items()
        if len(ready) - count < state.spec.replicas_min
    ]
    return sorted(risks, key=lambda one: (KINDS.index(one.kind), one.ready_left, one.name))


def _places(view: FleetView, job_id: JobId) -> Iterator[tuple[str, str]]:
    run = view.running.get(job_id)
    for slot in () if run is None else run.slots:
        node = view.nodes[slot.node]
        yield "site", node.site
        for domain in node.domains:
            yield "domain", domain
        if node.rack:
            yield "rack", node.rack
        yield "node", node.id
