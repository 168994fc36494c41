"""Memory limits: whose they are, and what may be said of a command that failed under one."""

import os
from pathlib import Path
from typing import cast

import pytest

from tenfold.live.local.member.limits import detect_limits
from tenfold.live.local.member.memory import allocation_failure
from tenfold.live.local.spawner.wire import LaunchLine

MEMBER: dict[str, object] = {"node": "a", "gpus": [], "cpus_milli": 1_000, "memory_mib": 300}
LAUNCH = cast(LaunchLine, {"members": [MEMBER]})
UNLIMITED = cast(LaunchLine, {"members": [{**MEMBER, "memory_mib": 0}]})


@pytest.mark.parametrize("sign", ["MemoryError", "x: Cannot allocate memory", "std::bad_alloc"])
def test_output_that_names_a_failed_allocation_names_the_limit(tmp_path: Path, sign: str):
    (tmp_path / "0.log").write_text(f"begun\n{sign}\n")
    reason = allocation_failure(LAUNCH, str(tmp_path), 0, 1)
    assert reason is not None
    assert reason["code"] == "allocation-failed"
    assert "failed with exit code 1" in reason["sentence"]
    assert "limited to 300 MiB: the limit may be the cause" in reason["sentence"]


def test_nothing_is_said_of_the_limit_without_evidence(tmp_path: Path):
    assert allocation_failure(LAUNCH, str(tmp_path), 0, 1) is None
    (tmp_path / "0.log").write_text("torch.OutOfMemoryError: CUDA out of memory\n")
    assert allocation_failure(LAUNCH, str(tmp_path), 0, 1) is None
    (tmp_path / "0.log").write_text("MemoryError\n")
    assert allocation_failure(LAUNCH, str(tmp_path), 0, -9) is None
    assert allocation_failure(UNLIMITED, str(tmp_path), 0, 1) is None


def test_without_control_groups_memory_limits_are_those_of_each_process(tmp_path: Path):
    limits = detect_limits("tenfold-x", root=str(tmp_path), own=str(tmp_path / "none"))
    assert limits.memory == "process"


def test_the_output_file_of_a_batch_script_is_read_too(tmp_path: Path):
    output = tmp_path / "train_1.out"
    (tmp_path / "0.log").write_text(f"output is written to {output}\n")
    script = cast(LaunchLine, {"members": [MEMBER], "slurm_variables": True})
    assert allocation_failure(script, str(tmp_path), 0, 1) is None
    output.write_text("Traceback\nMemoryError\n")
    reason = allocation_failure(script, str(tmp_path), 0, 1)
    assert reason is not None
    assert "its output says `MemoryError`" in reason["sentence"]
    assert allocation_failure(LAUNCH, str(tmp_path), 0, 1) is None


def test_an_output_file_that_is_a_pipe_is_not_waited_for(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "0.log").write_text(f"output is written to {pipe}\n")
    script = cast(LaunchLine, {"members": [MEMBER], "slurm_variables": True})
    assert allocation_failure(script, str(tmp_path), 0, 1) is None
