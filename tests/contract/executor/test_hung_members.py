"""Members that hang for real: stopped by a signal, with a heartbeat that was asked for."""

import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest

from contract.executor.real_processes import Ear, launch, wait_until_over
from tenfold.live.executor import AttemptEnded
from tenfold.live.local.executor import LocalExecutor
from tenfold.model.units import Millis

BEATS = 'echo $$ > {ear}; while :; do touch "$TENFOLD_HEARTBEAT"; sleep 0.05; done'
SILENT_MS = Millis(600)


@pytest.fixture
def executor(tmp_path: Path) -> Generator[LocalExecutor, None, None]:
    made = LocalExecutor(str(tmp_path / "run"))
    yield made
    made.stop_spawner()
    made.close()


@pytest.fixture
def ear(tmp_path: Path) -> Generator[Ear, None, None]:
    made = Ear(tmp_path / "ear")
    yield made
    made.close()


def test_a_process_group_that_is_stopped_is_noticed_and_ended(executor: LocalExecutor, ear: Ear):
    executor.start(launch(BEATS.format(ear=ear.path), silent_ms_most=SILENT_MS))
    group = int(ear.words(1)[0])
    os.killpg(group, signal.SIGSTOP)
    end = wait_until_over(executor)[-1]
    assert isinstance(end, AttemptEnded)
    assert (end.how, end.member, end.signal) == ("silent", 0, signal.SIGKILL)
    assert end.last_alive_ms is not None
    assert end.at_ms - end.last_alive_ms >= SILENT_MS


def test_the_member_that_hangs_is_the_one_that_is_named(executor: LocalExecutor, ear: Ear):
    script = f'if [ "$RANK" = 1 ]; then {BEATS.format(ear=ear.path)}; fi; ' + BEATS.format(
        ear="/dev/null"
    )
    executor.start(launch(script, nodes=("a", "b", "c"), silent_ms_most=SILENT_MS))
    os.killpg(int(ear.words(1)[0]), signal.SIGSTOP)
    end = wait_until_over(executor)[-1]
    assert isinstance(end, AttemptEnded)
    assert (end.how, end.member) == ("silent", 1)


def test_a_member_that_hangs_without_a_heartbeat_asked_for_is_left_alone(
    executor: LocalExecutor, ear: Ear
):
    executor.start(launch(BEATS.format(ear=ear.path)))
    group = int(ear.words(1)[0])
    os.killpg(group, signal.SIGSTOP)
    os.killpg(group, signal.SIGCONT)
    executor.stop(launch("true").job_id, 1, Millis(0))
    end = wait_until_over(executor)[-1]
    assert isinstance(end, AttemptEnded)
    assert (end.how, end.last_alive_ms) == ("stopped", None)
