"""While the loop cannot run, reading goes on, writing is refused, and the reason is said."""

from collections.abc import Generator
from pathlib import Path

import pytest
from litestar import Litestar, get
from litestar.testing import TestClient

from patience import until
from tenfold.server.app import make_app
from tenfold.server.auth.access import requires_role
from tenfold.server.runtime.runtime import Runtime, ServerDeps
from unit.server.fake_executor import FakeExecutor, FakeProcesses

Client = TestClient[Litestar]


class Switch:
    """Whether the executor can be reached."""

    def __init__(self) -> None:
        self.is_broken = True


@pytest.fixture
def switch() -> Switch:
    return Switch()


@pytest.fixture
def runtime(
    tmp_path: Path, processes: FakeProcesses, switch: Switch
) -> Generator[Runtime, None, None]:
    def executor() -> FakeExecutor:
        if switch.is_broken:
            raise OSError("the executor of `/srv/somebody` is away")
        return FakeExecutor(processes)

    journal = str(tmp_path / "journal.db")
    made = Runtime(ServerDeps(journal=journal, executor=executor, logs=processes, wait_s=0.2))
    made.start()
    yield made
    made.stop()


def test_trouble_is_said_and_ends(member: Client, runtime: Runtime, switch: Switch):
    until(lambda: runtime.plane.trouble is not None)
    ready = member.get("/readyz")
    assert ready.status_code == 503
    assert ready.json()["code"] == "loop-failed"
    assert ready.json()["detail"] == "OSError"
    for shown in ("", "Bearer tf_guessed", "Bearer x"):
        public = member.get("/readyz", headers={"Authorization": shown})
        assert (public.status_code, public.json()["code"]) == (503, "not-ready")
        assert "OSError" not in public.text
    refused = member.post("/api/v1/jobs", json={"command": ["true"]})
    assert (refused.status_code, refused.json()["code"]) == (503, "loop-failed")
    assert member.get("/api/v1/jobs").status_code == 200
    assert member.get("/healthz").json() == {"status": "alive"}
    assert "tenfold_loop_up 0.0" in member.get("/metrics").text
    switch.is_broken = False
    until(lambda: member.get("/readyz").status_code == 200)
    assert member.post("/api/v1/jobs", json={"command": ["true"]}).status_code == 201


def test_a_loop_that_does_not_answer_leaves_it_open(member: Client, runtime: Runtime):
    until(lambda: runtime.plane.trouble is not None)
    runtime.plane.trouble = None
    answer = member.post("/api/v1/jobs", json={"command": ["true"]})
    if runtime.plane.trouble is None:
        assert (answer.status_code, answer.json()["code"]) == (503, "not-known")
    assert answer.status_code == 503


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_loop_that_is_gone_is_not_called_ready(member: Client, runtime: Runtime, monkeypatch):
    def gone() -> None:
        raise SystemExit

    until(lambda: runtime.plane.trouble is not None)
    monkeypatch.setattr(runtime.plane, "run_once", gone)
    until(lambda: member.get("/readyz").json()["code"] == "loop-ended")
    assert member.post("/api/v1/jobs", json={"command": ["true"]}).status_code == 503


def test_after_the_end_nothing_is_taken(member: Client, runtime: Runtime):
    runtime.inbox.close()
    answer = member.post("/api/v1/jobs", json={"command": ["true"]})
    assert (answer.status_code, answer.json()["code"]) == (503, "shutting-down")


def test_a_bug_is_answered_without_its_trace(runtime: Runtime):
    @get("/api/v1/broken", opt=requires_role(None))
    async def broken() -> str:
        raise RuntimeError("a secret of the inside")

    with TestClient(make_app(runtime.control, (broken,)), raise_server_exceptions=False) as client:
        answer = client.get("/api/v1/broken")
    assert answer.status_code == 500
    assert answer.json()["code"] == "bug"
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text
