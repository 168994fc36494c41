"""What `tenfold up --demo` plays, and that a node of it can be lost and mended."""

import json
from pathlib import Path

import pytest

import tenfold
from tenfold.cli.main import main
from tenfold.cli.up.demo import SPEED, DemoPlayer, demo_fleet, demo_work, submission
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.units import HOUR, SECOND, Millis
from unit.up_process import Up


def a_job(number: int, at_ms: int, gpus: float = 1.0) -> Job:
    shape = shape_of(gpus)
    job_id, team = JobId(f"j-{number}"), TeamId("ads")
    return Job(
        id=job_id,
        shape=shape,
        submitted_ms=Millis(at_ms),
        team=team,
        duration_ms=Millis(HOUR),
    )


def test_the_fleet_has_256_gpus_and_the_work_is_of_15_teams_over_three_weeks(tmp_path: Path):
    path = demo_fleet(tmp_path)
    fleet = tenfold.load_fleet(path)
    assert (fleet.nodes, fleet.gpus, len(fleet.teams)) == (32, 256, 15)
    assert sum(sum(team.quota_gpus.values()) for team in fleet.teams) == 256
    jobs = demo_work(path)
    assert len({job.team for job in jobs}) == 15
    assert jobs == demo_work(path)
    assert 20 * 24 * HOUR < jobs[-1].submitted_ms <= 21 * 24 * HOUR


@pytest.mark.parametrize(
    ("gpus", "nodes", "each"), [(0.5, 1, 0.5), (1, 1, 1), (8, 1, 8), (64, 8, 8)]
)
def test_a_job_sleeps_for_its_part_of_the_time_on_as_many_gpus(
    gpus: float, nodes: int, each: float
):
    handed_in = submission(a_job(1, 0, gpus))
    assert (handed_in["nodes"], handed_in["gpus_per_node"]) == (nodes, each)
    assert handed_in["command"] == ["sleep", f"{3_600 / SPEED:.3f}"]


def test_jobs_are_handed_in_when_their_time_has_come_and_a_later_start_goes_on(tmp_path: Path):
    jobs = [a_job(number, number * SPEED * SECOND) for number in range(10)]
    player = DemoPlayer(tmp_path, jobs)
    assert [job.id for job in player.due(0, 0, 2.5)] == ["j-0", "j-1", "j-2"]
    assert [job.id for job in player.due(3, 0, 2.5)] == []
    (tmp_path / "demo.json").write_text("7")
    assert player.done == 7
    assert [job.id for job in player.due(7, 7, 1.0)] == ["j-7", "j-8"]
    assert "3 of 10 jobs" in player.summary


def test_the_demo_plays_and_a_leaf_switch_can_be_killed_and_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    up = Up(tmp_path / "home")
    said = up.start("--demo")
    # Its state is in a folder of the state directory, where other commands find it.
    monkeypatch.setenv("TENFOLD_HOME", str(up.home))
    try:
        assert "fail a leaf switch: tenfold node fail 'h100-[1-8]' --cause leaf-switch" in said
        with tenfold.Client() as client:
            kinds = (event.kind for event in client.events(after=0))
            assert "JobEnded" in kinds
        assert main(["node", "fail", "h100-[1-8]", "--cause", "leaf-switch", "--json"]) == 0
        assert [one["state"] for one in json.loads(capsys.readouterr().out)] == ["down"] * 8
        assert main(["node", "uncordon", "h100-[1-8]"]) == 0
        assert capsys.readouterr().out.count("is up") == 8
        assert main(["node", "cordon", "h100-[8-1]"]) == 2
        assert "cannot parse" in capsys.readouterr().err
        assert main(["up", "--demo", "--virtual-nodes", "2"]) == 2
    finally:
        up.interrupt()
