"""`tenfold down` stops the control plane that holds the state directory, and no other process."""

import json
import os
from pathlib import Path

import pytest

import tenfold
from patience import HANG_S, until
from tenfold.cli.main import main
from tenfold.cli.up.state_dir import lock_state_dir
from tenfold.client.endpoint import lock_holder
from unit.up_process import Up

Printed = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("TENFOLD_URL", "TENFOLD_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TENFOLD_STATE_DIR", str(tmp_path / "home"))
    return tmp_path / "home"


def test_the_control_plane_stops_its_jobs_run_on_and_the_next_start_finds_them(
    here: Path, tmp_path: Path, capsys: Printed
):
    up = Up(here)
    up.start("--virtual-nodes", "1")
    assert up.process is not None
    job = tmp_path / "job.toml"
    job.write_text('command = ["sleep", "600"]\n')
    assert main(["job", "submit", str(job)]) == 0
    assert main(["status"]) == 0
    assert "your jobs: 1 " in capsys.readouterr().out
    with tenfold.Client() as client:
        until(lambda: client.job("job-1").state == "running")
    assert main(["down"]) == 0
    text = "stopped; 1 job is still running, and the next `tenfold up` reattaches to it\n"
    assert capsys.readouterr().out == text
    assert up.process.wait(HANG_S) == 0
    said, _ = up.process.communicate()
    assert said == text
    up.start("--virtual-nodes", "1")
    assert main(["job", "cancel", "job-1"]) == 0
    capsys.readouterr()
    assert main(["down", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["state_dir"], told["pid"]) == (str(here), up.process.pid)
    up.process.communicate(timeout=HANG_S)


def test_without_a_control_plane_nothing_is_stopped(here: Path, capsys: Printed):
    assert main(["down"]) == 4
    assert "no control plane is running in" in capsys.readouterr().err
    here.mkdir()
    # The file of a control plane that was killed names a process that may be another one by now.
    (here / "up.lock").write_text(str(os.getpid()))
    assert lock_holder(here) is None
    assert main(["down"]) == 4
    assert "no control plane is running in" in capsys.readouterr().err


def test_the_holder_of_the_lock_is_the_process_that_took_it(here: Path):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with lock_state_dir(here):
            os.write(writing, b"locked")
            os.close(writing)
            os.kill(os.getpid(), 19)
        os._exit(0)
    assert os.read(reading, 6) == b"locked"
    try:
        assert lock_holder(here) == child
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(reading)
        os.close(writing)
    assert lock_holder(here) is None
