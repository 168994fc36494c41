"""The analytic blast radius against the simulated kill of every domain, and they are equal.

Jobs fill a fleet. Then, in a run of its own, all nodes of one domain are lost at one moment,
in the middle of everything. What the journal and the meters of that run say is compared with
what was worked out beforehand: nodes, GPUs, jobs stopped, and GPU-hours since the last save.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from tenfold.cli.main import main
from tenfold.compose.fleet import load_facts
from tenfold.compose.inputs import PreparedRun
from tenfold.compose.simulation import SimRequest, simulate
from tenfold.files.fleet.read import load_fleet
from tenfold.model.events import Event, JobStopped, NodeLost
from tenfold.model.fault import Fault
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Slot
from tenfold.model.policy.policy import Policy, PolicyName
from tenfold.model.units import HOUR, MINUTE, Millis
from tenfold.physics.blast import Blast, blast_radius, domain_members
from tenfold.physics.blast_jobs import PlacedJob, StoppedJobs, stopped_jobs
from tenfold.physics.layout import lay_out
from tenfold.physics.nodes import nodes_of
from tenfold.sim.workload.generate import Demand, generate_jobs
from tenfold.sim.world import SimSettings
from tenfold.study.ceiling.blast import losses, placed_in
from tenfold.study.sim.workload import teams_of

EXAMPLES = Path(__file__).parents[2] / "examples"
CATALOGUE = load_facts()
OFF_BEAT_MS = 137
"""Jobs begin and end on whole seconds: between them nothing else happens at the moment."""
FLEETS: list[tuple[str, str, PolicyName]] = [
    ("bank-three-sites", "muri-heavy", "tenfold"),
    ("research-256", "research", "fifo"),
    ("edge-sites", "edge", "fifo"),
    ("oversubscribed", "muri-heavy", "las"),
]


class Kept:
    """A journal in memory."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def append(self, events: Sequence[Event]) -> None:
        self.events += events


def prepared(folder: str, mix: str, policy: PolicyName) -> PreparedRun:
    spec = load_fleet(EXAMPLES / folder / "fleet.toml", CATALOGUE)
    layout = lay_out(spec)
    nodes = list(nodes_of(spec, layout))
    demand = Demand(span_ms=Millis(6 * HOUR), load=1.0, teams=teams_of(spec, CATALOGUE))
    jobs = generate_jobs(CATALOGUE.workloads.get(mix), nodes, demand, seed=7)
    request = SimRequest(
        nodes=nodes,
        jobs=jobs,
        policy=Policy(name=policy),
        settings=SimSettings(checkpoint_every_ms=Millis(20 * MINUTE)),
    )
    return PreparedRun(request=request, spec=spec, layout=layout, notes=())


def killed(
    request: SimRequest, lost: Sequence[NodeId], at_ms: Millis
) -> tuple[int, int, StoppedJobs]:
    """Return nodes and GPUs lost, and the jobs hit, as a simulation has it."""
    journal = Kept()
    back_ms = Millis(at_ms + HOUR)
    faults = [Fault(at_ms, node, back_ms, "domain lost") for node in lost]
    result = simulate(replace(request, faults=faults), journal=journal)
    gpus_of = {node.id: node.gpus for node in request.nodes}
    gone = [one.node_id for one in journal.events if isinstance(one, NodeLost)]
    stopped = {
        one.job_id: None
        for one in journal.events
        if isinstance(one, JobStopped) and one.cause == "node-lost" and one.at_ms == at_ms
    }
    shapes = {job.id: job.shape.gpus for job in request.jobs}
    hit = StoppedJobs(
        jobs=tuple(stopped),
        gpus=sum(shapes[job] for job in stopped),
        gpu_hours_lost=result.summary.gpu_hours_lost,
    )
    assert result.summary.finished == len(request.jobs), "what was stopped ran again to its end"
    return len(gone), sum(gpus_of[node] for node in gone), hit


