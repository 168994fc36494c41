"""What a team may have under way: the size of its unfinished jobs, which are kept in memory."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from tenfold.compose.live_journal import LiveJournal
from tenfold.live import world
from tenfold.server.runtime.runtime import Runtime
from unit.server.waiting import job_when

Client = TestClient[Litestar]
JOBS = "/api/v1/jobs"
MEMBERS = 40
LARGE: dict[str, Any] = {"command": ["true"], "array": MEMBERS, "env": {"A": "x" * 10_000}}


def test_a_team_whose_unfinished_jobs_are_too_large_waits_and_others_do_not(
    member: Client, token: Callable[..., str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(world, "TEAM_BYTES_MAX", 1 << 20)
    first = member.post(JOBS, json={"command": ["true"]}).json()["id"]
    waits = {**LARGE, "after": [first]}
    made = [member.post(JOBS, json=waits) for _ in range(3)]
    assert [one.status_code for one in made] == [201, 201, 429]
    told = made[-1].json()
    assert (told["code"], told["hint"]) == (
        "backlog-full",
        "wait until some jobs have ended, or cancel some",
    )
    assert told["detail"] == "the team's unfinished jobs have 1 MiB of events, which is the limit"
    blue = {"Authorization": f"Bearer {token('member', 'blue')}"}
    assert member.post(JOBS, json=LARGE, headers=blue).status_code == 201
    assert member.delete(f"{JOBS}/{made[0].json()['id']}").status_code == 202
    assert member.post(JOBS, json=waits).status_code == 201


def test_unfinished_jobs_are_counted_again_after_a_restart(
    tmp_path: Path, runtime: Runtime, member: Client
):
    first = member.post(JOBS, json={"command": ["true"]}).json()["id"]
    job_when(member, first, "running")
    assert member.post(JOBS, json={**LARGE, "after": [first]}).status_code == 201
    runtime.stop()
    journal = LiveJournal(str(tmp_path / "journal.db"), "test", 0)
    entries = journal.restore().entries
    journal.close()
    counted = sum(entry.event_bytes for entry in entries.values())
    assert MEMBERS * 10_000 < counted < MEMBERS * 11_000
    assert {entry.team for entry in entries.values()} == {"red"}
