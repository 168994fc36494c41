"""Jobs outlive the control plane: it is killed or stopped, started again, and finds them."""

import os
import re
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

import tenfold
from patience import HANG_S, until
from unit.up_process import Up

GATED = 'echo $$ begun; read word < "$GATE"; echo $$ $word'


@pytest.fixture
def gate(tmp_path: Path) -> Generator[Path, None, None]:
    """A pipe on which a job waits for a word: opening it to write waits for the job to read."""
    path = tmp_path / "gate"
    os.mkfifo(path)
    yield path
    # A job that still waits, because a test failed, must not be left behind.
    with suppress(OSError):
        os.write(os.open(path, os.O_WRONLY | os.O_NONBLOCK), b"go\n")


def begun(client: tenfold.Client, gate: Path) -> str:
    """Hand in a job that waits at the gate, and return its name once it runs."""
    made = client.submit(name="gated", command=["sh", "-c", GATED], env={"GATE": str(gate)})
    for event in client.events(after=0):
        if event.kind == "JobStarted" and event.body["job_id"] == made.id:
            return made.id
    raise AssertionError("the stream does not end")


def check_ran_once(client: tenfold.Client, job_id: str) -> None:
    job = client.job(job_id)
    assert (job.state, [one.number for one in job.attempts]) == ("succeeded", [1])
    first, last = client.logs(job_id).splitlines()
    pid = re.fullmatch(r"(\d+) begun", first)
    assert pid is not None
    assert last == f"{pid[1]} go"


def test_a_job_is_adopted_after_the_control_plane_was_killed(up: Up, gate: Path):
    said = up.start()
    assert any("admin token, shown only once: tf_" in line for line in said)
    with tenfold.Client() as client, ThreadPoolExecutor() as pool:
        job_id = begun(client, gate)
        # Asked before the kill, answered after it: with another address and another token.
        waiting = pool.submit(client.wait, job_id, timeout_s=HANG_S)
        up.kill()
        again = up.start()
        assert not any("admin token" in line for line in again)
        gate.write_text("go\n")
        assert waiting.result().state == "succeeded"
        check_ran_once(client, job_id)
    up.interrupt()


def test_ctrl_c_leaves_jobs_running_and_says_so(up: Up, gate: Path):
    up.start()
    with tenfold.Client() as client:
        job_id = begun(client, gate)
    assert (
        "stopped; 1 job is still running, and the next `tenfold up` reattaches to it"
        in up.interrupt()
    )
    with pytest.raises(tenfold.TenfoldError) as wrong:
        tenfold.Client()
    assert wrong.value.code == "no-control-plane"
    gate.write_text("go\n")
    up.start()
    with tenfold.Client() as client:
        client.wait(job_id, timeout_s=HANG_S)
        check_ran_once(client, job_id)
    assert "stopped; no jobs were running" in up.interrupt()


def test_the_nodes_of_a_fleet_file_are_virtual_here(up: Up, tmp_path: Path):
    pool = '[[pool]]\nname = "h100"\nnodes = 2\naccelerator = "H100-80G-SXM"\ngpus_per_node = 8\n'
    (tmp_path / "fleet.toml").write_text(f'name = "two"\n{pool}')
    said = up.start("--fleet", str(tmp_path / "fleet.toml"), "--policy", "governed")
    assert "nodes: fleet `two`: 2 nodes, 16 GPUs, all virtual" in "\n".join(said)
    assert any(line.startswith("memory limits: ") for line in said)
    with tenfold.Client() as client:
        assert [(one.pool, one.gpus) for one in client.nodes()] == [("virtual-h100", 8)] * 2
        made = client.submit(
            command=["sh", "-c", "echo $CUDA_VISIBLE_DEVICES"],
            nodes=2,
            gpus_per_node=4,
            accelerator="H100-80G-SXM",
        )
        assert client.wait(made.id, timeout_s=HANG_S).state == "succeeded"
        assert len(client.logs(made.id, member=1).split(",")) == 4
        with pytest.raises(tenfold.InputError, match="without `virtual`"):
            client.submit(command=["true"], gpus_per_node=1, avoids=["virtual"])
    up.interrupt()


def test_a_folder_stays_with_its_fleet(up: Up):
    up.start("--virtual-nodes", "3")
    up.interrupt()
    with pytest.raises(AssertionError, match="`virtual-3` is not in this fleet"):
        up.start("--virtual-nodes", "2")
    with pytest.raises(AssertionError) as refused:
        up.start()
    assert "3 nodes, such as `virtual-1`, are not in this fleet" in str(refused.value)
    assert "hint: start with `--virtual-nodes 3`, as before" in str(refused.value)
    said = up.start("--virtual-nodes", "4")
    assert "nodes: 4 nodes, 32 GPUs, all virtual: jobs run on this machine" in said
    up.interrupt()


def test_a_time_limit_that_ran_out_stays_one_though_the_control_plane_was_killed(up: Up):
    up.start("--virtual-nodes", "1")
    stays = "trap 'echo told' TERM; echo begun; while :; do sleep 0.1; done"
    with tenfold.Client() as client:
        made = client.submit(command=["sh", "-c", stays], time_limit="1s", grace="4s")
        # It has been told to end, and has its grace.
        until(lambda: "told" in client.logs(made.id))
    up.kill()
    up.start("--virtual-nodes", "1")
    with tenfold.Client() as client:
        job = client.wait(made.id)
    assert (job.state, job.reason.code) == ("failed", "timeout")
