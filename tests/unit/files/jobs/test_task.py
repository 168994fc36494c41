"""Task files in the layout of SkyPilot become job files; no key is dropped."""

import os
import subprocess
from pathlib import Path

import pytest

from tenfold.files.core.document import parse_document
from tenfold.files.jobs.submission import body_of, job_source
from tenfold.files.jobs.task import NOTED, REFUSED, TaskFile, is_task, read_task
from tenfold.model.errors import InvalidFile

TRAIN = """\
name: train
workdir: .
num_nodes: 2
resources:
  accelerators: H100:8
  cpus: 32+
  memory: 256+
  use_spot: true
envs:
  EPOCHS: 3
  MODEL: small
setup: |
  pip install -r requirements.txt
run: |
  torchrun --nnodes $SKYPILOT_NUM_NODES train.py
"""


def task(text: str, **env: str) -> TaskFile:
    document = parse_document(text, "task.yaml")
    assert is_task(document.values)
    return read_task(document, env)


def faults(text: str, **env: str) -> list[tuple[int | None, str]]:
    with pytest.raises(InvalidFile) as raised:
        task(text, **env)
    return [(one.line, one.message) for one in raised.value.findings]


def test_a_task_becomes_a_job_file_with_the_same_resources() -> None:
    values = task(TRAIN).document.values
    assert values["name"] == "train"
    assert values["nodes"] == 2
    assert values["accelerator"] == "H100"
    assert values["gpus_per_node"] == 8
    assert values["cpus_per_node"] == 32
    assert values["memory_gib_per_node"] == 256
    assert values["env"] == {"EPOCHS": "3", "MODEL": "small"}
    assert values["workdir"] == str(Path.cwd())


def test_the_job_of_a_task_can_be_submitted() -> None:
    body = body_of(job_source(task(TRAIN).document))
    assert body["gpus_per_node"] == 8


def test_what_changes_nothing_is_named_in_a_note() -> None:
    notes = task(TRAIN).notes
    assert [note.split(":")[0] for note in notes] == [
        "workdir",
        "resources.cpus",
        "resources.memory",
        "resources.use_spot",
        "setup",
    ]


def test_a_key_that_asks_for_a_place_is_refused_with_its_line() -> None:
    found = faults("resources:\n  region: us-east-1\nrun: 'true'\nfile_mounts:\n  /a: s3://b\n")
    assert found == [
        (2, "`resources.region` is not supported"),
        (4, "`file_mounts` is not supported"),
    ]


def test_an_unknown_key_is_refused() -> None:
    assert faults("run: 'true'\nresorces: {}\n") == [(2, "`resorces` is unknown")]


def test_a_variable_without_a_value_must_be_passed() -> None:
    text = "envs:\n  TOKEN: null\nrun: 'true'\n"
    assert faults(text) == [(2, "`envs.TOKEN` has no value")]
    assert "env" not in task(text, TOKEN="x").document.values


def test_several_types_with_one_number_are_alternatives() -> None:
    values = task("resources:\n  accelerators: [H100:4, A100:4]\nrun: 'true'\n").document.values
    assert (values["accelerator"], values["gpus_per_node"]) == (["H100", "A100"], 4)
    values = task("resources:\n  accelerators: {L40S: 1}\nrun: 'true'\n").document.values
    assert (values["accelerator"], values["gpus_per_node"]) == ("L40S", 1)


def test_several_types_with_different_numbers_are_refused() -> None:
    found = faults("resources:\n  accelerators: [H100:4, A100:8]\nrun: 'true'\n")
    assert found == [(2, "`resources.accelerators` asks for different numbers of GPUs")]


def test_an_image_of_a_container_is_kept_and_one_of_a_machine_refused() -> None:
    values = task("resources: {image_id: 'docker:a/b'}\nrun: 'true'\n").document.values
    assert values["image"] == "a/b"
    assert faults("resources: {image_id: ami-1}\nrun: 'true'\n") == [
        (1, "`resources.image_id` is not a container image")
    ]


def test_an_error_of_the_job_file_names_the_line_of_the_task() -> None:
    document = task("run: 'true'\nnum_nodes: zero\n").document
    with pytest.raises(InvalidFile) as raised:
        body_of(job_source(document))
    assert [one.line for one in raised.value.findings] == [2]


def test_a_job_file_is_no_task() -> None:
    assert not is_task({"command": ["true"], "run": "x"})
    assert not is_task({"command": ["true"]})


def test_notes_and_refusals_name_different_keys() -> None:
    assert not NOTED.keys() & REFUSED.keys()


def test_setup_and_run_really_run_in_order_with_the_variables() -> None:
    text = (
        "num_nodes: 2\nresources: {accelerators: H100:8}\nsetup: echo setup $NAME\n"
        "run: |\n  echo $SKYPILOT_NODE_RANK of $SKYPILOT_NUM_NODES, $SKYPILOT_NUM_GPUS_PER_NODE\n"
        "  exit 3\n"
    )
    command = task(text).document.values["command"]
    assert isinstance(command, list)
    env = {**os.environ, "PET_NODE_RANK": "1", "PET_NNODES": "2", "NAME": "x"}
    words = [str(word) for word in command]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "setup x\n1 of 2, 8\n")


def test_a_setup_that_fails_ends_the_job_before_run() -> None:
    command = task("setup: exit 4\nrun: echo ran\n").document.values["command"]
    assert isinstance(command, list)
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (4, "")


def test_the_example_is_a_task_without_a_fault() -> None:
    text = (Path(__file__).parents[4] / "examples" / "tasks" / "train.yaml").read_text()
    assert body_of(job_source(task(text).document))["name"] == "task"
