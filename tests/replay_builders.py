"""Runs to be recorded: a small fleet that queues, preempts, loses nodes and fails starts."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

from tenfold.compose.simulation import SimRequest, SimResult
from tenfold.engine.recording import Line
from tenfold.files.records.replay_bundle import Bundle, read_bundle
from tenfold.model.fault import Fault
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, PoolId, SiteId, TeamId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.policy.policy import Policy, PolicyName
from tenfold.model.units import HOUR, MINUTE, SECOND, Millis
from tenfold.sim.world import SimSettings
from tenfold.study.replay.bundle import simulate_recorded

ROUGH = SimSettings(
    restart_cost_ms=Millis(MINUTE),
    start_delay_ms=Millis(7 * SECOND),
    stop_delay_ms=Millis(3 * SECOND),
    start_failure_share=0.1,
    seed=3,
)
"""A world whose hands are slow and sometimes fail."""


def node(name: str, gpus: int = 8) -> Node:
    return Node(id=NodeId(name), pool=PoolId("p"), site=SiteId("s"), accelerator="A", gpus=gpus)


NODES = [node(f"n{number}") for number in range(4)]


def job(
    name: str, gpus: float = 8, *, at_s: int = 0, lasts_s: int = 600, seq: int = 0, team: str = ""
) -> Job:
    return Job(
        id=JobId(name),
        shape=shape_of(gpus),
        submitted_ms=Millis(at_s * SECOND),
        seq=seq,
        team=TeamId(team),
        duration_ms=Millis(lasts_s * SECOND),
    )


def crowd(seed: int = 1, count: int = 60, *, shares: bool = False) -> list[Job]:
    """More work than four nodes carry at once, some of it at one moment, some of no length."""
    random = Random(seed)
    at_s = 0
    jobs: list[Job] = []
    for seq in range(count):
        at_s += random.choice([0, 0, 1, 60, 300])
        gpus = 64 if seq == 7 else random.choice([0.5 if shares else 1, 1, 1, 2, 4, 8, 16])
        lasts_s = random.choice([0, 1, 60, 3_600, 7_200])
        team = random.choice(["red", "green", "blue"])
        jobs.append(job(f"job-{seq}", gpus, at_s=at_s, lasts_s=lasts_s, seq=seq, team=team))
    return jobs


def outages(seed: int = 5) -> list[Fault]:
    """Nodes that go one after the other and return."""
    random = Random(seed)
    at_ms = 0
    faults: list[Fault] = []
    for number in range(12):
        at_ms += random.randrange(MINUTE, HOUR)
        until_ms = at_ms + random.randrange(MINUTE, HOUR // 2)
        faults.append(Fault(Millis(at_ms), NodeId(f"n{number % 4}"), Millis(until_ms), "xid-79"))
    return faults


def request(
    policy: PolicyName = "tenfold",
    *,
    jobs: Sequence[Job] | None = None,
    nodes: Sequence[Node] = NODES,
    settings: SimSettings | None = None,
    faults: Sequence[Fault] | None = None,
) -> SimRequest:
    return SimRequest(
        nodes=nodes,
        jobs=crowd() if jobs is None else jobs,
        policy=Policy(name=policy),
        settings=settings or SimSettings(),
        faults=outages() if faults is None else faults,
    )


def recorded(asked: SimRequest, path: Path) -> tuple[SimResult, Bundle]:
    """Run a simulation, write its bundle and read it back."""
    result, _ = simulate_recorded(asked, bundle=path)
    return result, read_bundle(path)


def with_lines(bundle: Bundle, lines: Sequence[Line]) -> Bundle:
    """Return a bundle that tells something else."""
    return Bundle(file=bundle.file, header=bundle.header, lines=list(lines), end=bundle.end)
