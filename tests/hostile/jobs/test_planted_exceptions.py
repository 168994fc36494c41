"""Exceptions that nobody thought of, planted in real supervisors and spawners.

The spawner of the test is started first, with a method that fails on one job; the loop finds it
listening and uses it. The job ends with a reason that names the exception, and other jobs start.
"""

import os
import select
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

import tenfold
from hostile.jobs.hurried_loop import HurriedLoop, hurried_loop
from patience import HANG_S
from tenfold.model.events import ActionRefused, Event, JobEnded, JobRefused, JobStopped
from tenfold.model.ids import JobId
from tenfold.report.reasons.render import render

PROGRAM = """
import os, sys
sys.path.append(sys.argv[1])
from tenfold.live.local import supervisor
from tenfold.live.local.spawner import spawner
owner = {{"_Supervisor": supervisor._Supervisor, "_Spawner": spawner._Spawner}}[{owner!r}]
inner = getattr(owner, {method!r})
def planted(self, *words, **named):
    if {poison!r} in repr(words) or {poison!r} in repr(getattr(self, "launch", "")):
        raise KeyError("planted")
    return inner(self, *words, **named)
setattr(owner, {method!r}, planted)
spawner.main(sys.argv[2], int(sys.argv[3]))
"""
POISON = "poison-of-this-test"
SUPERVISOR = {
    "before the start": ("_Supervisor", "_start"),
    "at the start of a member": ("_Supervisor", "_start_member"),
    "while it reads its stop request": ("_Supervisor", "_read_stop"),
    "while it waits": ("_Supervisor", "_poll_once"),
    "when a member ends": ("_Supervisor", "_member_ended"),
    "while it closes a log": ("_Supervisor", "_close_log"),
    "at the end": ("_Supervisor", "_end"),
}


@contextmanager
def spawner_with_fault(home: Path, owner: str, method: str) -> Generator[None, None, None]:
    """Start a spawner with a method that fails on the poison."""
    home.mkdir(parents=True, exist_ok=True)
    ready, held = os.pipe()
    program = PROGRAM.format(owner=owner, method=method, poison=POISON)
    sources = str(Path(tenfold.__file__).parents[1])
    with (home / "spawner.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", program, sources, str(home), str(held)],
            pass_fds=[held],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    os.close(held)
    assert select.select([ready], [], [], HANG_S)[0]
    os.close(ready)
    assert process.poll() is None, (home / "spawner.log").read_text()
    yield
    process.wait(HANG_S)


def said_of(loop: HurriedLoop, job_id: JobId) -> list[str]:
    """Return what the journal says of each attempt of a job."""
    return [said for event in loop.events if (said := said_by(event, job_id))]


def said_by(event: Event, job_id: JobId) -> str:
    if isinstance(event, JobRefused) and event.job_id == job_id:
        return render(event.reasons[0])
    if isinstance(event, ActionRefused) and event.action.job_id == job_id:
        return render(event.reason)
    if isinstance(event, JobStopped | JobEnded) and event.job_id == job_id and event.failure:
        return render(event.failure.reason) if event.failure.reason else ""
    return ""


def check_others(loop: HurriedLoop) -> None:
    ended = loop.end_of(loop.submit("true"))
    assert isinstance(ended, JobEnded)
    assert ended.status == "completed"


@pytest.mark.parametrize("stage", SUPERVISOR)
def test_a_job_whose_supervisor_fails_ends_with_a_reason_that_names_it(tmp_path: Path, stage: str):
    with (
        spawner_with_fault(tmp_path / "run", *SUPERVISOR[stage]),
        hurried_loop(tmp_path) as loop,
    ):
        job_id = loop.submit("sh", "-c", f": {POISON}; exit 3")
        ended = loop.end_of(job_id)
        check_others(loop)
        said = said_of(loop, job_id)
    assert isinstance(ended, JobRefused) or ended.status == "failed"
    assert "KeyError: 'planted'" in said[-1], said


def test_an_order_that_the_spawner_fails_on_is_refused_and_it_goes_on(tmp_path: Path):
    with (
        spawner_with_fault(tmp_path / "run", "_Spawner", "_start"),
        hurried_loop(tmp_path) as loop,
    ):
        job_id = loop.submit("sh", "-c", f": {POISON}")
        ended = loop.end_of(job_id)
        check_others(loop)
        said = said_of(loop, job_id)
    assert isinstance(ended, JobRefused)
    assert "KeyError: 'planted'" in said[-1], said
    assert "order failed: KeyError" in (tmp_path / "run" / "spawner.log").read_text()
