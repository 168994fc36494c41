"""How jobs ended, in words: the exit code, the signal, who took it back; what is gone of logs."""

from collections.abc import Callable
from pathlib import Path

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from tenfold.clock.wall import now_ms
from tenfold.journal.derive import ReadTableUpdate
from tenfold.live.executor import MemberLog
from tenfold.live.local.attempt.ending import end_line
from tenfold.live.local.attempt.folder import ExecutorDir
from tenfold.live.local.attempt.logs import LogWriter
from tenfold.model.api.jobs import Attempt, Job, Reason
from tenfold.model.events import JobCancelled, JobEnded, JobSubmitted
from tenfold.model.ids import JobId
from tenfold.model.units import Millis
from tenfold.server.routes.jobs import with_log_facts
from tenfold.server.runtime.state_dir import LocalLogs
from tenfold.server.schemas import exit_code_text
from tenfold.testing.builders import job
from unit.server.fake_executor import FakeProcesses
from unit.server.waiting import job_when

Client = TestClient[Litestar]


def submit(client: Client) -> str:
    made = client.post("/api/v1/jobs", json={"command": ["x"]}).json()["id"]
    job_when(client, made, "running")
    return made


@pytest.mark.parametrize(
    ("code", "words"),
    [(3, "exit code 3"), (137, "exit code 137 (SIGKILL)"), (255, "exit code 255")],
)
def test_a_job_that_failed_says_with_which_exit_code(
    member: Client, processes: FakeProcesses, code: int, words: str
):
    made = submit(member)
    processes.end(made, exit_code=code)
    told = job_when(member, made, "failed")
    assert told["reason"] == {"code": "failed", "sentence": f"the command failed with {words}"}
    (listed,) = member.get("/api/v1/jobs").json()["jobs"]
    assert listed["reason"] == told["reason"]


def test_signals_have_their_names():
    assert exit_code_text(139) == "exit code 139 (SIGSEGV)"
    assert exit_code_text(0) == "exit code 0"


def test_a_job_that_was_taken_back_says_by_whom(client: Client, token: Callable[..., str]):
    client.headers["Authorization"] = f"Bearer {token('member')}"
    runs = submit(client)
    waits = [client.post("/api/v1/jobs", json={"command": ["x"], "gpus_per_node": 4, "nodes": 2})]
    waits += [client.post("/api/v1/jobs", json={"command": ["x"], "gpus_per_node": 4, "nodes": 2})]
    operator = {"Authorization": f"Bearer {token('operator', 'ops')}"}
    for made in (runs, waits[1].json()["id"]):
        client.delete(f"/api/v1/jobs/{made}", headers=operator)
        told = job_when(client, made, "cancelled")
        assert told["reason"]["sentence"] == "cancelled by operator-of-ops"


def test_facts_that_do_not_say_who_are_read_as_before():
    draft = ReadTableUpdate()
    for number in (1, 2):
        draft.apply(number, JobSubmitted(Millis(0), job(number, 1)))
    draft.apply(3, JobCancelled(Millis(1), JobId("job-1")))
    draft.apply(4, JobEnded(Millis(1), JobId("job-2"), "cancelled"))
    assert [row.sentence for row in draft.jobs.values()] == ["", ""]


def attempts(folder: Path, *, ended: bool) -> LocalLogs:
    home = ExecutorDir(str(folder))
    home.prepare()
    attempt = home.attempt(JobId("loud-1"), 1)
    Path(attempt.path).mkdir(parents=True)
    log = LogWriter(attempt.path, 0, 40)
    log.write(b"x" * 75)
    log.close()
    if ended:
        attempt.write_end(end_line("exited", started_ms=now_ms(), code=0, log_bytes_dropped=99))
    return LocalLogs(folder)


def told(number: int = 1) -> Job:
    one = Attempt(number=number, started_at="x", ended_at=None, nodes=(), exit_code=None, reason="")
    reason = Reason(code="running", sentence="it runs")
    return Job(
        id="loud-1", name="loud", team="red", state="running", attempts=(one,), reason=reason
    )


@pytest.mark.parametrize(("ended", "gone"), [(False, 40), (True, 99)])
def test_bytes_of_a_log_that_are_gone_are_said_with_the_attempt(
    tmp_path: Path, ended: bool, gone: int
):
    logs = attempts(tmp_path, ended=ended)
    (one,) = with_log_facts(told(), logs).attempts
    assert one.log_bytes_dropped == gone


def test_where_nothing_is_gone_nothing_is_said(member: Client, processes: FakeProcesses):
    made = submit(member)
    processes.write(made, "hello\n")
    assert "log_bytes_dropped" not in job_when(member, made, "running")["attempts"][0]
    log = member.get(f"/api/v1/jobs/{made}/logs", params={"tail": "2"})
    assert (log.text, log.headers["Log-Offset"], log.headers["Log-Dropped"]) == ("o\n", "4", "0")


def test_a_log_that_lost_its_beginning_says_how_much(
    member: Client, processes: FakeProcesses, monkeypatch: pytest.MonkeyPatch
):
    made = submit(member)
    found = MemberLog(tail=b"end", paths=(), bytes_kept=10, bytes_dropped=100)
    monkeypatch.setattr(processes, "logs", lambda *_: found)
    log = member.get(f"/api/v1/jobs/{made}/logs")
    assert (log.headers["Log-Offset"], log.headers["Log-Dropped"]) == ("107", "100")
    assert job_when(member, made, "running")["attempts"][0]["log_bytes_dropped"] == 100
