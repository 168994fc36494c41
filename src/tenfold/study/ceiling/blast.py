"""Which jobs of a trace each failure domain would take down, at peak use or at a given time.

Jobs are placed by simulating the policy; the loss itself is computed, not simulated. A test checks
that both agree.
"""

from collections.abc import Sequence

from msgspec import Struct

from tenfold.compose.inputs import PreparedRun
from tenfold.compose.simulation import SimRequest, simulate
from tenfold.engine.loop import Decider
from tenfold.fleet.fleet import Fleet
from tenfold.model.decision import Decision
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import WHOLE, PriorRuns, Run
from tenfold.model.units import Millis
from tenfold.physics.blast import Blast, blast_radius, domain_members
from tenfold.physics.blast_jobs import PlacedJob, StoppedJobs, placed_at, stopped_jobs, worst_node


class Moment(Struct, frozen=True, kw_only=True):
    """What runs at one time of a simulation, and where."""

    at_ms: Millis
    gpus_held: float
    placed: list[PlacedJob]


class DomainLoss(Struct, frozen=True, kw_only=True):
    """A domain, and what its loss does to jobs; None if it takes no node down."""

    domain: Blast
    hit: StoppedJobs | None


def placed_in(request: SimRequest, at_ms: Millis | None = None) -> Moment:
    """Run a simulation and return what ran at a given time, or when most GPUs were allocated."""
    watch = _Watch(at_ms)
    simulate(request, witnesses=[watch])
    moment_ms = watch.at_ms if at_ms is None else at_ms
    placed = placed_at(
        watch.running,
        watch.past,
        moment_ms,
        checkpoint_every_ms=request.settings.checkpoint_every_ms,
        restart_cost_ms=request.settings.restart_cost_ms,
    )
    return Moment(at_ms=moment_ms, gpus_held=watch.held_milli / WHOLE, placed=placed)


def losses(prepared: PreparedRun, catalogue: Catalogue, moment: Moment) -> list[DomainLoss]:
    """Return every domain of a fleet with the jobs that its loss would stop."""
    nodes = [node.id for node in prepared.request.nodes]
    members = domain_members(prepared.layout, catalogue)
    rows: list[DomainLoss] = []
    for row in blast_radius(prepared.layout, catalogue):
        numbers = members.get((row.kind, row.name))
        hit = None
        if numbers is not None:
            names = [nodes[int(number)] for number in numbers]
            hit = _hit(row, names, moment.placed)
        rows.append(DomainLoss(domain=row, hit=hit))
    return rows


def _hit(row: Blast, names: Sequence[NodeId], placed: Sequence[PlacedJob]) -> StoppedJobs:
    return worst_node(names, placed) if row.kind == "node" else stopped_jobs(names, placed)


class _Watch:
    """A witness that keeps what runs at peak allocation, or at a given time."""

    def __init__(self, until_ms: Millis | None) -> None:
        self._until_ms = until_ms
        self.at_ms = Millis(0)
        self.held_milli = 0
        self.running: dict[JobId, Run] = {}
        self.past: dict[JobId, PriorRuns] = {}

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        """Keep this state if it is closer to the requested time."""
        if self._until_ms is not None and now_ms > self._until_ms:
            return
        held = sum(
            slot.milli or slot.gpus * WHOLE for run in fleet.running.values() for slot in run.slots
        )
        if self._until_ms is not None or held > self.held_milli:
            self.at_ms, self.held_milli = now_ms, held
            self.running, self.past = dict(fleet.running), dict(fleet.past)
