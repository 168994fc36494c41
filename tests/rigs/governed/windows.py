"""Which nodes windows keep from a job, worked out from the declared windows alone."""

from collections.abc import Iterable, Iterator

from tenfold.fleet.fleet import FleetView
from tenfold.model.fleet.node import Node
from tenfold.model.ids import NodeId
from tenfold.model.job.job import Job
from tenfold.model.job.terms import Window
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.units import DAY, Millis

Span = tuple[int, int]


def barred_now(
    govern: GovernanceRules, view: FleetView, job: Job, now_ms: Millis
) -> dict[NodeId, None]:
    """Return the nodes of windows that are open now for others, or for nobody."""
    return _of(govern, view, job, (now_ms, now_ms + 1))


def closed_now(govern: GovernanceRules, view: FleetView, now_ms: Millis) -> dict[NodeId, None]:
    """Return the nodes of windows that are open now, whoever they are kept for."""
    return {
        node: None
        for window in govern.windows
        if any(_spans(window, (now_ms, now_ms + 1)))
        for node in _named(window, view.nodes.values())
    }


def barred_soon(
    govern: GovernanceRules, view: FleetView, job: Job, now_ms: Millis
) -> dict[NodeId, None]:
    """Return the nodes with such windows in all the time for which a job may run.

    A job that does not say how long it runs is held to be there for a day.
    """
    runs_ms = job.limit_ms if job.limit_ms is not None else DAY
    return _of(govern, view, job, (now_ms, now_ms + max(1, runs_ms)))


def _of(govern: GovernanceRules, view: FleetView, job: Job, span: Span) -> dict[NodeId, None]:
    found: dict[NodeId, None] = {}
    for window in govern.windows:
        if (not window.team or window.team != job.team) and any(_spans(window, span)):
            found.update(dict.fromkeys(_named(window, view.nodes.values())))
    return found


def _spans(window: Window, span: Span) -> Iterator[bool]:
    """Yield a truth for each time that a window is open within a span."""
    length, every_ms = window.end_ms - window.start_ms, window.every_ms
    start_ms = int(window.start_ms)
    if every_ms is not None and span[0] > start_ms:
        start_ms += (span[0] - start_ms) // every_ms * every_ms
    while start_ms < span[1]:
        if start_ms + length > span[0]:
            yield True
        if every_ms is None:
            return
        start_ms += every_ms


def _named(window: Window, nodes: Iterable[Node]) -> Iterator[NodeId]:
    for node in nodes:
        if not window.nodes or any(
            name in (node.id, node.rack, node.pool) for name in window.nodes
        ):
            yield node.id
