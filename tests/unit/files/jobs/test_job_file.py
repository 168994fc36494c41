"""One schema of job files: what is submitted, what is tried, and the columns of a job table."""

import json
from pathlib import Path

import pytest

from tenfold.cli.main import main
from tenfold.files.jobs.submission import job_of, read_job_file, read_submission
from tenfold.model.errors import InvalidFile
from tenfold.model.job.job import Job
from tenfold.model.job.spec import NOT_SUBMITTED

FLEET = '[[pool]]\nname = "h100"\nnodes = 2\naccelerator = "H100-80G-SXM"\ngpus_per_node = 8\n'


def written(folder: Path, text: str) -> Path:
    path = folder / "job.toml"
    path.write_text(text)
    return path


def tried(folder: Path, text: str) -> Job:
    return job_of(read_job_file(written(folder, text)))


def told(error: InvalidFile) -> list[tuple[int | None, str]]:
    return [(one.line, one.message) for one in error.findings]


def test_a_column_that_means_a_key_is_submitted_as_that_key(tmp_path: Path):
    text = 'job_id = "a"\ncommand = ["true"]\ngpu_type = "H100"\nlimit_s = 60\ngpus_per_node = 1\n'
    assert read_submission(written(tmp_path, text)) == {
        "name": "a",
        "command": ["true"],
        "accelerator": "H100",
        "time_limit": 60,
        "gpus_per_node": 1,
    }


@pytest.mark.parametrize(
    ("table", "by_node"),
    [
        (
            "gpus = 16\ngpus_per_node = 8\ncpus = 4",
            "nodes = 2\ngpus_per_node = 8\ncpus_per_node = 2",
        ),
        (
            "gpus = 4\nnodes = 1\nmem_gib = 8",
            "gpus_per_node = 4\nmemory_gib_per_node = 8\ncpus_per_node = 0",
        ),
        ("gpus = 0.5", "gpus_per_node = 0.5\ncpus_per_node = 0"),
        (
            "gpus = 0\ncpus = 1\ngpu_type = 'A'\nlimit_s = 7200",
            "accelerator = 'A'\ntime_limit = '2h'",
        ),
        (
            "gpus = 16\ngpus_per_node = 8\nleast_gpus = 8\nmost_gpus = 32",
            "nodes = 2\ngpus_per_node = 8\nelastic = {min = 1, max = 4}",
        ),
        (
            "gpus = 1\ncheckpoint_every_s = 600",
            "gpus_per_node = 1\ncpus_per_node = 0\ncheckpoint = {dir = 'c', interval = '10m'}",
        ),
    ],
)
def test_both_ways_of_writing_a_job_are_one_job(tmp_path: Path, table: str, by_node: str):
    assert tried(tmp_path, f'job_id = "a"\n{table}\n') == tried(
        tmp_path, f'name = "a"\n{by_node}\n'
    )


def test_who_submits_and_names_of_a_trace_are_taken_from_the_file(tmp_path: Path):
    job = tried(tmp_path, 'job_id = "sweep[3]"\nteam = "vision lab"\nuser = "ann"\ngpus = 1\n')
    assert (job.id, job.team, job.user) == ("sweep[3]", "vision lab", "ann")


@pytest.mark.parametrize("first", ["name", "job_id"])
def test_a_key_and_its_other_name_are_not_both_given(tmp_path: Path, first: str):
    second = {"name": "job_id", "job_id": "name"}[first]
    path = written(tmp_path, f'command = ["true"]\n{first} = "a"\n{second} = "a"\n')
    for read in (read_submission, read_job_file):
        with pytest.raises(InvalidFile) as error:
            read(path)
        line = 2 if first == "job_id" else 3
        assert told(error.value) == [(line, "`job_id` means the same as `name`")]


def test_a_fault_names_the_key_that_was_written(tmp_path: Path):
    path = written(tmp_path, 'command = ["true"]\njob_id = "a/b"\nlimit_s = "soon"\n')
    with pytest.raises(InvalidFile) as error:
        read_submission(path)
    (named, timed) = told(error.value)
    assert (named[0], named[1][:17]) == (2, "`job_id` expects ")
    assert timed == (3, "`limit_s` expects a duration, got the string `soon`")


@pytest.mark.parametrize("key", NOT_SUBMITTED)
def test_a_key_that_cannot_be_submitted_is_refused_with_what_to_write(tmp_path: Path, key: str):
    value = '"ann"' if key == "user" else "8"
    size = "gpus = 8\n" if key in ("cpus", "mem_gib", "least_gpus", "most_gpus") else ""
    path = written(tmp_path, f'command = ["true"]\n{key} = {value}\n{size}')
    assert read_job_file(path)
    with pytest.raises(InvalidFile) as error:
        read_submission(path)
    one = error.value.findings[0]
    assert (one.line, one.code, one.hint) == (2, "unknown-key", NOT_SUBMITTED[key])
    assert one.message == f"`{key}` is only supported for recorded runs"


def test_a_size_by_the_node_and_one_of_the_whole_job_are_not_mixed(tmp_path: Path):
    path = written(tmp_path, "gpus = 8\nnodes = 1\ncpus_per_node = 4\ncpus = 4\n")
    with pytest.raises(InvalidFile) as error:
        read_job_file(path)
    assert told(error.value) == [
        (3, "`cpus_per_node` is per node, but `cpus` is for the whole job"),
    ]
    with pytest.raises(InvalidFile) as error:
        read_job_file(written(tmp_path, "gpus = 8\ncpus_per_node = 4\n"))
    assert told(error.value) == [
        (2, "`cpus_per_node` is per node, but `gpus` does not say how many nodes"),
    ]
    with pytest.raises(InvalidFile) as error:
        read_job_file(written(tmp_path, "gpus_per_node = 8\ncpus = 4\nleast_gpus = 4\n"))
    assert [line for line, _ in told(error.value)] == [2, 3]
    with pytest.raises(InvalidFile) as error:
        read_job_file(written(tmp_path, "checkpoint_every_s = 9\ncheckpoint = {dir = 'c'}\n"))
    assert told(error.value) == [(1, "`checkpoint_every_s` means the same as `checkpoint`")]


def test_a_recorded_run_says_which_keys_had_no_part_in_its_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "fleet.toml").write_text(FLEET)
    (tmp_path / "jobs.csv").write_text("job_id,submit_s,duration_s,gpus\nlong,0,36000,8\n")
    files = ["--fleet", str(tmp_path / "fleet.toml"), "--jobs", str(tmp_path / "jobs.csv")]
    run = tmp_path / "run.jsonl"
    assert main(["sim", "run", *files, "--policy", "fifo", "--bundle", str(run)]) == 0
    capsys.readouterr()
    asked = ["--dry-run", "--bundle", str(run), "--at", "1h", "--json"]
    answers: list[object] = []
    for more in ("", 'command = ["true"]\ncheckpoint = {dir = "c"}\n'):
        file = written(tmp_path, f'name = "s"\ngpus_per_node = 8\ncpus_per_node = 0\n{more}')
        assert main(["job", "submit", str(file), *asked]) == 0
        out, err = capsys.readouterr()
        answers.append(json.loads(out))
        unused = "`command`, `checkpoint.dir`"
        assert err == (f"note: ignored on a recorded run: {unused}\n" if more else "")
    assert answers[0] == answers[1]
