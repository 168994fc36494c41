"""Twenty typical batch scripts: each directive is honoured or named."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tenfold.files.sbatch.script import SlurmOption, read_options, read_script
from tenfold.files.sbatch.site import NodeKind, NodeSize, Site
from tenfold.files.sbatch.translate import batch_job

SITE = Site(
    (NodeSize("H100-SXM", 8, 96.0), NodeSize("A100-80GB", 8, 64.0)),
    (NodeKind("hopper", "H100-SXM", ("ib", "nvme")), NodeKind("ampere", "A100-80GB", ("ib",))),
)
ONE_KIND = Site((NodeSize("H100-SXM", 8, 96.0),), (NodeKind("hopper", "H100-SXM", ("ib",)),))


class Case(NamedTuple):
    lines: str
    keys: Mapping[str, object]
    """What becomes a key."""
    named: tuple[str, ...] = ()
    """Options named in notes."""
    refused: tuple[str, ...] = ()
    """Options named in faults."""
    site: Site = SITE


CASES = {
    "one GPU": Case(
        "-J mnist\n--gres=gpu:1\n-c 8\n--mem=32G\n-t 4:00:00",
        {"name": "mnist", "gpus_per_node": 1.0, "cpus_per_node": 8.0, "memory_gib_per_node": 32.0}
        | {"time_limit": "4:00:00"},
    ),
    "a typed gres": Case(
        "--gres=gpu:h100:4\n--mem=512000",
        {"gpus_per_node": 4.0, "accelerator": ["H100-SXM"], "memory_gib_per_node": 500.0},
    ),
    "an array with a limit": Case("--array=0-19%4", {"array": "0-19%4"}),
    "an array with steps": Case("-a 1-9:2", {"array": "1-9:2"}),
    "an array of one index": Case("--array=7", {"array": "7-7"}),
    "a chain": Case("--dependency=afterok:12:13", {"after": ["12", "13"]}),
    "after the end, and alone": Case(
        "-d afterany:train-4,singleton", {"after_any": ["train-4"], "singleton": True}
    ),
    "a dependency that is not there": Case("-d afternotok:12", {}, refused=("dependency",)),
    "torchrun on two nodes": Case(
        "-N 2\n--ntasks-per-node=1\n--gpus-per-node=8\n--cpus-per-task=64",
        {"nodes": 2, "gpus_per_node": 8.0, "cpus_per_node": 64.0},
    ),
    "a task for each GPU": Case(
        "--nodes=2\n--ntasks=16\n--gpus-per-task=1\n--cpus-per-task=6",
        {"nodes": 2, "gpus_per_node": 8.0, "cpus_per_node": 48.0},
    ),
    "Total GPUs for the job": Case(
        "--gpus=a100:16\n--nodes=2\n--mem-per-gpu=40G",
        {"gpus": 16.0, "nodes": 2, "accelerator": ["A100-80GB"], "memory_gib_per_node": 320.0},
    ),
    "memory for each CPU": Case(
        "-n 4\n-c 2\n--mem-per-cpu=4G",
        {"cpus_per_node": 8.0, "memory_gib_per_node": 32.0},
        named=("ntasks",),
    ),
    "constraints": Case(
        "-C ib&h100\n--gres=gpu:8",
        {"needs": ["ib"], "accelerator": ["H100-SXM"], "gpus_per_node": 8.0},
    ),
    "a constraint that no node has": Case("--constraint=volta", {}, refused=("constraint",)),
    "whole nodes": Case(
        "--exclusive\n-N 2",
        {"nodes": 2, "gpus_per_node": 8.0, "cpus_per_node": 96.0},
        named=("exclusive",),
        site=ONE_KIND,
    ),
    "whole nodes of two kinds": Case("--exclusive", {}, refused=("exclusive",)),
    "one switch, no requeue, a signal": Case(
        "--switches=1@12:00:00\n--no-requeue\n--signal=B:USR1@120\n--nice=50",
        {"within": "leaf", "how": "required", "preemptible": False, "grace": 120.0}
        | {"priority": -50},
        named=("no-requeue", "signal"),
    ),
    "files, a folder, variables and mail": Case(
        "-o logs/%x-%A_%a.out\n-e logs/%j.err\n-D /data/run\n--export=ALL,LR=0.1\n"
        "--mail-type=END,FAIL\n--mail-user=a@b.c",
        {"workdir": "/data/run"},
        named=("export", "mail-type", "mail-user"),
    ),
    "a partition and more": Case(
        "-p gpu\n-q long\n-A vision\n-w n1\n--licenses=matlab:1\n--requeue\n--comment=x",
        {"team": "vision"},
        named=("comment",),
        refused=("partition", "qos", "nodelist", "licenses"),
    ),
    "unknown options, a name with a space, nodes without GPUs": Case(
        "--job-name='my run'\n--gpu=4\n-N 4\n--gres=shard:2",
        {"name": "my-run", "nodes": 4},
        named=("job-name",),
        refused=("gpu", "nodes", "gres"),
    ),
}


def with_lines(lines: str) -> str:
    directives = "".join(f"#SBATCH {line}\n" for line in lines.split("\n"))
    return f"#!/bin/bash\n{directives}./train\n"


@pytest.mark.parametrize("name", CASES)
def test_each_directive_is_honoured_or_named(name: str):
    case = CASES[name]
    script = read_script("run.sh", with_lines(case.lines))
    assert len(script.options) == len(case.lines.split("\n"))
    job = batch_job(script, (), (), folder="/data/ann", site=case.site)
    always = {"name", "command", "env", "slurm_variables"} - case.keys.keys()
    assert {key: value for key, value in job.keys.items() if key not in always} == case.keys
    assert {one.option.name for one in job.faults} == set(case.refused)
    assert all(one.hint for one in job.faults)

    def is_named(option: SlurmOption) -> bool:
        return any(note.startswith(option.text) for note in job.notes)

    assert {one.name for one in script.options if is_named(one)} == set(case.named)


def test_there_are_twenty():
    assert len(CASES) == 20


def test_a_script_is_kept_as_it_is_at_submission_with_its_shell_and_its_arguments():
    text = "#!/bin/bash -l\n#SBATCH -o %x-%4a.out\necho $1\n"
    job = batch_job(read_script("a/run.sh", text), (), ("x",), folder="/data/ann", site=None)
    command = job.keys["command"]
    assert isinstance(command, list)
    assert command[:3] == ["/bin/bash", "-l", "-c"]
    assert 'out="/data/ann/${SLURM_JOB_NAME}-$(printf %04d ${SLURM_ARRAY_TASK_ID:-' in str(
        command[3]
    )
    assert command[4:] == ["sbatch", "/bin/bash", "-l", "-c", text, "run.sh", "x"]


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("%x_%j.out", "llm_12.out"),
        ("%x_%A_%a.out", "llm_12_4294967294.out"),
        ("%N_%n_%t_%u.out", "n1_0_3_ann.out"),
        ("%x%%x.out", "llm%x.out"),
    ],
)
def test_letters_and_underscores_after_a_field_are_part_of_the_file_name(pattern: str, name: str):
    script = read_script("run.sh", f"#!/bin/bash\n#SBATCH -o {pattern}\n")
    job = batch_job(script, (), (), folder="/data", site=None)
    command = job.keys["command"]
    assert isinstance(command, list)
    shell = str(command[2]).splitlines()[0]
    own = {"SLURM_JOB_ID": "12", "SLURM_JOB_NAME": "llm", "SLURMD_NODENAME": "n1", "USER": "ann"}
    own |= {"SLURM_NODEID": "0", "SLURM_PROCID": "3"}
    words = ["bash", "-c", f'{shell}; echo "$out"']
    told = subprocess.run(words, env=own, capture_output=True, text=True, check=True)
    assert told.stdout == f"/data/{name}\n"


@pytest.mark.parametrize("line", ["source ~/venv/bin/activate", "cd $HOME/x", 'A="${HOME}"'])
def test_a_script_that_uses_the_home_folder_is_told_whose_it_is(line: str):
    text = f"#!/bin/bash\n{line}\n"
    job = batch_job(read_script("run.sh", text), (), (), folder="/data", site=None)
    assert any("--export=HOME" in note for note in job.notes)
    own = (SlurmOption("--export=HOME=/data/ann", "export", "HOME=/data/ann"),)
    job = batch_job(read_script("run.sh", text), own, (), folder="/data", site=None)
    assert not any("--export=HOME" in note for note in job.notes)


def test_a_folder_of_output_that_does_not_exist_is_named_at_submission(tmp_path: Path):
    text = "#!/bin/bash\n#SBATCH -o logs/%x.out\n#SBATCH -e %x/err\n"
    script = read_script("run.sh", text)
    job = batch_job(script, (), (), folder=str(tmp_path), site=None)
    expected = "the folder `logs` does not exist: create it, or the job fails at its start"
    assert job.notes == [expected]
    (tmp_path / "logs").mkdir()
    assert batch_job(script, (), (), folder=str(tmp_path), site=None).notes == []


def test_other_interpreters_get_the_file():
    script = read_script("run.py", "#!/usr/bin/env python3\n#SBATCH -N 1\nprint()\n")
    job = batch_job(script, (), (), folder="/data/ann", site=None)
    assert job.keys["command"] == ["/usr/bin/env", "python3", "/data/ann/run.py"]


def test_options_of_the_command_line_replace_those_of_the_script():
    options, left = read_options(["-HN", "3", "--time=5", "run.sh", "-N", "9"])
    found = [(one.name, one.value) for one in options]
    assert found == [("hold", ""), ("nodes", "3"), ("time", "5")]
    assert left == ["run.sh", "-N", "9"]
    script = read_script("run.sh", "#!/bin/bash\n#SBATCH -N 2 -G 8\n")
    job = batch_job(script, options[1:], (), folder="/", site=None)
    assert (job.keys["nodes"], job.keys["time_limit"]) == (3, "5m")


def test_a_script_that_asks_slurm_itself_is_told_what_works():
    body = "squeue -u $USER\nscontrol update job\nscontrol show hostnames\nsrun ./x\n"
    script = read_script("run.sh", f"#!/bin/bash\n#SBATCH -N 2 --gpus-per-node=1\n{body}")
    notes = batch_job(script, (), (), folder="/", site=None).notes
    assert notes == [
        "`scontrol update job` does not work in a job: only `scontrol show hostnames` does",
        "`squeue` is no program here: use `tenfold squeue`",
        "all of the script runs on each of the 2 nodes, in Slurm only on the first: what it"
        " downloads, deletes or appends without srun, it does 2 times; start such a command with"
        " `srun -N1 -n1` to run it once",
        "`srun` is a function here: without -N and -n it starts its command once on each node;"
        " there are no job steps",
    ]


def test_random_is_the_same_on_each_node_as_the_script_runs_on_all():
    text = "#!/bin/bash\n#SBATCH -N 2 -G 2\necho $RANDOM $LINENO\n"
    job = batch_job(read_script("run.sh", text), (), (), folder="/", site=None)
    command = job.keys["command"]
    assert isinstance(command, list)
    words = [str(word) for word in command]
    own = {"SLURM_JOB_ID": "12"}
    said = [subprocess.run(words, env=own, capture_output=True, text=True, check=True).stdout]
    said += [subprocess.run(words, env=own, capture_output=True, text=True, check=True).stdout]
    assert said[0] == said[1]
    assert said[0].split()[1] == "3"
