"""A node that keeps failing jobs, seen from outside; figures about failures; logs that are gone."""

from collections.abc import Callable
from pathlib import Path

from litestar import Litestar
from litestar.testing import TestClient

from tenfold.clock.wall import now_ms
from tenfold.fleet.failure_log import KEEPS_FAILING
from tenfold.journal.snapshots import restore
from tenfold.live.executor import AttemptLost, MemberLog
from tenfold.live.local.attempt.pruning import AttemptRetention
from tenfold.model.ids import JobId
from tenfold.model.reason import Reason
from tenfold.model.units import Millis
from tenfold.server.background.pruning import AttemptPruner
from tenfold.server.runtime.runtime import Runtime, ServerDeps
from unit.server.fake_executor import FakeExecutor, FakeProcesses
from unit.server.metrics.test_metrics import scraped
from unit.server.waiting import job_when

Client = TestClient[Litestar]
LOST = Reason("supervisor-lost", sentence="it was killed")
WHOLE = {"command": ["true"], "gpus_per_node": 4}


def runs(client: Client) -> tuple[str, str]:
    """Let a job run that takes a whole node; return its name and the node."""
    made = client.post("/api/v1/jobs", json=WHOLE).json()["id"]
    return made, job_when(client, made, "running")["attempts"][-1]["nodes"][0]


def lose(processes: FakeProcesses, job: str, attempt: int) -> None:
    processes.see(AttemptLost(Millis(now_ms()), JobId(job), attempt, LOST))


def fail_twice_on_one_node(client: Client, processes: FakeProcesses) -> str:
    """Lose two jobs on one node while another one is held, or does well."""
    first, bad = runs(client)
    good, _ = runs(client)
    lose(processes, first, 1)
    assert job_when(client, first, "running", attempts=2)["attempts"][-1]["nodes"] == [bad]
    client.delete(f"/api/v1/jobs/{first}")
    job_when(client, first, "cancelled")
    second, node = runs(client)
    assert node == bad
    processes.end(good)
    job_when(client, good, "succeeded")
    lose(processes, second, 1)
    told = job_when(client, second, "running", attempts=2)
    assert told["attempts"][-1]["nodes"] != [bad], "it is not placed there again"
    processes.end(second, 2)
    job_when(client, second, "succeeded")
    return bad


def node(client: Client, name: str, secret: str = "") -> dict[str, object]:
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    found = client.get("/api/v1/nodes", headers=headers).json()["nodes"]
    return next(one for one in found if one["id"] == name)


def test_a_node_that_keeps_failing_jobs_is_cordoned_and_says_which(
    member: Client, processes: FakeProcesses, token: Callable[..., str], runtime: Runtime
):
    bad = fail_twice_on_one_node(member, processes)
    seen = node(member, bad, token("operator"))
    assert (seen["state"], seen["cause"]) == ("cordoned", KEEPS_FAILING)
    assert "job `job-1`, attempt 1 (lost)" in str(seen["sentence"])
    assert "job-1" not in str(node(member, bad)["sentence"]), "a member sees no names"
    big = member.post("/api/v1/jobs", json={**WHOLE, "nodes": 2}).json()["id"]
    why = member.get(f"/api/v1/jobs/{big}/why?seek=none").json()
    assert [one["id"] for one in why["nodes_out"]] == [bad]
    assert scraped(member)["tenfold_blamed_nodes"] == 1
    again = restore(runtime.store).fleet
    assert list(again.failure_log.blamed) == [bad]
    member.post(f"/api/v1/nodes/{bad}/uncordon", headers=_as(token("operator")))
    job_when(member, big, "running")
    assert node(member, bad)["state"] == "up"


def test_failures_are_counted_the_same_after_a_restart(tmp_path: Path, processes: FakeProcesses):
    """The record of a node outlives the controller, as do the crashes of a job."""
    from unit.server.conftest import NODES  # noqa: PLC0415

    def plane() -> Runtime:
        return Runtime(
            ServerDeps(
                journal=str(tmp_path / "again.db"),
                executor=lambda: FakeExecutor(processes),
                logs=processes,
            )
        )

    from tenfold.server.app import make_app  # noqa: PLC0415
    from tenfold.server.auth.tokens import Role  # noqa: PLC0415

    first = plane()
    first.start(NODES)
    secret, _ = first.control.tokens.create(name="m", team="red", role=Role.member, days=1)
    body = {**WHOLE, "checkpoint": {"dir": "saves"}}
    with TestClient(make_app(first.control)) as client:
        client.headers["Authorization"] = f"Bearer {secret}"
        made = client.post("/api/v1/jobs", json=body).json()["id"]
        job_when(client, made, "running")
        processes.end(made, 1, exit_code=9)
        job_when(client, made, "running", attempts=2)
    before = restore(first.store).fleet.failure_log
    first.stop()
    again = plane()
    again.start()
    with TestClient(make_app(again.control)) as client:
        client.headers["Authorization"] = f"Bearer {secret}"
        processes.end(made, 2, exit_code=9)
        job_when(client, made, "running", attempts=3)
        after = restore(again.store).fleet.failure_log
    again.stop()
    assert before.crashes[JobId(made)].count == 1
    assert after.crashes[JobId(made)].count == 2
    assert [len(one) for one in after.failures.values()] == [1, 1], "each on a node of its own"


def test_waits_failures_and_gpu_time_are_metered(member: Client, processes: FakeProcesses):
    made, _ = runs(member)
    lose(processes, made, 1)
    job_when(member, made, "running", attempts=2)
    processes.end(made, 2)
    job_when(member, made, "succeeded")
    found = scraped(member)
    assert found["tenfold_queue_wait_seconds_count"] == 1
    assert found["tenfold_failure_detection_seconds_count"] == 1
    assert found["tenfold_failure_recovery_seconds_count"] == 1
    spent = {
        name: value for name, value in found.items() if name.startswith("tenfold_allocated_gpu")
    }
    assert set(spent) == {
        "tenfold_allocated_gpu_seconds_total[node-lost]",
        "tenfold_allocated_gpu_seconds_total[completed]",
    }
    useful = found["tenfold_useful_gpu_seconds_total"]
    assert useful <= spent["tenfold_allocated_gpu_seconds_total[completed]"]
    assert (
        found["tenfold_completed_job_useful_seconds_total"]
        <= found["tenfold_completed_job_wall_seconds_total"]
    )


def test_logs_that_were_removed_are_said_to_be(
    member: Client, processes: FakeProcesses, monkeypatch
):
    made, _ = runs(member)
    processes.end(made)
    job_when(member, made, "succeeded")
    gone = MemberLog(tail=b"", paths=(), bytes_kept=0, is_removed=True)
    monkeypatch.setattr(processes, "logs", lambda *_: gone)
    answer = member.get(f"/api/v1/jobs/{made}/logs")
    assert answer.status_code == 410
    assert answer.json()["code"] == "logs-pruned"


def test_pruning_asks_the_journal_which_jobs_are_not_over(
    member: Client, processes: FakeProcesses, runtime: Runtime, tmp_path: Path
):
    runs(member)
    pruning = AttemptPruner(
        tmp_path / "run", AttemptRetention(days=0, gib=0), runtime.store, now_ms
    )
    assert pruning.once().folders == 0


def _as(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}
