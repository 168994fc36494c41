"""Record a simulation in a bundle, and replay a bundle under its own policy."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec
from msgspec import Struct

from tenfold import __version__
from tenfold.compose.policies import placing_decider
from tenfold.compose.simulation import SimRequest, SimResult, simulate
from tenfold.engine.decision_log import Cycle
from tenfold.engine.digest import fleet_digest, nodes_digest
from tenfold.engine.explain import JobHistory, explain
from tenfold.engine.loop import Decider
from tenfold.engine.policy_spans import PolicyTimeline
from tenfold.engine.recording import Line, events_of
from tenfold.engine.replay import Difference, InvalidRecord, lines_before, rebuild, replay
from tenfold.engine.shadow import Shadowed
from tenfold.files.records.replay_bundle import Bundle, BundleHeader, open_new_bundle
from tenfold.fleet.fleet import Fleet
from tenfold.model.errors import InputError
from tenfold.model.events import Event, NodeJoined
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId
from tenfold.model.policy.policy import Policy
from tenfold.sim.world import SimSettings


class ReplayCheck(Struct, frozen=True, kw_only=True):
    """Result of replaying a bundle under its own policy."""

    policy: str
    """The one that decided last."""
    policies: tuple[str, ...] = ()
    """All that decided, one after the other."""
    starts: int = 1
    """Times that the loop began."""
    events: int
    cycles: int
    orders: int
    """Orders that were decided again."""
    same_fleet: bool
    """Whether the replay ended in the recorded fleet state."""
    difference: Difference | None = None

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return self.same_fleet and self.difference is None


def simulate_recorded(
    request: SimRequest,
    *,
    bundle: Path | None = None,
    shadow: Policy | None = None,
    force: bool = False,
) -> tuple[SimResult, Shadowed | None]:
    """Run a simulation with a bundle, a shadow policy, or both."""
    shadows: list[Shadowed] = []

    def around(live: Decider) -> Decider:
        if shadow is None:
            return live
        shadowed = Shadowed(live, placing_decider(shadow, request.settings.restart_cost_ms))
        shadows.append(shadowed)
        return shadowed

    with ExitStack() as stack:
        if bundle is None:
            result = simulate(request, around=around)
        else:
            writer = stack.enter_context(open_new_bundle(bundle, header_of(request), force=force))
            result = simulate(request, journal=writer, witnesses=[writer], around=around)
            writer.finish(result.fleet)
    return result, shadows[0] if shadows else None


def header_of(request: SimRequest) -> BundleHeader:
    """Return the header of the bundle that a simulation writes."""
    settings: dict[str, int | float] = msgspec.to_builtins(request.settings)
    seed = settings.pop("seed")
    return BundleHeader(
        tenfold=__version__,
        policy=request.policy,
        settings=settings,
        seed=int(seed),
        nodes=len(request.nodes),
        gpus=request.gpus,
        nodes_digest=nodes_digest(request.nodes),
        contention=request.contention is not None,
    )


def settings_of(bundle: Bundle) -> SimSettings:
    """Return the simulator settings of a recorded run."""
    header = bundle.header
    try:
        return msgspec.convert({**header.settings, "seed": header.seed}, SimSettings)
    except msgspec.ValidationError as error:
        raise InputError(
            "wrong-line",
            f"the settings of the bundle are wrong: {error}",
            "bundles are written by tenfold; do not edit them",
            file=bundle.file,
            line=1,
        ) from None


def nodes_in(bundle: Bundle) -> list[Node]:
    """Return the nodes that joined, in order."""
    base = bundle.base()
    base_nodes = [] if base is None else list(base.nodes.values())
    joined = [event.node for event in events_of(bundle.lines) if isinstance(event, NodeJoined)]
    # One that left and joined again counts as it joined first.
    found: dict[NodeId, Node] = {}
    for node in (*base_nodes, *joined):
        found.setdefault(node.id, node)
    return list(found.values())


def fleet_in(bundle: Bundle) -> Fleet:
    """Return the fleet after the last event, or raise if the events are inconsistent."""
    _check_nodes(bundle)
    fleet = rebuild(bundle.lines, bundle.base())
    if isinstance(fleet, InvalidRecord):
        raise _impossible_event(bundle, fleet)
    return fleet


def _check_nodes(bundle: Bundle) -> None:
    header = bundle.header
    if header.nodes_digest and nodes_digest(nodes_in(bundle)) != header.nodes_digest:
        raise InputError(
            "nodes-differ",
            f"`{bundle.file}` lists other nodes in its header than in its events",
            "bundles are written by tenfold; do not edit them",
            file=bundle.file,
            line=1,
        )


def _impossible_event(bundle: Bundle, found: InvalidRecord) -> InputError:
    number = bundle.line_of(found.place)
    return InputError(
        "impossible-fact",
        f"inconsistent with earlier lines: {found.sentence}",
        "bundles are written by tenfold; do not edit them",
        file=bundle.file,
        line=number,
    )


def decider_of(bundle: Bundle) -> Callable[[], Decider]:
    """Return a maker of fresh deciders under the recorded policy."""
    policy, cost_ms = bundle.header.policy, settings_of(bundle).restart_cost_ms
    return lambda: placing_decider(policy, cost_ms)


def policy_names(bundle: Bundle) -> tuple[str, ...]:
    """Return the policies that decided, one after the other, by name."""
    names = [each.policy.name for each in bundle.stretches]
    return tuple(name for at, name in enumerate(names) if at == 0 or name != names[at - 1])


def deciders_of(bundle: Bundle) -> PolicyTimeline:
    """Return new deciders for the cycles of a record, by the policy in force."""
    cost_ms = settings_of(bundle).restart_cost_ms
    return PolicyTimeline(bundle.stretches, lambda policy: placing_decider(policy, cost_ms))


def verify(bundle: Bundle) -> ReplayCheck:
    """Replay a bundle under its own policy: the decisions and the fleet must be the same."""
    _check_nodes(bundle)
    recorded_fleet = rebuild(bundle.lines, bundle.base())
    lines = bundle.lines
    if isinstance(recorded_fleet, InvalidRecord):
        lines = lines_before(lines, recorded_fleet.place)
    replayed = replay(lines, deciders_of(bundle), bundle.base())
    if isinstance(recorded_fleet, InvalidRecord) and replayed.difference is None:
        raise _impossible_event(bundle, recorded_fleet)
    if replayed.difference is None:
        # Events after the last cycle have no decision yet.
        replayed.fleet.apply_all(_events_after_last_cycle(lines))
    ends = [
        fleet_digest(fleet)
        for fleet in (recorded_fleet, replayed.fleet)
        if isinstance(fleet, Fleet)
    ]
    return ReplayCheck(
        policy=bundle.header.policy.name,
        policies=policy_names(bundle),
        starts=len(bundle.stretches),
        events=bundle.end.events,
        cycles=replayed.cycles,
        orders=replayed.orders,
        same_fleet=all(end == bundle.end.fleet for end in ends),
        difference=replayed.difference,
    )


def _events_after_last_cycle(lines: Sequence[Line]) -> list[Event]:
    events: list[Event] = []
    for line in reversed(lines):
        if isinstance(line, Cycle):
            break
        events.append(line)
    return events[::-1]


def explain_job(bundle: Bundle, job_id: str) -> JobHistory:
    """Return the history of a job in a bundle."""
    fleet_in(bundle)
    history = explain(bundle.lines, JobId(job_id), decider_of(bundle), bundle.base())
    if history is None and bundle.base() is not None:
        raise InputError(
            "unknown-job",
            f"job `{job_id}` is not in `{bundle.file}`, whose older events were compacted",
            "older events are in the bundles named above: "
            f"`tenfold replay BUNDLE --explain {job_id}`",
            file=bundle.file,
        )
    if history is None:
        raise InputError(
            "unknown-job",
            f"no job `{job_id}` in `{bundle.file}`",
            "use the job id from the trace, or from `tenfold job list`",
            file=bundle.file,
        )
    return history