def same(foreseen: StoppedJobs, seen: StoppedJobs) -> bool:
    return (
        sorted(foreseen.jobs) == sorted(seen.jobs)
        and foreseen.gpus == seen.gpus
        and foreseen.gpu_hours_lost == pytest.approx(seen.gpu_hours_lost, abs=1e-9)
    )


@pytest.mark.parametrize(("folder", "mix", "policy"), FLEETS, ids=str)
def test_every_domain_takes_what_its_simulated_kill_takes(
    folder: str, mix: str, policy: PolicyName
):
    ready = prepared(folder, mix, policy)
    busiest = placed_in(ready.request)
    at_ms = Millis(busiest.at_ms + OFF_BEAT_MS)
    moment = placed_in(ready.request, at_ms)
    assert moment.gpus_held == busiest.gpus_held > 0.5 * ready.request.gpus
    assert simulate(ready.request).summary.gpu_hours_lost == 0, "nothing else loses work here"
    names = [node.id for node in ready.request.nodes]
    members = domain_members(ready.layout, CATALOGUE)
    rows = losses(ready, CATALOGUE, moment)
    compared = 0
    for row in rows:
        domain, numbers = row.domain, members.get((row.domain.kind, row.domain.name))
        if numbers is None:
            assert domain.nodes == 0, "a domain without members takes no node"
            continue
        places = [[int(one)] for one in numbers] if domain.kind == "node" else [list(numbers)]
        seen: list[StoppedJobs] = []
        for place in places:
            lost = [names[int(one)] for one in place]
            nodes, gpus, hit = killed(ready.request, lost, at_ms)
            assert (nodes, gpus) == (domain.nodes, domain.gpus), domain.name
            assert same(stopped_jobs(lost, moment.placed), hit), domain.name
            seen.append(hit)
        assert row.hit is not None
        worst = max(seen, key=lambda hit: hit.gpu_hours_lost)
        assert row.hit.gpu_hours_lost == pytest.approx(worst.gpu_hours_lost, abs=1e-9)
        compared += len(places)
    assert compared >= len(names) + len(ready.spec.sites)


def test_every_domain_that_takes_nodes_has_its_members():
    for folder, *_ in FLEETS:
        spec = load_fleet(EXAMPLES / folder / "fleet.toml", CATALOGUE)
        layout = lay_out(spec)
        members = domain_members(layout, CATALOGUE)
        for row in blast_radius(layout, CATALOGUE):
            found = members.get((row.kind, row.name))
            assert (0 if found is None else len(found)) == row.nodes * _standing_for(row)


def _standing_for(row: Blast) -> int:
    return row.count if row.kind == "node" else 1


def test_a_gang_is_hit_once_and_whole():
    gang = PlacedJob(JobId("gang"), _slots("a", "b"), HOUR)
    other = PlacedJob(JobId("other"), _slots("c"), 2 * HOUR)
    hit = stopped_jobs([NodeId("a"), NodeId("b")], [gang, other])
    assert hit == StoppedJobs(jobs=(JobId("gang"),), gpus=16, gpu_hours_lost=16.0)
    assert stopped_jobs([], [gang, other]) == StoppedJobs()


def _slots(*names: str):
    return tuple(Slot(NodeId(name), 8) for name in names)


def test_the_command_tells_domains_with_the_jobs_they_stop(capsys: pytest.CaptureFixture[str]):
    folder = EXAMPLES / "bank-three-sites"
    words = ["fleet", "domains", str(folder / "fleet.toml"), "--jobs", str(folder / "jobs.csv")]
    assert main([*words, "--kind", "site", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in told["domains"]] == ["frankfurt", "dublin", "zurich"]
    # Gangs are counted in every site that they lie in.
    assert sum(row["jobs"] for row in told["domains"]) >= told["jobs_running"] > 0
    assert main([*words, "--at-h", "0"]) == 0
    assert "GPU-h lost" in capsys.readouterr().out
