"""The page on job files names every key, and the examples are job files without a fault."""

import re
from pathlib import Path

import pytest

from tenfold.cli.up.state_dir import FIRST_JOB_TEXT
from tenfold.files.jobs.submission import read_submission
from tenfold.model.job.job import JobState
from tenfold.model.job.spec import ALIASES, NOT_SUBMITTED, JobFile, JobSpec

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "job-file.md").read_text()
EXAMPLES = sorted((ROOT / "examples" / "jobs").iterdir())


def test_every_key_is_documented_once_and_no_other():
    keys = re.findall(r"^\| `([a-z_]+)` \|", PAGE, re.MULTILINE)
    states = list(JobState.__args__)
    assert sorted(keys) == sorted([*JobFile.__struct_encode_fields__, *ALIASES, *states])


def test_a_key_is_submitted_or_has_another_to_write_instead():
    submitted = set(JobSpec.__struct_encode_fields__)
    assert set(NOT_SUBMITTED) == set(JobFile.__struct_encode_fields__) - submitted
    assert set(ALIASES.values()) <= submitted


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_an_example_can_be_handed_in(file: Path):
    assert read_submission(file)["command"]


def test_so_can_the_first_job_that_is_offered(tmp_path: Path):
    (tmp_path / "first.toml").write_text(FIRST_JOB_TEXT)
    assert read_submission(tmp_path / "first.toml")["name"] == "hello"
