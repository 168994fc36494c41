"""What is handed in to be run, from files and from requests."""

from pathlib import Path

import pytest

from tenfold.files.jobs.submission import read_submission, submission_of
from tenfold.model.errors import InvalidFile
from tenfold.model.fleet.finding import Finding
from tenfold.model.ids import TeamId
from tenfold.model.job.submission import Submission, admitted
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
    assert (found.shape.gpus, found.shape.cpus_milli, found.terms) == (0, 1_000, None)


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
    assert (one.job.id, one.job.submitted_ms, one.job.terms) == ("train-12", 5, None)
