"""A file or an answer that is nested a hundred thousand deep is an error, and ends no process."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec import Struct

from tenfold.checkpoint import CheckpointError, newest
from tenfold.cli.up.state_dir import NODES, previous_nodes
from tenfold.client.calls import get
from tenfold.client.endpoint import ADDRESS, read_address
from tenfold.client.problems import problem_of
from tenfold.files.core.document import read_document
from tenfold.files.core.export_json import read_json
from tenfold.files.core.json_lines import read_json_lines
from tenfold.files.measured.baselines import read_store
from tenfold.files.measured.steps import read_step_lines
from tenfold.files.measured.torch_trace import read_torch_trace
from tenfold.files.models.hf_config import read_hf_config
from tenfold.files.records.replay_bundle import read_bundle
from tenfold.files.records.shadow_log import latest_entries
from tenfold.files.traces.node_faults import read_fault_trace
from tenfold.files.traces.public.philly import read_philly
from tenfold.model.errors import TenfoldError
from tenfold.server.problems import Problem
from tenfold.server.submissions import decode_object

DEPTHS = (101, 300, 480, 900, 3_000, 100_000)
"""Around Python's own limit, where one step of a reader passes and the next does not, and far
beyond it."""
YAML: dict[str, Callable[[int], str]] = {
    "flow lists": lambda depth: "a: " + "[" * depth + "]" * depth,
    "flow lists cut off": lambda depth: "a: " + "[" * depth,
    "flow tables": lambda depth: "a: " + "{a: " * depth + "1" + "}" * depth,
    "lists on one line": lambda depth: "- " * depth + "x",
    "keys": lambda depth: "? " * depth + "x",
    "lines": lambda depth: "".join(f"{' ' * at}a:\n" for at in range(min(depth, 3_000))),
}
TOML: dict[str, Callable[[int], str]] = {
    "lists": lambda depth: "a = " + "[" * depth + "]" * depth,
    "tables": lambda depth: "a = " + "{a = " * depth + "1" + "}" * depth,
    "keys": lambda depth: "a." * depth + "a = 1",
    "headers": lambda depth: "[" + "a." * depth + "a]\nx = 1",
}
JSON: dict[str, Callable[[int], str]] = {
    "lists": lambda depth: "[" * depth + "]" * depth,
    "tables": lambda depth: '{"a": ' * depth + "1" + "}" * depth,
    "a list in a table": lambda depth: '{"schema": ' + "[" * depth + "]" * depth + "}",
}


class Row(Struct):
    schema: int = 0
    a: list[object] | None = None


READ = """
import sys
from pathlib import Path
from tenfold.files.core.document import read_document
from tenfold.model.errors import InputError
for path in sys.argv[1:]:
    try:
        read_document(Path(path))
    except InputError as error:
        print(Path(path).name, error.code, error.hint, sep="|")
"""


def test_every_shape_of_yaml_and_toml_is_an_error_with_a_hint(tmp_path: Path):
    """In a process of its own, since what is tested for is its end."""
    shapes = {f"{name}.yaml": make for name, make in YAML.items()}
    shapes |= {f"{name}.toml": make for name, make in TOML.items()}
    files: list[Path] = []
    for name, make in shapes.items():
        for depth in (3_000, 100_000):
            files.append(tmp_path / f"{depth} {name}")
            files[-1].write_text(make(depth))
    done = subprocess.run(
        [sys.executable, "-c", READ, *files], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-500:])
    said = [line.split("|") for line in done.stdout.splitlines()]
    assert [words[0] for words in said] == [file.name for file in files]
    assert {words[1] for words in said} == {"nested-too-deep"}
    assert all(words[2] for words in said)


def test_yaml_that_people_write_is_nested_less(tmp_path: Path):
    for depth in (1, 50, 99):
        path = tmp_path / "file.yaml"
        path.write_text(YAML["flow lists"](depth))
        assert list(read_document(path).values) == ["a"]


def file_readers() -> dict[str, Callable[[Path], object]]:
    return {
        "json lines": lambda path: read_json_lines(path, Row),
        "baselines": read_store,
        "steps": lambda path: read_step_lines(path.read_text(), "f", 0),
        "torch trace": lambda path: read_torch_trace(path.read_bytes(), "f", 0),
        "model": read_hf_config,
        "bundle": read_bundle,
        "shadow log": lambda path: latest_entries(path, 10),
        "faults": read_fault_trace,
        "philly": read_philly,
        "another system's": lambda path: read_json(path.read_text(), "f", "x"),
        "checkpoint": lambda path: newest(path.parent),
        "problem": lambda path: problem_of(500, path.read_bytes(), "http://x"),
        "answer": lambda path: get("/jobs", dict).read(path.read_bytes(), "http://x"),
        "body": lambda path: decode_object(path.read_bytes()),
    }


@pytest.mark.parametrize("reader", list(file_readers()))
@pytest.mark.parametrize("shape", list(JSON))
def test_no_reader_of_json_fails_but_with_its_own_error(tmp_path: Path, reader: str, shape: str):
    for depth in DEPTHS:
        path = tmp_path / "file.jsonl"
        path.write_text(JSON[shape](depth) + "\n")
        with suppress(TenfoldError, CheckpointError, Problem):
            file_readers()[reader](path)


@pytest.mark.parametrize("shape", list(JSON))
def test_files_of_the_state_folder_count_as_missing(tmp_path: Path, shape: str):
    for name in (ADDRESS, NODES):
        (tmp_path / name).write_text(JSON[shape](100_000))
    assert read_address(tmp_path) is None
    assert previous_nodes(tmp_path) == []
