"""What scripts for Slurm find in a job: variables, `srun` and `scontrol`."""

import subprocess
from typing import cast

import pytest

from tenfold.live.local.attempt.slurm_variables import slurm_variables
from tenfold.live.local.spawner.wire import LaunchLine


def launch(job: str, env: list[tuple[str, str]], nodes: int = 2) -> LaunchLine:
    members = [
        {"node": f"n{number}", "gpus": [0, 1], "cpus_milli": 4_000, "memory_mib": 2_048}
        for number in range(1, nodes + 1)
    ]
    line = {"job": job, "name": "train", "team": "vision", "attempt": 2, "env": env}
    return cast("LaunchLine", {**line, "members": members})


def printed(script: str, line: LaunchLine, rank: int = 0) -> list[str]:
    env = {"PATH": "/usr/bin:/bin", "TENFOLD_NODES": "n1,n2", **slurm_variables(line, rank)}
    env |= dict(line["env"])
    done = subprocess.run(
        ["bash", "-c", script], env=env, capture_output=True, text=True, check=False
    )
    return [*done.stdout.splitlines(), *done.stderr.splitlines(), f"exit {done.returncode}"]


def test_a_member_of_an_array_has_its_index_and_a_number_of_its_own():
    env = [("TENFOLD_ARRAY_INDEXES", "1-3,7"), ("TENFOLD_ARRAY_INDEX", "7")]
    found = slurm_variables(launch("sweep-30[7]", env), 0)
    names = ("SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_JOB_ID", "SLURM_RESTART_COUNT")
    assert [found[name] for name in names] == ["30", "7", "33", "1"]


def test_a_node_has_its_place_and_what_it_got():
    found = slurm_variables(launch("train-12", [("SLURM_NTASKS_PER_NODE", "2")]), 1)
    names = ("SLURM_JOB_ID", "SLURM_NNODES", "SLURM_NODEID", "SLURM_PROCID", "SLURM_NTASKS")
    assert [found[name] for name in names] == ["12", "2", "1", "2", "4"]
    assert (found["SLURM_GPUS_ON_NODE"], found["SLURM_GPUS"]) == ("2", "4")
    assert found["SLURM_JOB_NODELIST"] == "n1,n2"
    assert "SLURM_ARRAY_TASK_ID" not in found


def test_srun_runs_the_tasks_of_its_node_and_fails_if_one_does():
    line = launch("train-12", [("SLURM_NTASKS_PER_NODE", "2")])
    script = "srun --cpu-bind=none -c 4 bash -c 'echo $SLURM_PROCID/$SLURM_NTASKS $SLURM_LOCALID'"
    assert sorted(printed(script, line, 1)) == ["2/4 0", "3/4 1", "exit 0"]
    assert printed("srun bash -c 'exit $((SLURM_LOCALID * 5))'", line) == ["exit 5"]
    once = 'echo "$(srun --nodes=1 --ntasks=1 -w n1 echo head)"'
    assert printed(once, line) == ["head", "exit 0"]


def test_what_srun_and_scontrol_cannot_do_fails_with_its_name():
    line = launch("train-12", [])
    assert printed("srun -o x.log true", line) == [
        "srun: -o is not supported here; redirect with > or use cd",
        "exit 2",
    ]
    assert printed("scontrol update x", line)[-1] == "exit 2"


def test_scontrol_prints_an_address_for_each_node_as_all_are_on_this_machine():
    line = launch("train-12", [])
    here = "127.0.0.1"
    assert printed("scontrol show hostnames", line) == [here, here, "exit 0"]
    assert printed('scontrol show hostnames "$SLURM_NODELIST" | head -n1', line)[0] == here
    own = "getent() { true; }; HOSTNAME=n2; scontrol show hostnames"
    assert printed(own, line) == [here, "n2", "exit 0"]
    assert printed("getent() { false; }; HOSTNAME=n2; scontrol show hostnames", line)[1] == here


SHOW = "bash -c 'echo $SLURM_PROCID/$SLURM_NTASKS of node $SLURM_NODEID/$SLURM_NNODES'"


@pytest.mark.parametrize("step", ["-n1", "-N1", "-N1 -n1", "--ntasks=1", "--nodes 1 --ntasks 1"])
def test_a_step_of_one_task_runs_on_the_first_node_only(step: str):
    line = launch("train-12", [], nodes=3)
    found = [printed(f"srun {step} {SHOW}", line, rank) for rank in range(3)]
    assert found == [["0/1 of node 0/1", "exit 0"], ["exit 0"], ["exit 0"]]


@pytest.mark.parametrize("step", ["-w n2", "-r1 -N1", "--relative=1 -n1", "-N1 -n1 -w n2"])
def test_a_step_runs_on_the_node_that_it_names(step: str):
    line = launch("train-12", [])
    found = [printed(f"srun {step} {SHOW}", line, rank) for rank in range(2)]
    assert found == [["exit 0"], ["0/1 of node 0/1", "exit 0"]]


@pytest.mark.parametrize("name", ["n1", "$(scontrol show hostnames | head -n1)"])
def test_a_step_whose_output_the_script_reads_answers_on_each_node(name: str):
    line = launch("train-12", [])
    script = f'head="{name}"; ip=$(srun --nodes=1 --ntasks=1 -w "$head" echo 10.0.0.1); echo "$ip"'
    assert [printed(script, line, rank) for rank in range(2)] == [["10.0.0.1", "exit 0"]] * 2


def test_tasks_are_spread_over_nodes_and_counted_through():
    line = launch("train-12", [("SLURM_NTASKS_PER_NODE", "8")], nodes=3)
    for step, counts in (
        ("-n4", [2, 1, 1]),
        ("--ntasks-per-node=1", [1, 1, 1]),
        ("-n2", [1, 1, 0]),
    ):
        found = [printed(f"set -eu; srun {step} {SHOW}", line, rank) for rank in range(3)]
        ranks = [one.partition("/")[0] for out in found for one in sorted(out[:-1])]
        assert ranks == [str(rank) for rank in range(sum(counts))]
        assert [len(out) - 1 for out in found] == counts


def test_a_launcher_in_a_smaller_step_does_not_wait_for_the_other_nodes():
    env = [("PET_NNODES", "2"), ("RANK", "0"), ("WORLD_SIZE", "2")]
    show = "srun -n1 bash -c 'echo $PET_NNODES $WORLD_SIZE'; echo $PET_NNODES $WORLD_SIZE"
    assert printed(show, launch("train-12", env)) == ["1 1", "2 2", "exit 0"]


@pytest.mark.parametrize(
    ("step", "status"), [("-N9", 1), ("-n 0", 2), ("-N two", 2), ("-w 127.0.0.1", 2), ("-n", 2)]
)
def test_a_step_that_cannot_be_placed_fails_and_says_why(step: str, status: int):
    command = f"srun {step}" if step == "-n" else f"srun {step} true"
    *told, ended = printed(command, launch("train-12", []))
    assert ended == f"exit {status}"
    assert told[0].startswith("srun: ")
