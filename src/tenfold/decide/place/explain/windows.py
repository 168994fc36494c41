"""Windows and off-peak hours that hold a pending job back, and when they end.

A window is the cause if the job would fit without it. The check follows the policy: nodes of a
window for the job's own team are available, and nodes of a window that opens before the job ends
are not.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

from msgspec import Struct
from msgspec.structs import replace

from tenfold.decide.place.explain.settled import Settled
from tenfold.decide.place.queue.pending_queues import JobClass
from tenfold.decide.place.queue.windows import Windows
from tenfold.decide.place.quota.team_tree import Obstacle, Tree, is_off_peak, next_hours_ms
from tenfold.fleet.fleet import Fleet
from tenfold.fleet.obstacle import FreeCapacity, fits, needs
from tenfold.fleet.topology.topology import TopologyCapacity
from tenfold.model.events import NodeJoined
from tenfold.model.ids import NodeId, TeamId
from tenfold.model.job.job import Job
from tenfold.model.job.terms import Window
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.reason import Amount, Causes, NodeRef, Reason, TeamRef, Value
from tenfold.model.units import DAY, Millis

EDGES_MOST = 96
"""How many changes of quotas or hours to check for one that helps."""


class WindowBlock(Struct, frozen=True):
    """How a window blocks a job."""

    reason: Reason
    not_before_ms: Millis | None = None
    """The earliest start: nodes outside of windows could never hold the job."""


class _Occurrence(Struct, frozen=True):
    """An occurrence of a window that blocks a job, now or soon."""

    window: Window
    nodes: tuple[NodeId, ...]
    start_ms: int
    end_ms: int


def window_reason(
    settled: Settled, job: Job, types: Sequence[str], room: FreeCapacity
) -> WindowBlock | None:
    """Return the window without which a job would fit, if there is one."""
    state, now_ms = settled.state, settled.now_ms
    if not state.govern.windows:
        return None
    occurrences = list(_occurrences(settled, job))
    coming = [occurrence for occurrence in occurrences if occurrence.start_ms > now_ms]
    barred = _nodes(coming)
    with state.scratch.hiding(barred):
        if not occurrences or fits(state.capacity, job.shape, types):
            return None
    if fits(state.capacity, job.shape, types):
        return WindowBlock(
            _coming_reason(settled, job, coming, room), _not_before(settled, job, occurrences)
        )
    there = [occurrence for occurrence in occurrences if occurrence.start_ms <= now_ms]
    with _opened(settled, _nodes(there)):
        if not there or not fits(state.capacity, job.shape, types):
            return None
    return WindowBlock(_open_reason(settled, there, room), _not_before(settled, job, occurrences))


def own_windows(settled: Settled, job: Job) -> AbstractContextManager[None]:
    """Open the nodes of windows for a job's own team, as the policy does."""
    own = [node for node, team in settled.state.windows.open.items() if team and team == job.team]
    return _opened(settled, own)


def openings(settled: Settled, job: Job) -> list[Millis]:
    """Return when windows open that a job must not run into."""
    return [
        Millis(occurrence.start_ms)
        for occurrence in _occurrences(settled, job)
        if occurrence.start_ms > settled.now_ms
    ]


def off_peak_from(govern: GovernanceRules, now_ms: Millis) -> Millis | None:
    """Return when off-peak hours begin next; None if never."""
    at_ms: int | None = now_ms
    for _ in range(EDGES_MOST):
        at_ms = next_hours_ms(govern, Millis(at_ms))
        if at_ms is None or at_ms > now_ms + DAY:
            return None
        if is_off_peak(govern, Millis(at_ms)):
            return Millis(at_ms)
    return None


