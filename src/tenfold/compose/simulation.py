"""Wire a simulation: the one place that joins jobs, a policy, faults and the loop."""

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
from tenfold.model.units import DAY, Millis
from tenfold.sim.measure.meters import Meters, Summary
from tenfold.sim.world import SimSettings, SimWorld

if TYPE_CHECKING:
    from tenfold.sim.neighbourhood import Neighbourhood

SLACK_MS = 30 * DAY


class SimAsk(Struct, frozen=True, kw_only=True):
    """What to run: nodes, jobs in order of submission, a policy, and how the world behaves."""

    nodes: Sequence[Node]
    jobs: Sequence[Job]
    policy: Policy = Policy()
    settings: SimSettings = SimSettings()
    faults: Iterable[Fault] = ()
    neighbours: "Neighbourhood | None" = None
    release_ms: dict[JobId, Millis] = {}
    """When jobs come that are held back; the others come when they are submitted."""
    ends: Mapping[JobId, JobStatus] = {}
    """How jobs end that do not complete."""
    until_ms: Millis | None = None
    """The last moment that is simulated; None lets every job come to its end."""

    @property
    def gpus(self) -> int:
        """GPUs of the whole fleet."""
        return sum(node.gpus for node in self.nodes)


class SimResult(Struct, frozen=True, kw_only=True):
    """What came of it."""

    summary: Summary
    teams: dict[str, Summary]
    events: int
    meters: Meters
    fleet: Fleet
    work_ms: Mapping[JobId, float] = {}
    """Work that jobs which run at the last moment have behind them."""


def simulate(
    ask: SimAsk,
    *,
    journal: Journal | None = None,
    witnesses: Sequence[Witness] = (),
    around: Callable[[Decider], Decider] | None = None,
) -> SimResult:
    """Run a simulation to its end, or to the last moment that is asked for.

    `around` may put something between loop and decider.
    """
    start = Millis(min(0, ask.jobs[0].submitted_ms)) if ask.jobs else Millis(0)
    world = SimWorld(
        ask.jobs,
        settings=ask.settings,
        before=[NodeJoined(start, node) for node in ask.nodes],
        outages=ask.faults,
        neighbours=ask.neighbours,
        release_ms=ask.release_ms,
    )
    world.ends = ask.ends
    if ask.until_ms is not None:
        world.last_ms = ask.until_ms
    fleet = Fleet()
    shapes = {job.shape.key: job.shape for job in ask.jobs}.values()
    with_after = any(job.terms is not None and job.terms.after for job in ask.jobs)
    decider = placing_decider(
        ask.policy, ask.settings.restart_cost_ms, shapes=shapes, with_after=with_after
    )
    if around is not None:
        decider = around(decider)
    # Records hold no cycles; the collector would only walk over millions of them.
    collects = gc.isenabled()
    gc.disable()
    try:
        run(world, fleet, [decider], journal=journal, witnesses=witnesses)
    finally:
        if collects:
            gc.enable()
    summary, teams = world.meters.by_team(ask.jobs, ask.gpus)
    return SimResult(
        summary=summary,
        teams=teams,
        events=fleet.version,
        meters=world.meters,
        fleet=fleet,
        work_ms={} if ask.until_ms is None else world.work_ms(ask.until_ms),
    )


def horizon_ms(jobs: Sequence[Job], gpus: int, released_ms: int = 0) -> Millis:
    """Return a time by which any sane policy is done, for laws of failure that need an end."""
    work = sum((job.duration_ms or 0) * max(1, job.shape.gpus) for job in jobs)
    last = max(released_ms, max((job.submitted_ms for job in jobs), default=0))
    return Millis(last + 4 * work // max(1, gpus) + SLACK_MS)
