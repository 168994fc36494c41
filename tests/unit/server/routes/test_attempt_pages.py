"""A job with thousands of attempts: answers have the latest, and pages of the others."""

from collections.abc import Callable, Generator
from pathlib import Path
from typing import cast

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from tenfold.journal.append import open_journal
from tenfold.journal.store import open_store
from tenfold.model.actions import StartJob
from tenfold.model.api.jobs import ATTEMPTS_LISTED, ATTEMPTS_SHOWN
from tenfold.model.events import (
    ActionOrdered,
    Event,
    JobEnded,
    JobStarted,
    JobStopped,
    JobSubmitted,
    NodeJoined,
)
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.job import Job, Slot, shape_of
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.units import Millis
from tenfold.server.app import make_app
from tenfold.server.auth.tokens import Role
from tenfold.server.runtime.runtime import Runtime, ServerDeps
from tenfold.testing.builders import nodes
from unit.server.fake_executor import FakeExecutor, FakeProcesses

COUNT = 3_000
JOB = JobId("often-1")
T = Millis(0)


def story() -> list[Event]:
    [node] = nodes(1)
    job = Job(id=JOB, shape=shape_of(1), submitted_ms=T, seq=1, team=TeamId("red"))
    events: list[Event] = [
        NodeJoined(T, node),
        JobSubmitted(T, job, RunSpec(name="often", command=("false",))),
    ]
    start = ActionOrdered(T, StartJob(JOB, (Slot(NodeId(node.id), 1),)))
    for _ in range(COUNT - 1):
        events += [start, JobStarted(T, JOB), JobStopped(T, JOB, "preempted", T)]
    return [*events, start, JobStarted(T, JOB), JobEnded(T, JOB, "failed", 139)]


@pytest.fixture(scope="module")
def client(
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[TestClient[Litestar], None, None]:
    folder: Path = tmp_path_factory.mktemp("pages")
    store = open_store(str(folder / "journal.db"))
    open_journal(store, "test", 0).append(story())
    store.close()
    processes = FakeProcesses(folder)
    runtime = Runtime(
        ServerDeps(
            journal=str(folder / "journal.db"),
            executor=lambda: FakeExecutor(processes),
            logs=processes,
        )
    )
    secret, _ = runtime.control.tokens.create(name="m", team="red", role=Role.member, days=1)
    with TestClient(make_app(runtime.control)) as made:
        made.headers["Authorization"] = f"Bearer {secret}"
        yield made
    runtime.stop()


@pytest.fixture
def show(client: TestClient[Litestar]) -> Callable[[str], dict[str, object]]:
    return lambda query: client.get(f"/api/v1/jobs/{JOB}{query}").json()


def numbers(told: dict[str, object]) -> list[int]:
    return [one["number"] for one in cast("list[dict[str, int]]", told["attempts"])]


def test_a_job_is_shown_with_its_latest_attempts(show: Callable[[str], dict[str, object]]):
    told = show("")
    assert numbers(told) == list(range(COUNT - ATTEMPTS_SHOWN + 1, COUNT + 1))
    assert told["attempts_total"] == COUNT
    assert told["attempts_next"] == COUNT - ATTEMPTS_SHOWN + 1


def test_pages_lead_to_the_first_attempt(show: Callable[[str], dict[str, object]]):
    seen, query = list[int](), ""
    while True:
        told = show(f"?attempts=1000{query}")
        assert told["reason"] == {
            "code": "failed",
            "sentence": "the command failed with exit code 139 (SIGSEGV)",
        }
        seen = [*numbers(told), *seen]
        if "attempts_next" not in told:
            break
        query = f"&attempts_before={told['attempts_next']}"
    assert seen == list(range(1, COUNT + 1))


def test_a_list_is_small(client: TestClient[Litestar]):
    answer = client.get("/api/v1/jobs")
    [told] = answer.json()["jobs"]
    assert numbers(told) == list(range(COUNT - ATTEMPTS_LISTED + 1, COUNT + 1))
    assert told["attempts_total"] == COUNT
    assert len(answer.content) < 4_096


@pytest.mark.parametrize("query", ["?attempts=0", "?attempts=1001", "?attempts_before=0"])
def test_a_page_has_bounds(client: TestClient[Litestar], query: str):
    assert client.get(f"/api/v1/jobs/{JOB}{query}").status_code == 400


def test_the_log_of_an_old_attempt_is_found(client: TestClient[Litestar]):
    assert client.get(f"/api/v1/jobs/{JOB}/logs?attempt=7").status_code in (200, 410)
