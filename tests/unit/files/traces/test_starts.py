"""When jobs really started: every format that tells it keeps it."""

import json
from pathlib import Path

import pytest

from tenfold.files.traces.jobs import read_jobs
from tenfold.files.traces.public.alibaba_2020 import read_alibaba_2020
from tenfold.files.traces.public.alibaba_2023 import read_openb_pods
from tenfold.files.traces.public.helios import read_helios
from tenfold.files.traces.public.philly import read_philly
from tenfold.files.traces.sacct import read_sacct
from tenfold.files.traces.write import write_jobs
from tenfold.model.errors import InvalidFile

HEADER = "job_id,submit_s,duration_s,gpus,start_s"


def write(folder: Path, name: str, *lines: str) -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_job_table_says_when_jobs_started_and_which_did_not(tmp_path: Path):
    trace = read_jobs(write(tmp_path, "t.csv", HEADER, "a,0,60,1,2.5", "b,5,60,1,"))
    assert trace.starts_ms == {"a": 2_500}
    assert trace.notes == []


def test_a_start_before_the_submission_is_not_known(tmp_path: Path):
    trace = read_jobs(write(tmp_path, "t.csv", HEADER, "a,9,60,1,2", "b,5,60,1,5"))
    assert trace.starts_ms == {"b": 5_000}
    assert trace.notes == ["1 job starts before submission; these start times are ignored"]


def test_a_start_that_is_no_time_is_refused_with_its_line(tmp_path: Path):
    with pytest.raises(InvalidFile) as caught:
        read_jobs(write(tmp_path, "t.csv", HEADER, "a,0,60,1,soon", "b,0,60,1,-3"))
    found = [(one.line, one.code) for one in caught.value.findings]
    assert found == [(2, "not-a-number"), (3, "wrong-value")]


def test_a_table_that_only_fills_looks_at_no_time(tmp_path: Path):
    trace = read_jobs(write(tmp_path, "t.csv", HEADER, "a,0,60,1,7"), fill=True)
    assert trace.starts_ms == {}


def test_a_table_without_starts_is_written_without_the_column(tmp_path: Path):
    plain = read_jobs(write(tmp_path, "t.csv", "job_id,submit_s,duration_s,gpus", "a,0,60,1"))
    write_jobs(tmp_path / "again.csv", plain)
    assert "start_s" not in (tmp_path / "again.csv").read_text()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_starts_are_written_and_read_again_zero_among_them(tmp_path: Path, suffix: str):
    trace = read_jobs(write(tmp_path, "t.csv", HEADER, "a,0,60,1,0", "b,0,60,1,"))
    write_jobs(tmp_path / f"again.{suffix}", trace)
    assert read_jobs(tmp_path / f"again.{suffix}").starts_ms == {"a": 0}


def test_the_members_of_an_array_start_as_their_row_says_and_fold_again(tmp_path: Path):
    trace = read_jobs(write(tmp_path, "t.csv", f"{HEADER},array", "s,0,60,1,4,2", "b,1,60,1,,"))
    assert trace.starts_ms == {"s[0]": 4_000, "s[1]": 4_000}
    write_jobs(tmp_path / "again.csv", trace)
    again = read_jobs(tmp_path / "again.csv")
    assert (again.jobs, again.starts_ms) == (trace.jobs, trace.starts_ms)


def test_members_that_started_apart_are_not_folded(tmp_path: Path):
    trace = read_jobs(write(tmp_path, "t.csv", f"{HEADER},array", "s,0,60,1,4,2"))
    apart = trace._replace(starts_ms={**trace.starts_ms, trace.jobs[1].id: trace.jobs[1].seq})
    write_jobs(tmp_path / "again.csv", apart)
    assert len((tmp_path / "again.csv").read_text().splitlines()) == 3


def test_slurm_tells_when_a_job_started_after_its_submission(tmp_path: Path):
    header = "JobID|State|Submit|Start|End|ReqTRES"
    day = "2026-01-05T"
    rows = (
        f"1|COMPLETED|{day}10:00:00|{day}10:05:00|{day}11:00:00|cpu=1,gres/gpu=1",
        f"2|COMPLETED|{day}10:01:00|{day}10:01:00|{day}11:00:00|cpu=1,gres/gpu=1",
    )
    trace = read_sacct(write(tmp_path, "s.txt", header, *rows))
    assert trace.starts_ms == {"1": 300_000, "2": 60_000}


def test_helios_tells_when_a_job_started(tmp_path: Path):
    header = (
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration"
    )
    row = "7,u,v,1,2,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:01:00,2020-04-01 00:02:00,60"
    assert read_helios(write(tmp_path, "h.csv", header, row)).starts_ms == {"7": 60_000}


def test_the_first_attempt_of_philly_is_the_start(tmp_path: Path):
    day, place = "2017-10-07", [{"ip": "m1", "gpus": ["gpu0"]}]
    attempts = [
        {"start_time": f"{day} 01:00:10", "end_time": f"{day} 01:01:00", "detail": place},
        {"start_time": f"{day} 02:00:00", "end_time": f"{day} 02:01:00", "detail": place},
    ]
    entry = {"jobid": "j", "submitted_time": f"{day} 01:00:00", "attempts": attempts}
    trace = read_philly(write(tmp_path, "cluster_job_log", json.dumps([entry])))
    assert trace.starts_ms == {"j": 10_000}


def test_a_pod_starts_when_it_is_scheduled_and_one_that_never_was_has_no_start(tmp_path: Path):
    header = "name,cpu_milli,memory_mib,num_gpu,creation_time,deletion_time,scheduled_time"
    rows = ("a,1000,1024,1,100,200,130", "b,1000,1024,1,100,200,")
    assert read_openb_pods(write(tmp_path, "p.csv", header, *rows)).starts_ms == {"a": 30_000}


def test_alibaba_2020_knows_starts_with_its_table_of_jobs_alone(tmp_path: Path):
    tasks = write(tmp_path, "t.csv", "j,worker,1,Terminated,150,200,100,1,100,V100")
    jobs = write(tmp_path, "j.csv", "j,i,u,Terminated,100,200")
    assert read_alibaba_2020(tasks).starts_ms == {}
    assert read_alibaba_2020(tasks, jobs).starts_ms == {"j": 50_000}
