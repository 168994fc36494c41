"""Old events move out of the journal by themselves, and the loop goes on meanwhile."""

from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from patience import HANG_S, until
from tenfold import __version__
from tenfold.clock.wall import now_ms
from tenfold.files.records.replay_bundle import BundleHeader, read_bundle
from tenfold.journal.compaction import DAY_MS, KEEP_DAYS
from tenfold.journal.inspect import inspect
from tenfold.journal.verify import verify
from tenfold.model.errors import InputError
from tenfold.server.background.retention import JournalRetention, RetentionSettings
from tenfold.server.runtime.runtime import Runtime, ServerDeps
from tenfold.server.runtime.settings import Settings, check
from unit.server.conftest import NODES
from unit.server.fake_executor import FakeExecutor, FakeProcesses
from unit.server.waiting import job_when

Client = TestClient[Litestar]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "history"


@pytest.fixture
def runtime(
    tmp_path: Path, folder: Path, processes: FakeProcesses
) -> Generator[Runtime, None, None]:
    """A control plane that keeps next to nothing, and looks all the time."""
    # What happened more than a day ago is moved: the clock of a test is far ahead.
    retention = RetentionSettings(folder=folder, days=-2, interval_s=0.01, pause_s=0)
    made = Runtime(
        ServerDeps(
            journal=str(tmp_path / "journal.db"),
            executor=lambda: FakeExecutor(processes),
            logs=processes,
            wait_s=HANG_S,
            retention=retention,
        )
    )
    made.start(NODES)
    yield made
    made.stop()


def test_a_control_plane_moves_old_events_out_while_it_serves(
    member: Client, runtime: Runtime, processes: FakeProcesses, folder: Path
):
    for _ in range(5):
        made = member.post("/api/v1/jobs", json={"command": ["true"]}).json()["id"]
        job_when(member, made, "running")
        processes.end(made)
        # A job that is over may have moved out before anybody could ask for it.
        until(lambda made=made: over(member, made))
    until(lambda: len(inspect(runtime.store).moved) > 1)
    told = verify(runtime.store)
    assert told.is_valid, told.findings
    assert told.bundles > 1
    assert member.get("/readyz").status_code == 200
    assert runtime.plane.tries == 1
    assert folder.stat().st_mode & 0o077 == 0
    first = sorted(folder.glob("*.gz"))[0]
    assert read_bundle(first).header.tenfold == __version__


def over(client: Client, job_id: str) -> bool:
    answer = client.get(f"/api/v1/jobs/{job_id}")
    return answer.status_code == 404 or answer.json()["state"] == "succeeded"


def test_what_is_younger_stays(tmp_path: Path, folder: Path, token: Callable[..., str]):
    journal = str(tmp_path / "journal.db")
    for days, count in ((0, 0), (KEEP_DAYS, 0), (KEEP_DAYS + 0.5, 0)):

        def then(days: float = days) -> int:
            return now_ms() + round(days * DAY_MS)

        upkeep = JournalRetention(journal, RetentionSettings(folder=folder), BundleHeader(), then)
        assert len(upkeep.once()) == count
    assert not folder.exists()


def test_trouble_is_logged_and_it_looks_again(
    tmp_path: Path, folder: Path, caplog: pytest.LogCaptureFixture
):
    retention = RetentionSettings(folder=folder, interval_s=0.01)
    nowhere = str(tmp_path / "no-such-folder" / "journal.db")
    upkeep = JournalRetention(nowhere, retention, BundleHeader(), now_ms)
    upkeep.start()
    until(lambda: caplog.text.count("could not move old events") > 1)
    upkeep.stop()


def test_fewer_days_than_requests_may_be_asked_again_are_refused(tmp_path: Path):
    for days in (1.9, 0, -1, float("nan")):
        with pytest.raises(InputError) as refused:
            check(Settings(state_dir=tmp_path, keep_days=days))
        assert (refused.value.code, refused.value.field) == ("wrong-value", "--keep-days")
    check(Settings(state_dir=tmp_path, keep_days=2))
