"""What is handed in to be run, from files and from requests."""

from pathlib import Path

import pytest

from tenfold.files.jobs.submission import (
    faults_in_file,
    job_of,
    read_job_file,
    read_submission,
    submission_of,
)
from tenfold.model.api.problems import Fault
from tenfold.model.errors import InvalidFile
from tenfold.model.fleet.finding import Finding
from tenfold.model.ids import TeamId
from tenfold.model.job.submission import Submission, admitted
from tenfold.model.job.terms import Terms
from tenfold.model.units import Millis

TEAM = TeamId("vision")


def asked(**values: object) -> Submission:
    findings: list[Finding] = []
    found = submission_of({"command": ["true"], **values}, TEAM, "ann", findings)
    assert found is not None, findings
    return found


def faults(**values: object) -> list[tuple[str, str]]:
    findings: list[Finding] = []
    assert submission_of({"command": ["true"], **values}, TEAM, "", findings) is None
    return [(one.code, one.field) for one in findings]


def test_everything_but_the_command_has_a_default():
    found = asked()
    assert (found.team, found.run_spec.name, found.run_spec.command) == ("vision", "job", ("true",))
    assert (found.shape.gpus, found.shape.cpus_milli) == (0, 1_000)
    assert found.terms == Terms(keep_on_rerank=True)


@pytest.mark.parametrize(
    ("values", "may_stop"),
    [
        ({}, False),
        ({"preemptible": True}, True),
        ({"preemptible": False}, False),
        ({"checkpoint": {"dir": "saved"}}, True),
        ({"checkpoint": {"dir": "saved"}, "preemptible": False}, False),
    ],
)
def test_reranking_stops_only_jobs_that_save_their_work_or_allow_it(
    values: dict[str, object], may_stop: bool
):
    terms = asked(**values).terms or Terms()
    assert terms.rerank_preemptible is may_stop
    assert terms.preemptible is (values.get("preemptible") is not False)


def test_a_job_tried_against_a_recorded_run_is_preemptible_by_default(tmp_path: Path):
    path = tmp_path / "job.toml"
    path.write_text("gpus = 8\n")
    assert job_of(read_job_file(path)).terms is None


def test_a_gang_asks_for_gpus_on_each_of_its_nodes():
    found = asked(nodes=4, gpus_per_node=8, accelerator=["H100", "H200"], cpus_per_node=16)
    assert (found.shape.gpus, found.shape.gpus_per_node) == (32, 8)
    assert (found.shape.accelerators, found.shape.cpus_milli) == (("H100", "H200"), 64_000)


@pytest.mark.parametrize(
    ("text", "milli"),
    [("90m", 5_400_000), ("1.5h", 5_400_000), ("1-00:00:00", 86_400_000), (30, 30_000)],
)
def test_times_are_written_as_people_write_them(text: object, milli: int):
    assert asked(time_limit=text).limit_ms == milli


def test_elastic_bounds_are_nodes_and_become_gpus():
    terms = asked(nodes=2, gpus_per_node=4, elastic={"min": 1, "max": 4}).terms
    assert terms is not None
    assert (terms.least_gpus, terms.most_gpus) == (4, 16)


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"command": []}, ("wrong-value", "command")),
        ({"nodez": 2}, ("unknown-key", "nodez")),
        ({"name": "../../etc"}, ("wrong-value", "name")),
        ({"team": "a/b"}, ("wrong-value", "team")),
        ({"nodes": 2}, ("wrong-value", "nodes")),
        ({"gpus_per_node": 1.5}, ("wrong-value", "gpus_per_node")),
        ({"time_limit": "soon"}, ("wrong-value", "time_limit")),
        ({"env": {"TENFOLD_JOB": "x"}}, ("wrong-value", "env.TENFOLD_JOB")),
        ({"checkpoint": {"dir": "c", "interval": "x"}}, ("wrong-value", "checkpoint.interval")),
        ({"gpus_per_node": 1, "elastic": {"min": 2, "max": 3}}, ("wrong-value", "elastic")),
    ],
)
def test_a_request_that_cannot_be_names_its_field(
    values: dict[str, object], fault: tuple[str, str]
):
    assert faults(**values) == [fault]


def test_all_faults_of_a_file_are_named_with_their_lines(tmp_path: Path):
    path = tmp_path / "job.toml"
    path.write_text('command = ["true"]\nnodes = 0\ngpus_per_nod = 8\ntime_limit = 5\n')
    with pytest.raises(InvalidFile) as error:
        read_submission(path)
    assert [(one.line, one.code) for one in error.value.findings] == [
        (2, "wrong-value"),
        (3, "unknown-key"),
    ]


