"""A real control plane over two local engines: jobs of a site that is lost go on at the other."""

import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from contract.executor.same_job import ask, check_same_job, log_of, shown, tenfold, until_over
from patience import until
from tenfold.compose.fleet import load_facts
from tenfold.compose.policy_fleet import policy_for_fleet
from tenfold.compose.simulation import SimRequest, simulate
from tenfold.files.fleet.read import load_fleet
from tenfold.live.local.executor import LocalExecutor
from tenfold.model.actions import StartJob
from tenfold.model.events import ActionOrdered, Event
from tenfold.model.fault import Fault
from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.job.terms import Terms
from tenfold.model.policy.policy import Policy
from tenfold.model.units import HOUR, Millis
from tenfold.physics.nodes import nodes_of
from unit.up_process import Up

FLEET = """\
name = "two-halls"

[[site]]
name = "north"

[[site]]
name = "south"
residency = ["eu"]

[[pool]]
name = "n"
site = "north"
shape = "DGX-H100"
nodes = 2
price = { kind = "reserved", usd_per_gpu_hour = 2.5 }

[[pool]]
name = "s"
site = "south"
shape = "DGX-H100"
nodes = 2
price = { kind = "reserved", usd_per_gpu_hour = 2.0 }

[[link]]
between = ["north", "south"]
gbps = 10
latency_ms = 5
usd_per_gb = 0.02

[[data]]
name = "corpus"
gb = 4000
sites = ["north"]
"""
SITES = """\
[[site]]
name = "north"
engine = "local"
lost_after_s = 2

[[site]]
name = "south"
engine = "local"
lost_after_s = 2
"""
COUNTS = """\
name = "count"
gpus_per_node = 8
grace = "1s"
time_limit = "12h"
needs = [NEEDS]
data = [DATA]
command = ["sh", "-c", '''
n=$(cat "$TENFOLD_CHECKPOINT_DIR/n" 2>/dev/null || echo 0); echo "from $n on $TENFOLD_NODES"
if [ "$n" -gt 0 ]; then exit 0; fi
echo 7 > "$TENFOLD_CHECKPOINT_DIR/n"; echo saved
while :; do sleep 1000 & wait $!; done''']
checkpoint = { dir = "saves" }
"""


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    (tmp_path / "fleet.toml").write_text(FLEET)
    (tmp_path / "sites.toml").write_text(SITES)
    made = Up(tmp_path / "home")
    start(made, tmp_path)
    yield made
    made.interrupt()
    for name in ("north", "south"):
        last = LocalExecutor(str(made.home / "run" / "sites" / name))
        last.stop_spawner()
        last.close()


def start(up: Up, folder: Path) -> None:
    files = ("--fleet", str(folder / "fleet.toml"), "--sites", str(folder / "sites.toml"))
    up.start(*files, "--team-users", "off")


def submit(up: Up, folder: Path, needs: str = "", data: str = "") -> None:
    file = folder / "count.toml"
    file.write_text(COUNTS.replace("NEEDS", needs).replace("DATA", data))
    answer = tenfold(up, "job", "submit", str(file))
    assert answer.returncode == 0, answer.stderr


def spawner(up: Up, site: str) -> int:
    direct = LocalExecutor(str(up.home / "run" / "sites" / site))
    direct.close()
    return direct.link.spawner


def states(up: Up) -> dict[str, str]:
    return {one["id"]: one["state"] for one in ask(up, "nodes").json()["nodes"]}


def site_of(up: Up, job: str) -> str:
    return "north" if shown(up, job)["attempts"][-1]["nodes"][0].startswith("n") else "south"


def test_the_job_file_of_every_executor_runs_over_sites(up: Up, tmp_path: Path):
    check_same_job(up, tmp_path)


def test_a_job_of_a_site_that_hangs_goes_on_from_its_checkpoint_at_the_other(
    up: Up, tmp_path: Path
):
    submit(up, tmp_path)
    until(lambda: "saved" in log_of(up, "count-1"), pause_s=0.1)
    first = site_of(up, "count-1")
    hung = spawner(up, first)
    os.kill(hung, signal.SIGSTOP)
    try:
        found = until_over(up, "count-1")
        assert found["state"] == "succeeded"
        assert [one["reason"] for one in found["attempts"]][:1] == ["node-lost"]
        assert site_of(up, "count-1") != first
        assert log_of(up, "count-1").startswith("from 7 on ")
        assert [one for one in states(up).values()].count("down") == 2
    finally:
        os.kill(hung, signal.SIGCONT)
    until(lambda: "down" not in states(up).values(), pause_s=0.1)


