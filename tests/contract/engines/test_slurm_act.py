"""`tenfold attach slurm --act` on a real Slurm: held jobs in scope are placed, others untouched."""

import shutil
import signal
import subprocess
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir

import pytest
from msgspec.structs import replace

from engines.slurm import RunningSlurm, SlurmNode, running_slurm
from engines.slurm_attach import (
    accounting,
    ask_tenfold,
    attach,
    differences,
    own_stories,
    slurm_stories,
)
from patience import until
from tenfold.study.attach.act import OWN_HOLD
from tenfold.study.attach.recorder import STATUS, AttachStatus, read_status

NODES = [
    SlurmNode(name=f"n{number}", cpus=16, memory_mib=64_000, gpu_type="h100", gpus=8)
    for number in (1, 2)
]
CONF = (
    "SelectTypeParameters=CR_CPU",
    "PriorityType=priority/multifactor",
    "SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,bf_interval=1,sched_interval=1",
    "Licenses=solver:1",
)
PARTITIONS = (
    "PartitionName=all Nodes=n[1-2] Default=YES State=UP DefaultTime=5 MaxTime=60",
    "PartitionName=other Nodes=n[1-2] State=UP",
)
USER = "daemon"
"""An account that exists everywhere and is no operator."""
ACT = ("--act", "--partition", "all", "--interval", "1")


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[RunningSlurm]:
    """A Slurm of two nodes with accounting, whose folder other users may enter."""
    above = Path(gettempdir())
    for folder in (tmp_path, *tmp_path.parents):
        if folder.is_relative_to(above) and folder != above:
            folder.chmod(0o755)
    with running_slurm(tmp_path, NODES, CONF, PARTITIONS, accounting=True) as running:
        yield running


@pytest.mark.timeout(300)
def test_held_jobs_in_scope_are_placed_once_through_a_restart(
    slurm: RunningSlurm, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    whole, short = "--gpus-per-node=h100:8", "--wrap=sleep 1"
    mine = [_submit(slurm, "-H", "--comment=my words", whole, short) for _ in range(3)]
    gang = _submit(slurm, "-H", "--nodes=2", whole, short)
    array = _submit(slurm, "-H", "--array=0-1", "--gpus-per-node=h100:4", short)
    other = _submit(slurm, "-H", "--partition=other", whole, short)
    by_admin = _submit(slurm, "-H", whole, short)
    slurm.ask("scontrol", "hold", by_admin)
    named = _submit(slurm, "-H", "--nodelist=n1", whole, short)
    with _attached(slurm, state):
        until(lambda: _status_says(state, lambda status: status.acted.released >= 2))
    with _attached(slurm, state):
        wanted = {*mine, gang, f"{array}_0", f"{array}_1"}
        until(lambda: wanted <= _completed(slurm), pause_s=0.5)
        until(lambda: len(own_stories(state)) >= len(wanted), pause_s=0.5)
        skipped = read_status(state).acted.skipped
    assert skipped == {named: "its user named nodes"}
    for job in (other, by_admin, named):
        shown = slurm.ask("scontrol", "show", "job", job)
        assert "JobState=PENDING" in shown
        assert "tenfold-act" not in shown
    assert OWN_HOLD in slurm.ask("scontrol", "show", "job", other)
    assert differences(own_stories(state), slurm_stories(accounting(slurm))) == []
    story = ask_tenfold(slurm, "job", "show", mine[0], "--bundle", str(state))
    assert "released by tenfold" in story
    assert story.count("released by tenfold") == 1
    comment = slurm.ask("scontrol", "show", "job", mine[0])
    assert ":1 my words" in comment


@pytest.mark.timeout(300)
def test_a_job_that_slurm_does_not_start_in_time_is_left_to_slurm_after_three_tries(
    slurm: RunningSlurm, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    # Nothing in a reading says that the only licence is taken.
    taken = _submit(slurm, "--licenses=solver:1", "--gpus-per-node=h100:1", "--wrap=sleep 300")
    until(lambda: "RUNNING" in slurm.ask("squeue", "--noheader", "--format=%T", "--job", taken))
    job = _submit(slurm, "-H", "--licenses=solver:1", "--gpus-per-node=h100:8", "--wrap=true")
    with _attached(slurm, state, "--start-within", "5"):
        until(lambda: _status_says(state, lambda status: status.acted.left == 1), pause_s=0.3)
        acted = read_status(state).acted
        assert (acted.released, acted.late, acted.started) == (3, 3, 0)
        shown = slurm.ask("scontrol", "show", "job", job)
        assert "ReqNodeList=(null)" in shown
        assert "Reason=JobHeld" not in shown
        slurm.ask("scancel", taken)
        until(lambda: job in _completed(slurm), pause_s=0.5)
        until(lambda: {taken, job} <= {one.job for one in own_stories(state)}, pause_s=0.5)
    assert differences(own_stories(state), slurm_stories(accounting(slurm))) == []


@pytest.mark.timeout(300)
def test_without_the_rights_of_an_operator_only_own_jobs_are_placed(
    slurm: RunningSlurm, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    ordinary = _as_ordinary_user(slurm, tmp_path / "bin")
    foreign = slurm.ask("sbatch", "--parsable", "-H", "--output=/dev/null", "--wrap=true").strip()
    assert attach(ordinary, state, *ACT, "--once").wait(60) == 3
    log = (tmp_path / "attach.log").read_text()
    assert f"Slurm did not release job `{foreign}`" in log
    assert "adminlevel=Operator" in log
    assert OWN_HOLD in slurm.ask("scontrol", "show", "job", foreign)
    slurm.ask("scancel", foreign)
    own = _submit(slurm, "-H", "--gpus-per-node=h100:8", "--wrap=true")
    with _attached(ordinary, state):
        until(lambda: own in _completed(slurm), pause_s=0.5)


def _as_ordinary_user(slurm: RunningSlurm, folder: Path) -> RunningSlurm:
    """Return the cluster as an ordinary user reaches it: each command runs as that user."""
    folder.mkdir()
    for name in ("scontrol", "squeue", "sacct", "sacctmgr", "sdiag"):
        own = shutil.which(name)
        words = f"exec setpriv --reuid={USER} --regid={USER} --clear-groups {own}"
        (folder / name).write_text(f'#!/bin/sh\n{words} "$@"\n')
        (folder / name).chmod(0o755)
    path = f"{folder}:{slurm.environment['PATH']}"
    return replace(slurm, environment={**slurm.environment, "PATH": path})


@contextmanager
def _attached(slurm: RunningSlurm, state: Path, *arguments: str) -> Generator[None, None, None]:
    own = attach(slurm, state, *ACT, *arguments)
    try:
        yield
    finally:
        own.send_signal(signal.SIGTERM)
        own.wait(60)


def _status_says(state: Path, holds: Callable[[AttachStatus], bool]) -> bool:
    return (state / STATUS).is_file() and holds(read_status(state))


def _submit(slurm: RunningSlurm, *arguments: str) -> str:
    """Submit a job as an ordinary user."""
    answer = subprocess.run(
        ("sbatch", "--parsable", "--output=/dev/null", "--chdir=/tmp", *arguments),
        env=slurm.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        user=USER,
        group=USER,
    )
    return answer.stdout.strip()


def _completed(slurm: RunningSlurm) -> set[str]:
    return {story.job for story in slurm_stories(accounting(slurm)) if story.state == "completed"}
