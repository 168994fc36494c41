"""What would become of a job, told without handing it in."""

from collections.abc import Callable
from pathlib import Path

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from patience import until
from tenfold.server.background import follower
from unit.server.waiting import job_when

Client = TestClient[Litestar]
JOBS = "/api/v1/jobs"
TRY = f"{JOBS}/dry-run"
FOUR = {"command": ["true"], "gpus_per_node": 4, "name": "four"}


@pytest.fixture(autouse=True)
def joined(member: Client) -> None:
    """Nodes join in the loop's own time; before that nothing fits."""
    until(lambda: len(member.get("/api/v1/nodes").json()["nodes"]) == 2)


def filled(client: Client, headers: dict[str, str] | None = None) -> None:
    """Let two jobs hold every GPU."""
    for _ in range(2):
        made = client.post(JOBS, json=FOUR, headers=headers).json()["id"]
        job_when(client, made, "running", headers=headers)


def written(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("journal.db*"))}


def test_a_job_that_fits_would_start_and_says_where(member: Client):
    told = member.post(TRY, json=FOUR).json()
    assert (told["outcome"], told["name"], told["team"]) == ("starts", "four", "red")
    assert len(told["nodes"]) == 1
    assert told["could_hold"] == {"count": 2, "nodes": ["n1", "n2"]}
    started = member.post(JOBS, json=FOUR).json()["id"]
    (attempt,) = job_when(member, started, "running")["attempts"]
    assert attempt["nodes"] == told["nodes"]


def test_a_job_that_does_not_fit_now_would_wait_and_says_why_and_how_long(member: Client):
    filled(member)
    told = member.post(TRY, json=FOUR).json()
    assert (told["outcome"], told["nodes"]) == ("waits", [])
    assert told["reason"]["code"] == "too-few-free"
    assert told["eta"] is None
    assert "no job has finished yet" in told["eta_unknown"]
    assert told["why"]["holders"]["teams"] == [{"team": "red", "gpus_milli": 8000}]
    assert told["could_hold"]["count"] == 2


def test_a_job_that_can_never_fit_says_so(member: Client):
    told = member.post(TRY, json={**FOUR, "gpus_per_node": 9}).json()
    assert (told["outcome"], told["eta"]) == ("never", None)
    assert told["could_hold"] == {"count": 0, "nodes": []}


def test_faults_are_named_as_if_it_were_meant(member: Client):
    refused = member.post(TRY, json={"command": [], "colour": "red", "after": ["x-1"]})
    assert refused.status_code == 422
    assert {one["field"] for one in refused.json()["errors"]} == {"command", "colour"}
    assert member.post(TRY, json={**FOUR, "after": ["x-1"]}).json()["code"] == "no-such-job"
    assert member.post(TRY, json={**FOUR, "team": "blue"}).json()["code"] == "other-team"
    assert member.post(TRY, json={"jobs": [FOUR]}).status_code == 422


def test_nothing_is_written_by_a_dry_run(member: Client, tmp_path: Path):
    filled(member)
    assert member.post(TRY, json=FOUR).status_code == 200
    before = written(tmp_path)
    for ask in (FOUR, {**FOUR, "array": 50}, {**FOUR, "gpus_per_node": 9}, {"command": ["true"]}):
        assert member.post(TRY, json=ask).status_code == 200
    assert written(tmp_path) == before
    assert len(member.get(JOBS).json()["jobs"]) == 2


def test_names_of_other_teams_jobs_are_not_said(client: Client, token: Callable[..., str]):
    filled(client, {"Authorization": f"Bearer {token('member', 'blue')}"})
    red = {"Authorization": f"Bearer {token('member', 'red')}"}
    told = client.post(TRY, json=FOUR, headers=red)
    assert told.json()["outcome"] == "waits"
    assert "four-1" not in told.text


def test_a_long_queue_is_told_of_in_brief(member: Client, monkeypatch: pytest.MonkeyPatch):
    filled(member)
    monkeypatch.setattr(follower, "QUEUE_MAX", 0)
    told = member.post(TRY, json=FOUR).json()
    assert (told["outcome"], told["is_brief"], told["eta"]) == ("waits", True, None)
    assert member.post(TRY, json={**FOUR, "gpus_per_node": 9}).json()["outcome"] == "never"
