"""Small mixed fleets, and jobs that ask for shares, CPUs and memory of them."""

from collections.abc import Sequence

from tenfold.decide.place.score.scored import ScoredCapacity, make_capacity
from tenfold.fleet.fleet import Fleet
from tenfold.model.events import NodeJoined
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, PoolId, SiteId
from tenfold.model.job.job import Job, Shape
from tenfold.model.policy.policy import Placement
from tenfold.model.units import SECOND, Millis


def node(
    name: str, gpus: int = 8, *, cpus: int = 0, memory_gib: int = 0, accelerator: str = "A"
) -> Node:
    return Node(
        id=NodeId(name),
        pool=PoolId("p"),
        site=SiteId("s"),
        accelerator=accelerator if gpus else "",
        gpus=gpus,
        cpus_milli=cpus * 1_000,
        memory_mib=memory_gib * 1_024,
    )


def fleet(*nodes: Node) -> Fleet:
    made = Fleet()
    made.apply_all([NodeJoined(Millis(0), one) for one in nodes])
    return made


def room(placement: Placement, *nodes: Node) -> ScoredCapacity:
    return make_capacity(fleet(*nodes), placement)


def jobs(shapes: Sequence[Shape], *, apart_s: int = 0, lasting_s: int = 60) -> list[Job]:
    return [
        Job(
            id=JobId(f"job-{seq}"),
            shape=shape,
            submitted_ms=Millis(seq * apart_s * SECOND),
            seq=seq,
            duration_ms=Millis(lasting_s * SECOND),
        )
        for seq, shape in enumerate(shapes)
    ]