def test_a_job_that_must_stay_waits_and_says_why(up: Up, tmp_path: Path):
    submit(up, tmp_path, needs='"eu"')
    until(lambda: "saved" in log_of(up, "count-1"), pause_s=0.1)
    assert site_of(up, "count-1") == "south"
    hung = spawner(up, "south")
    os.kill(hung, signal.SIGSTOP)
    try:
        until(lambda: shown(up, "count-1")["state"] == "pending", pause_s=0.1)
        why = tenfold(up, "job", "why", "count-1").stdout
        assert "all 2 nodes with these tags are unavailable" in why, why
        assert "tagged `eu`" in why, why
    finally:
        os.kill(hung, signal.SIGCONT)
    assert until_over(up, "count-1")["state"] == "succeeded"


def test_the_simulator_starts_the_same_jobs_at_the_same_sites(up: Up, tmp_path: Path):
    """One story: the cheaper site is lost, one of its jobs moves and one waits, and it is back."""
    submit(up, tmp_path)
    submit(up, tmp_path, data='"corpus"')
    submit(up, tmp_path, needs='"eu"')
    jobs = [f"count-{number}" for number in (1, 2, 3)]
    until(lambda: all("saved" in log_of(up, job) for job in jobs), pause_s=0.1)
    hung = spawner(up, "south")
    os.kill(hung, signal.SIGSTOP)
    try:
        until(lambda: len(shown(up, jobs[0])["attempts"]) == 2, pause_s=0.1)
        until(lambda: shown(up, jobs[2])["state"] == "pending", pause_s=0.1)
    finally:
        os.kill(hung, signal.SIGCONT)
    until_over(up, jobs[2])
    live = {
        job: ["north" if one["nodes"][0][0] == "n" else "south" for one in attempts]
        for job in jobs
        for attempts in [shown(up, job)["attempts"]]
    }
    assert live == {
        "count-1": ["south", "north"],
        "count-2": ["north"],
        "count-3": ["south", "south"],
    }
    assert simulated(tmp_path / "fleet.toml", jobs) == live
    assert tenfold(up, "job", "cancel", jobs[1]).returncode == 0
    until_over(up, jobs[1])


def simulated(fleet: Path, names: list[str]) -> dict[str, list[str]]:
    """Return at which sites each job of the story starts in a simulation."""
    spec = load_fleet(fleet, load_facts())
    terms = [None, Terms(data=("corpus",)), None]
    wheres = [None, None, PlacementConstraints(needs=("eu",))]
    nodes = list(nodes_of(spec))
    sites = {node.id: str(node.site) for node in nodes}
    started: dict[str, list[str]] = {name: [] for name in names}

    class Starts:
        def append(self, events: Sequence[Event]) -> None:
            for event in events:
                if isinstance(event, ActionOrdered) and isinstance(event.action, StartJob):
                    started[event.action.job_id].append(sites[event.action.slots[0].node])

    simulate(
        SimRequest(
            nodes=nodes,
            jobs=[
                Job(
                    id=JobId(name),
                    shape=shape_of(8, where=where),
                    submitted_ms=Millis(seq),
                    seq=seq,
                    limit_ms=Millis(12 * HOUR),
                    duration_ms=Millis(100_000),
                    terms=of_job,
                )
                for seq, (name, of_job, where) in enumerate(zip(names, terms, wheres, strict=True))
            ],
            policy=policy_for_fleet(Policy(), spec),
            faults=[
                Fault(Millis(10_000), node.id, Millis(50_000))
                for node in nodes
                if node.site == "south"
            ],
        ),
        journal=Starts(),
    )
    return started


def test_a_control_plane_that_is_killed_finds_its_jobs_at_every_site(up: Up, tmp_path: Path):
    for _ in range(4):
        submit(up, tmp_path)
    jobs = [f"count-{number}" for number in range(1, 5)]
    until(lambda: all("saved" in log_of(up, job) for job in jobs), pause_s=0.1)
    assert sorted(site_of(up, job) for job in jobs) == ["north", "north", "south", "south"]
    up.kill()
    start(up, tmp_path)
    for job in jobs:
        found = shown(up, job)
        assert (found["state"], len(found["attempts"])) == ("running", 1)
        assert tenfold(up, "job", "cancel", job).returncode == 0
    for job in jobs:
        assert until_over(up, job)["state"] == "cancelled"
