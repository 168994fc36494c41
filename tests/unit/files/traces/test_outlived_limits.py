"""Time limits of recorded jobs: what the record says that happened, happens again."""

from pathlib import Path

from tenfold.files.traces.jobs import read_jobs
from tenfold.files.traces.trace import JobTrace, with_outlived_limits

HEADER = "job_id,submit_s,duration_s,gpus,limit_s,status"


def limits(folder: Path, *rows: str) -> tuple[JobTrace, list[int | None]]:
    path = folder / "jobs.csv"
    path.write_text("\n".join((HEADER, *rows)) + "\n")
    trace = with_outlived_limits(read_jobs(path))
    return trace, [job.limit_ms for job in trace.jobs]


def test_a_job_that_completed_past_its_limit_keeps_its_duration(tmp_path: Path):
    trace, found = limits(tmp_path, "a,0,90,1,60,completed", "b,0,90,1,60,failed")
    assert found == [90_000, 90_000]
    assert trace.notes == [
        "2 jobs ran past the time limit and did not time out; that long is taken as the limit"
    ]


def test_a_job_that_timed_out_or_whose_end_is_not_recorded_keeps_its_limit(tmp_path: Path):
    trace, found = limits(tmp_path, "a,0,62,1,60,TIMEOUT", "b,0,90,1,60,", "c,0,30,1,60,completed")
    assert found == [60_000, 60_000, 60_000]
    assert trace.notes == []
