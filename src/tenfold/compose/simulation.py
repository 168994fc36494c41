"""Wire a simulation: jobs, policy, faults and the scheduling loop."""

import gc
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from tenfold.compose.policies import placing_decider
from tenfold.engine.loop import Decider, Journal, Witness, run
from tenfold.fleet.fleet import Fleet
from tenfold.model.events import NodeJoined
from tenfold.model.fault import Fault
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, JobStatus
from tenfold.model.policy.policy import Policy
from tenfold.model.units import Millis
from tenfold.sim.measure.meters import Meters, Summary
from tenfold.sim.world import SimSettings, SimWorld

if TYPE_CHECKING:
    from tenfold.sim.contention.model import ContentionModel


class SimRequest(Struct, frozen=True, kw_only=True):
    """What to run: nodes, jobs in order of submission, a policy, and how the world behaves."""

    nodes: Sequence[Node]
    jobs: Sequence[Job]
    policy: Policy = Policy()
    settings: SimSettings = SimSettings()
    faults: Iterable[Fault] = ()
    contention: "ContentionModel | None" = None
    release_ms: dict[JobId, Millis] = {}
    """Release time of delayed jobs; the others arrive on submission."""
    ends: Mapping[JobId, JobStatus] = {}
    """How jobs end that do not complete."""
    until_ms: Millis | None = None
    """The last moment that is simulated; None lets every job come to its end."""

    @property
    def gpus(self) -> int:
        """GPUs of the whole fleet."""
        return sum(node.gpus for node in self.nodes)


class SimResult(Struct, frozen=True, kw_only=True):
    """Result of a simulation."""

    summary: Summary
    teams: dict[str, Summary]
    events: int
    meters: Meters
    fleet: Fleet
    work_ms: Mapping[JobId, float] = {}
    """Work that jobs which run at the last moment have behind them."""


def simulate(
    request: SimRequest,
    *,
    journal: Journal | None = None,
    witnesses: Sequence[Witness] = (),
    around: Callable[[Decider], Decider] | None = None,
) -> SimResult:
    """Run a simulation to its end, or to the last moment that is requested.

    `around` may put something between loop and decider.
    """
    start = Millis(min(0, request.jobs[0].submitted_ms)) if request.jobs else Millis(0)
    world = SimWorld(
        request.jobs,
        settings=request.settings,
        initial_events=[NodeJoined(start, node) for node in request.nodes],
        outages=request.faults,
        contention=request.contention,
        release_ms=request.release_ms,
    )
    world.ends = request.ends
    if request.until_ms is not None:
        world.last_ms = request.until_ms
    fleet = Fleet()
    shapes = {job.shape.key: job.shape for job in request.jobs}.values()
    decider = placing_decider(
        request.policy,
        request.settings.restart_cost_ms,
        shapes=shapes,
        has_gates=any(_is_gated(job) for job in request.jobs),
    )
    if around is not None:
        decider = around(decider)
    # Records hold no cycles; the collector would only walk over millions of them.
    gc_was_enabled = gc.isenabled()
    gc.disable()
    try:
        run(world, fleet, [decider], journal=journal, witnesses=witnesses)
    finally:
        if gc_was_enabled:
            gc.enable()
    summary, teams = world.meters.by_team(request.jobs, request.gpus)
    return SimResult(
        summary=summary,
        teams=teams,
        events=fleet.version,
        meters=world.meters,
        fleet=fleet,
        work_ms={} if request.until_ms is None else world.work_ms(request.until_ms),
    )


def _is_gated(job: Job) -> bool:
    """Return whether a job may be hidden from the policy: by its dependencies, array or nodes."""
    terms = job.terms
    return terms is not None and bool(
        terms.after
        or terms.ended_first
        or terms.array_most_always is True
        or terms.allow_pending is True
    )
