"""Nodes, jobs and fleets in one line each."""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from tenfold.fleet.fleet import Fleet
from tenfold.model.events import JobSubmitted, NodeJoined
from tenfold.model.fleet.constraints import Level
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, PoolId, SiteId, TeamId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.units import SECOND, Millis


def nodes(
    count: int,
    *,
    gpus: int = 8,
    accelerator: str = "",
    cpus: int = 0,
    memory_gib: int = 0,
    name: str = "n",
) -> list[Node]:
    """Return identical nodes; CPUs and memory of 0 are not counted."""
    return [
        Node(
            id=NodeId(f"{name}{number}"),
            pool=PoolId(name),
            site=SiteId("s"),
            accelerator=accelerator,
            gpus=gpus,
            cpus_milli=cpus * 1_000,
            memory_mib=memory_gib * 1_024,
        )
        for number in range(count)
    ]


def in_domains(members: Iterable[Node], per: Mapping[Level, int]) -> list[Node]:
    """Return nodes divided into domains of a size per level: `{"rack": 4, "leaf": 8}`."""

    def domain(level: Level, number: int) -> str:
        return f"{level}-{number // per[level]}" if level in per else ""

    return [
        replace(
            node,
            scaleup=domain("scale-up", number),
            rack=domain("rack", number),
            leaf=domain("leaf", number),
            pod=domain("pod", number),
        )
        for number, node in enumerate(members)
    ]


def job(
    number: int,
    gpus: float,
    *,
    at_s: float = 0,
    runs_s: float | None = None,
    per_node: int | None = None,
    team: str = "",
) -> Job:
    """Return the job submitted as `number`."""
    return Job(
        id=JobId(f"job-{number}"),
        shape=shape_of(gpus, gpus_per_node=per_node),
        submitted_ms=Millis(round(at_s * SECOND)),
        seq=number,
        team=TeamId(team),
        duration_ms=None if runs_s is None else Millis(round(runs_s * SECOND)),
    )


def fleet(members: Iterable[Node], *jobs: Job) -> Fleet:
    """Return a fleet of nodes that are up and empty, and pending jobs."""
    made = Fleet()
    made.apply_all([NodeJoined(Millis(0), node) for node in members])
    made.apply_all([JobSubmitted(one.submitted_ms, one) for one in jobs])
    return made
