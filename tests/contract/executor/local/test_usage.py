"""What real processes use, measured and held against what the kernel says of them."""

import os
from collections.abc import Iterator
from pathlib import Path
from time import monotonic_ns

import psutil
import pytest

from contract.executor.real_processes import wait_for_a
from patience import until
from tenfold.live.executor import AttemptStarted, Launch, Member
from tenfold.live.local.executor import LocalExecutor
from tenfold.live.local.usage import LocalProbe, processes, ticks_below
from tenfold.live.usage import AttemptUsage
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.job.usage import GpuUse
from tenfold.model.units import Millis

# A child of a child burns a second of CPU time, says so by a file, and then everything sleeps.
BURNS = """
import os, subprocess, sys, time
if len(sys.argv) > 1:
    while time.process_time() < 1.0: pass
else:
    subprocess.run([sys.executable, __file__, "child"])
    open("burnt", "w").close()
    time.sleep(600)
"""


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[LocalExecutor]:
    made = LocalExecutor(str(tmp_path / "run"), environment=os.environ)
    yield made
    for state in made.attempts():
        made.stop(state.job_id, state.attempt, Millis(0))
    made.stop_spawner()
    made.close()


def start(executor: LocalExecutor, job: str, folder: Path, *command: str) -> None:
    work = RunSpec(name=job, command=command, folder=str(folder))
    executor.start(
        Launch(
            job_id=JobId(job),
            attempt=1,
            team=TeamId("t"),
            run_spec=work,
            members=(Member(node=NodeId("n"), gpus=(1, 2)),),
        )
    )
    wait_for_a(executor, AttemptStarted)


def at_ms() -> Millis:
    return Millis(monotonic_ns() // 1_000_000)


def use_of(found: tuple[AttemptUsage, ...], job: str) -> AttemptUsage:
    return next(one for one in found if one.job_id == job)


def test_cpu_time_of_everything_below_a_job_is_its_own(tmp_path: Path, executor: LocalExecutor):
    script = tmp_path / "burns.py"
    script.write_text(BURNS)
    start(executor, "sleeps-1", tmp_path, "sleep", "600")
    probe = LocalProbe(str(tmp_path / "run"))
    assert probe.measure(Millis(0)).attempts == ()
    start(executor, "burns-2", tmp_path, "/usr/bin/env", "python3", str(script))
    probe.measure(Millis(1_000))
    until((tmp_path / "burnt").exists)
    # As if exactly ten seconds had passed: a second of work is a tenth of a CPU.
    found = probe.measure(Millis(11_000)).attempts
    burns = use_of(found, "burns-2").use
    truth = sum(_spent_s(one) for one in _below(executor, "burns-2"))
    assert burns.measure == "cpu"
    assert burns.use_milli <= truth * 100 + 1
    assert burns.use_milli >= 90
    assert use_of(found, "sleeps-1").use.use_milli < 5
    later = probe.measure(Millis(21_000)).attempts
    assert use_of(later, "burns-2").use.use_milli < 5


def test_real_devices_are_asked_and_one_that_is_silent_says_nothing(
    tmp_path: Path, executor: LocalExecutor
):
    start(executor, "job-1", tmp_path, "sleep", "600")
    gpus = [
        GpuUse(number=number, use_milli=100 * number, memory_used_bytes=7, memory_bytes=9)
        for number in range(4)
    ]
    probe = LocalProbe(str(tmp_path / "run"), lambda: gpus)
    use = use_of(probe.measure(at_ms()).attempts, "job-1").use
    assert (use.measure, use.use_milli, use.use_milli_most) == ("gpu", 150, 200)
    assert use.memory_used_bytes == 14
    del gpus[2]
    look = probe.measure(at_ms())
    assert look.attempts == ()
    assert [one.number for one in look.gpus] == [0, 1, 3]


def test_the_process_table_is_read_as_others_read_it():
    table = processes()
    mine = table[os.getpid()]
    assert mine.parent == os.getppid()
    assert ticks_below({os.getppid(): ("job", 1)}, table)["job", 1] >= mine.own


def _below(executor: LocalExecutor, job: str) -> list[psutil.Process]:
    supervisor = executor.home.attempt(job, 1).record().get("supervisor")
    assert supervisor is not None
    return psutil.Process(supervisor).children(recursive=True)


def _spent_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system + times.children_user + times.children_system