def test_an_array_is_so_many_jobs_that_know_their_place():
    members = admitted(asked(array=3, name="sweep"), 7, Millis(1_000))
    assert [one.job.id for one in members] == ["sweep-7[0]", "sweep-7[1]", "sweep-7[2]"]
    assert [one.job.seq for one in members] == [7, 8, 9]
    assert members[2].run_spec.env == (("TENFOLD_ARRAY_INDEX", "2"),)
    assert {one.job.terms.array for one in members if one.job.terms} == {"sweep-7"}


def test_a_job_is_named_by_its_number():
    [one] = admitted(asked(name="train"), 12, Millis(5))
    assert (one.job.id, one.job.submitted_ms) == ("train-12", 5)


@pytest.mark.parametrize(
    ("values", "gpus", "per_node"),
    [
        ({"gpus_per_node": 16}, 16, 16),
        ({"gpus": 16}, 16, None),
        ({"gpus": 12, "nodes": 2}, 12, 6),
        ({"gpus": 12, "gpus_per_node": 4}, 12, 4),
        ({"gpus": 16, "nodes": 2, "gpus_per_node": 8}, 16, 8),
        ({"gpus": 1}, 1, None),
        ({"gpus_per_node": 1}, 1, None),
    ],
)
def test_gpus_are_of_the_whole_job_and_gpus_per_node_of_one_node(
    values: dict[str, object], gpus: int, per_node: int | None
):
    shape = asked(**values).shape
    assert (shape.gpus, shape.gpus_per_node) == (gpus, per_node)


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"gpus": 16, "nodes": 3}, "gpus"),
        ({"gpus": 16, "gpus_per_node": 5}, "gpus"),
        ({"gpus": 16, "nodes": 2, "gpus_per_node": 4}, "gpus"),
        ({"gpus": 1.5}, "gpus"),
        ({"gpus": 0, "nodes": 2}, "gpus"),
        ({"gpus": 0.5, "nodes": 2}, "gpus"),
        ({"gpus": 16, "cpus_per_node": 4}, "cpus_per_node"),
        ({"gpus": 16, "elastic": {"min": 1, "max": 2}}, "elastic"),
    ],
)
def test_gpus_that_contradict_another_key_or_leave_a_remainder_are_refused(
    values: dict[str, object], field: str
):
    assert faults(**values) == [("wrong-value", field)]


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("time", "time_limit"),
        ("gpu", "gpus_per_node"),
        ("num_gpus", "gpus"),
        ("mem", "memory_gib_per_node"),
        ("partition", "needs"),
        ("depends_on", "after"),
        ("cpus-per-task", "cpus_per_node"),
        ("tiem_limit", "time_limit"),
    ],
)
def test_a_key_of_another_scheduler_gets_the_key_to_write(key: str, meant: str):
    findings: list[Finding] = []
    assert submission_of({"command": ["true"], key: 1}, TEAM, "", findings) is None
    assert findings[0].hint.startswith(f"did you mean `{meant}`")


def test_wrong_values_are_named_beside_unknown_and_missing_keys():
    findings: list[Finding] = []
    values = {"nodes": 2, "gpus_per_node": 0.5, "time": "1h", "grace": "soon"}
    assert submission_of(values, TEAM, "", findings) is None
    assert sorted((one.code, one.field) for one in findings) == [
        ("missing-key", ""),
        ("unknown-key", "time"),
        ("wrong-value", "gpus_per_node"),
        ("wrong-value", "grace"),
    ]


def test_a_size_with_a_wrong_type_is_reported_once():
    assert faults(nodes="two", gpus_per_node=8, elastic={"min": 2, "max": 3}) == [
        ("wrong-value", "nodes")
    ]


def test_what_a_control_plane_refuses_is_found_in_the_file(tmp_path: Path):
    path = tmp_path / "job.toml"
    path.write_text('command = ["true"]\ngpu_type = "H900"\ngpus_per_node = 16\n')
    told = [
        Fault(field="accelerator", code="no-such-accelerator", message="no node has `H900`"),
        Fault(field="gpus_per_node", code="larger-than-a-node", message="needs 16 GPUs"),
    ]
    found = faults_in_file(path, told).findings
    assert [(one.line, one.field) for one in found] == [(2, "gpu_type"), (3, "gpus_per_node")]
