"""The scale tests of KAI, as jobs, nodes and terms of teams.

A filler team has taken every GPU with jobs of one; what it holds beyond its quota is
borrowed. Gangs of a second team come a while later, within theirs.
"""

from itertools import product

from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, PoolId, SiteId, TeamId
from tenfold.model.job.job import WHOLE, Job, Shape, shape_of
from tenfold.model.policy.governance import GovernanceRules, TeamRules
from tenfold.model.units import HOUR, Millis

GPU = "gpu"
GPUS_PER_NODE = 8
NODES = 500
GANG_PODS = 10
FILLER = TeamId("filler")
OWNER = TeamId("owner")
LATER_MS = Millis(HOUR)
"""When gangs come that find the fleet full."""
RUN_MS = Millis(10 * HOUR)
LEVELS = (4, 8, 8)
"""Zones, blocks in each, racks in each of those: three levels above 512 nodes."""
NODES_PER_RACK = 2
SPREAD_PODS = 512
SPREAD_GPUS = 2
RECLAIM_GANGS = 50
RECLAIM_GPUS = GPUS_PER_NODE // 2 + 1
"""Of each pod: more than half of a node, so that no two share one."""


def flat_nodes(count: int) -> list[Node]:
    """Return nodes of 8 GPUs without places."""
    return [_node(f"node-{number}") for number in range(count)]


def placed_nodes() -> list[Node]:
    """Return 512 nodes in racks, blocks and zones."""
    found: list[Node] = []
    for zone, block, rack, place in product(*map(range, (*LEVELS, NODES_PER_RACK))):
        where = f"{zone}-{block}-{rack}"
        found.append(
            _node(
                f"node-{where}-{place}",
                rack=f"rack-{where}",
                leaf=f"block-{zone}-{block}",
                pod=f"zone-{zone}",
            )
        )
    return found


def fillers(count: int, team: TeamId = FILLER) -> list[Job]:
    """Return jobs of one GPU, all at once."""
    shape = shape_of(1)
    return [_job(f"filler-{number}", shape, team, Millis(0), number) for number in range(count)]


def blocked_filler(seq: int) -> Job:
    """Return a job that waits, so that the starts before it are old news when gangs come."""
    return _job("filler-waiting", shape_of(1), FILLER, Millis(LATER_MS // 2), seq)


def spread_gang() -> Job:
    """Return one gang with a pod for every node, in racks where that goes."""
    where = PlacementConstraints(within="rack", how="preferred")
    gpus = SPREAD_PODS * SPREAD_GPUS
    shape = shape_of(gpus, gpus_per_node=SPREAD_GPUS, where=where)
    return _job("gang", shape, OWNER, Millis(0), 0)


def late_gangs(count: int, gpus_per_pod: int, first_seq: int) -> list[Job]:
    """Return gangs of ten pods that come when the fleet has long been full."""
    shape = shape_of(GANG_PODS * gpus_per_pod, gpus_per_node=gpus_per_pod)
    return [
        _job(f"gang-{number}", shape, OWNER, LATER_MS, first_seq + number)
        for number in range(count)
    ]


def governance_of(filler_gpus: int, owner_gpus: int) -> GovernanceRules:
    """Return the rules for two teams with these quotas, who lend and borrow as they like."""
    quotas = {FILLER: filler_gpus, OWNER: owner_gpus}
    teams = (TeamRules(id=team, quota={GPU: gpus * WHOLE}) for team, gpus in quotas.items())
    return GovernanceRules(teams=tuple(teams), min_run_ms=Millis(0), reservations=0)


def _job(name: str, shape: Shape, team: TeamId, at_ms: Millis, seq: int) -> Job:
    return Job(
        id=JobId(name), shape=shape, submitted_ms=at_ms, seq=seq, team=team, duration_ms=RUN_MS
    )


def _node(name: str, *, rack: str = "", leaf: str = "", pod: str = "") -> Node:
    return Node(
        id=NodeId(name),
        pool=PoolId("kai"),
        site=SiteId("bench"),
        accelerator=GPU,
        gpus=GPUS_PER_NODE,
        rack=rack,
        leaf=leaf,
        pod=pod,
    )
