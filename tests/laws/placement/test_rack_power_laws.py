"""Rack power is a hard limit under every policy: what a rack cannot feed does not start."""

import json
from pathlib import Path

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from tenfold.cli.main import main
from tenfold.compose.policies import placing_decider
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import StartJob
from tenfold.model.events import JobSubmitted, NodeJoined
from tenfold.model.policy.policy import Policy
from tenfold.model.units import Millis
from tenfold.testing.builders import job, nodes

POLICIES = ("tenfold", "governed", "fifo", "sjf", "srtf", "srsf", "las", "edf", "fair", "slurm")
FLEET = """
[[site]]
name = "dc1"
rack_kw = {rack_kw}

[[pool]]
name = "h100"
site = "dc1"
accelerator = "H100"
nodes = 4
gpus_per_node = 8
nodes_per_rack = 4
"""
JOBS = "job_id,submit_s,duration_s,gpus{more}\n" + "".join(
    f"a{number},0,3600,8{{value}}\n" for number in range(4)
)


@pytest.mark.parametrize("cpus", ["", "4"])
@pytest.mark.parametrize("policy", POLICIES)
def test_no_policy_starts_more_than_a_rack_can_feed(
    policy: str, cpus: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """R143: four nodes of 10 kW in a rack of 30 kW: two run at once, with two idle."""
    (tmp_path / "jobs.csv").write_text(
        JOBS.format(more=",cpus" if cpus else "", value=f",{cpus}" if cpus else "")
    )
    lasts: dict[int, float] = {}
    for rack_kw in (30, 60):
        fleet = tmp_path / f"fleet{rack_kw}.toml"
        fleet.write_text(FLEET.format(rack_kw=rack_kw))
        words = ["sim", "run", "--fleet", str(fleet), "--jobs", str(tmp_path / "jobs.csv")]
        main([*words, "--policy", policy, "--json"])
        report = json.loads(capsys.readouterr().out)
        assert report["finished"] == 4
        lasts[rack_kw] = report["makespan_s"]
    assert lasts[60] == 3600
    assert lasts[30] >= 7200


@pytest.mark.parametrize(("always", "starts"), [(True, 2), (UNSET, 4)])
def test_nodes_of_stored_journals_are_placed_as_before(always: bool, starts: int):
    """Only `governed` knew racks when these were written: a replay must decide the same."""
    drawn = {"rack": "r", "watts_per_gpu": 100, "rack_watts": 1_600, "rack_watts_always": always}
    fleet = Fleet()
    for node in nodes(4):
        fleet.apply(NodeJoined(Millis(0), replace(node, **drawn)))
    for number in range(4):
        fleet.apply(JobSubmitted(Millis(0), job(number + 1, 8)))
    decision = placing_decider(Policy(name="fifo")).decide(fleet, Millis(0), ())
    assert sum(isinstance(action, StartJob) for action in decision.actions) == starts
