"""Worlds small enough to try everything in: at most four nodes and six jobs."""

from random import Random

from msgspec.structs import replace

from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import StartJob
from tenfold.model.events import ActionOrdered, JobStarted, JobSubmitted, NodeJoined
from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, PoolId, SiteId, TeamId
from tenfold.model.job.job import WHOLE, Job, Slot, shape_of
from tenfold.model.job.terms import Terms
from tenfold.model.policy.governance import ANY, GovernanceRules, TeamRules
from tenfold.model.units import HOUR, MINUTE, Millis

NODES_MOST, JOBS_MOST = 4, 6
GPUS = (2, 4, 8)
TOGETHER = PlacementConstraints(within="rack", how="required")
NOW_MS = Millis(5 * HOUR)


def waiting_world(dice: Random) -> tuple[Fleet, GovernanceRules]:
    """Return an empty fleet for which jobs wait, and the rules for their teams."""
    nodes = _nodes(dice)
    fleet = _joined(nodes)
    most = max(node.gpus for node in nodes)
    for number in range(dice.randint(2, JOBS_MOST)):
        job = _job(dice, number, dice.choice("ab"), most)
        fleet.apply(JobSubmitted(Millis(0), job))
    return fleet, _rules(dice, sum(node.gpus for node in nodes))


def lent_world(dice: Random) -> tuple[Fleet, GovernanceRules, Job]:
    """Return a fleet that guests have borrowed, its rules, and an owner's job that waits."""
    nodes = _nodes(dice)
    fleet = _joined(nodes)
    most = max(node.gpus for node in nodes)
    for number in range(JOBS_MOST - 1):
        node = dice.choice(nodes)
        gpus = dice.randint(1, most)
        if gpus <= fleet.gpus_free[node.id]:
            guest = replace(_job(dice, number, "b", most), shape=shape_of(gpus))
            guest = replace(guest, terms=_terms(dice))
            _run(fleet, guest, (Slot(node.id, gpus),), dice.randrange(NOW_MS))
    total = sum(node.gpus for node in nodes)
    job = replace(_job(dice, JOBS_MOST, "a", most), submitted_ms=NOW_MS)
    fleet.apply(JobSubmitted(NOW_MS, job))
    owners = TeamRules(id=TeamId("a"), quota={ANY: total * WHOLE})
    return fleet, GovernanceRules(teams=(owners,), min_run_ms=Millis(0)), job


def _nodes(dice: Random) -> list[Node]:
    gpus = dice.choice(GPUS)
    return [
        Node(
            id=NodeId(f"n{number}"),
            pool=PoolId("p"),
            site=SiteId("s"),
            accelerator="h100",
            gpus=gpus,
            rack=f"r{number // 2}",
        )
        for number in range(dice.randint(2, NODES_MOST))
    ]


def _joined(nodes: list[Node]) -> Fleet:
    fleet = Fleet()
    fleet.apply_all([NodeJoined(Millis(0), node) for node in nodes])
    return fleet


def _job(dice: Random, number: int, team: str, most: int) -> Job:
    gpus, per_node, where = dice.randint(1, most), None, None
    if dice.random() < 0.3:
        gpus, per_node = most * 2, most
        where = TOGETHER if dice.random() < 0.5 else None
    return Job(
        id=JobId(f"job-{number}"),
        shape=shape_of(gpus, gpus_per_node=per_node, where=where),
        submitted_ms=Millis(0),
        seq=number,
        team=TeamId(team),
        priority=dice.choice((0, 0, 1)),
    )


def _terms(dice: Random) -> Terms:
    every_ms = dice.choice((None, Millis(10 * MINUTE), Millis(HOUR)))
    return Terms(checkpoint_every_ms=every_ms, preemptible=dice.random() < 0.8)


def _rules(dice: Random, total: int) -> GovernanceRules:
    """Return quotas that add up to the fleet, and limits that leave a team at least half of it."""
    first = dice.randint(0, total)
    teams = [
        TeamRules(
            id=TeamId(name),
            quota={ANY: quota * WHOLE},
            borrow={ANY: total // 2 * WHOLE} if dice.random() < 0.3 else {},
            lend={ANY: quota // 2 * WHOLE} if dice.random() < 0.3 else {},
        )
        for name, quota in (("a", first), ("b", total - first))
    ]
    return GovernanceRules(teams=tuple(teams), reservations=0)


def _run(fleet: Fleet, job: Job, slots: tuple[Slot, ...], at_ms: int) -> None:
    at = Millis(at_ms)
    fleet.apply(JobSubmitted(Millis(0), job))
    fleet.apply(ActionOrdered(at, StartJob(job.id, slots)))
    fleet.apply(JobStarted(at, job.id))