def hours_reason(settled: Settled, job_class: JobClass, met: Obstacle, limit: Reason) -> Reason:
    """Return a reason that adds when quota hours will admit a class, if they will."""
    govern, now_ms = settled.govern, settled.now_ms
    if not any(team.hours for team in govern.teams):
        return limit
    at_ms: int | None = now_ms
    for _ in range(EDGES_MOST):
        at_ms = next_hours_ms(govern, Millis(at_ms))
        if at_ms is None or at_ms > now_ms + DAY:
            break
        tree = _tree_at(settled, Millis(at_ms))
        team = tree.team(job_class.team.id)
        if any(tree.obstacle(team, option.amounts) is None for option in job_class.options):
            fields: dict[str, Value] = {"limit": Causes((limit,)), "in_ms": at_ms - now_ms}
            node, number, _ = met
            if node.parent is not None:
                quota = tree.team(node.id).path[-2].effective[number]
                fields["quota"] = Amount(quota, tree.resources.names[number])
            return Reason("quota-hours", fields)
    return limit


def _tree_at(settled: Settled, at_ms: Millis) -> Tree:
    """Return the tree of teams with quotas of another time and current usage."""
    state = settled.state
    tree = Tree(settled.govern, state.tree.resources, at_ms)
    for held in (*state.allocations.held.values(), *state.reserved.values()):
        tree.add(tree.team(held.job.team), held.amounts, 1)
    return tree


def _occurrences(settled: Settled, job: Job) -> Iterator[_Occurrence]:
    """Yield window occurrences that keep a job off nodes, now or soon."""
    nodes, now_ms = settled.view.nodes, settled.now_ms
    for window in settled.govern.windows:
        alone = replace(settled.govern, windows=(window,))
        found = Windows(alone, nodes, now_ms)
        edge_ms = found.next_ms
        if edge_ms is None:
            continue
        if found.open:
            barred = tuple(node for node in found.open if found.bars(node, job))
            occurrence = _Occurrence(window, barred, now_ms, edge_ms)
        else:
            barred = tuple(found.coming_for(job, now_ms))
            end_ms = Windows(alone, nodes, Millis(edge_ms)).next_ms or edge_ms
            occurrence = _Occurrence(window, barred, edge_ms, end_ms)
        if barred:
            yield occurrence


def _nodes(occurrences: Sequence[_Occurrence]) -> list[NodeId]:
    return list(dict.fromkeys(node for occurrence in occurrences for node in occurrence.nodes))


def _opened(settled: Settled, nodes: Sequence[NodeId]) -> AbstractContextManager[None]:
    """Open nodes closed by windows for the duration of a check."""
    states = settled.view.states
    return settled.state.scratch.opening([node for node in nodes if states[node] == "up"])


def _not_before(settled: Settled, job: Job, occurrences: Sequence[_Occurrence]) -> Millis | None:
    """Return the earliest end of a window, if the job cannot start without its nodes."""
    barred = dict.fromkeys(_nodes(occurrences))
    rest = Fleet()
    for node in settled.view.nodes.values():
        if node.id not in barred:
            rest.apply(NodeJoined(settled.now_ms, node))
    if TopologyCapacity.of(rest).could_hold(job.shape):
        return None
    return Millis(min(occurrence.end_ms for occurrence in occurrences))


def _open_reason(
    settled: Settled, occurrences: Sequence[_Occurrence], room: FreeCapacity
) -> Reason:
    occurrence = max(occurrences, key=lambda each: (len(each.nodes), -each.end_ms))
    fields = needs(room) | _closed(occurrence)
    if occurrence.window.team:
        fields["team"] = TeamRef(TeamId(occurrence.window.team))
    fields["left_ms"] = occurrence.end_ms - settled.now_ms
    return Reason("window", fields)


def _coming_reason(
    settled: Settled, job: Job, occurrences: Sequence[_Occurrence], room: FreeCapacity
) -> Reason:
    occurrence = min(occurrences, key=lambda each: (each.start_ms, -len(each.nodes)))
    fields = needs(room) | _closed(occurrence)
    if job.limit_ms is not None:
        fields["limit_ms"] = job.limit_ms
    fields["in_ms"] = occurrence.start_ms - settled.now_ms
    fields["until_ms"] = occurrence.end_ms - settled.now_ms
    return Reason("window", fields)


def _closed(occurrence: _Occurrence) -> dict[str, Value]:
    """Return the fields that say which window closes which nodes."""
    fields: dict[str, Value] = {"window": occurrence.window.id, "closed": len(occurrence.nodes)}
    if len(occurrence.nodes) == 1:
        fields["node"] = NodeRef(occurrence.nodes[0])
    return fields
