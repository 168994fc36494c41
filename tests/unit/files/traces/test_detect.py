"""`tenfold sim import`, without the program around it."""

from pathlib import Path
from typing import get_args

import pytest

from tenfold.cli.sim.importing import TraceFormat, import_trace, import_trace_command
from tenfold.files.traces.detect import FORMATS
from tenfold.files.traces.jobs import read_jobs
from tenfold.model.errors import InputError

LOG = """\
JobID|User|Account|State|Submit|Start|End|ElapsedRaw|ReqTRES
1|ann|vision|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T01:00:00|3600|cpu=8,gres/gpu=8
2|bob|nlp|PENDING|2026-01-01T12:00:00|Unknown|Unknown|0|cpu=8,gres/gpu=8
3|bob|nlp|FAILED|2026-01-01T12:00:00|2026-01-01T12:00:00|2026-01-01T12:30:00|1800|cpu=8,gres/gpu=2
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "sacct.txt"
    path.write_text(LOG)
    return path


def test_an_imported_trace_is_a_job_table(log: Path, tmp_path: Path):
    out = tmp_path / "jobs.parquet"
    summary = import_trace((log,), "auto", out)
    assert (summary.jobs, summary.teams, summary.shapes) == (2, 2, 2)
    assert (summary.gpu_hours, summary.days) == (9.0, 0.5)
    assert [(job.id, job.team) for job in read_jobs(out).jobs] == [("1", "vision"), ("3", "nlp")]
    assert read_jobs(out).statuses == {"1": "completed", "3": "failed"}


def test_notes_go_to_standard_error(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    import_trace_command("sacct", log, out=tmp_path / "jobs.csv")
    captured = capsys.readouterr()
    assert captured.out.startswith(
        "2 jobs from 2 teams over 0.5 days, 9 GPU-hours, 2 distinct job shapes"
    )
    assert "note: 1 job is skipped: they never started" in captured.err


def test_every_format_can_be_asked_for_by_name():
    assert get_args(TraceFormat) == ("auto", *FORMATS)


@pytest.mark.parametrize("format", ["sacct", "auto"])
def test_sacct_in_columns_gets_the_option_that_is_missing(tmp_path: Path, format: TraceFormat):
    path = tmp_path / "sacct.txt"
    path.write_text(
        "JobID             User      State              Submit\n"
        "------------ --------- ---------- -------------------\n"
        "12                 ann  COMPLETED 2026-01-01T00:00:00\n"
    )
    with pytest.raises(InputError, match="in columns") as error:
        import_trace((path,), format, tmp_path / "jobs.csv")
    assert (error.value.code, error.value.hint) == (
        "not-parsable",
        "run `sacct` with `--parsable2` (`-P`)",
    )


@pytest.mark.parametrize("format", ["sacct", "auto"])
def test_sacct_without_options_gets_the_columns_too(tmp_path: Path, format: TraceFormat):
    path = tmp_path / "sacct.txt"
    path.write_text(
        "JobID           JobName  Partition    Account  AllocCPUS      State ExitCode\n"
        "------------ ---------- ---------- ---------- ---------- ---------- --------\n"
        "1                 train        gpu        red          8  COMPLETED      0:0\n"
    )
    with pytest.raises(InputError, match="in columns") as error:
        import_trace((path,), format, tmp_path / "jobs.csv")
    assert "(`-P`) and `--format=JobID,User," in error.value.hint
