"""Traces in the formats that others publish, on a few rows of each."""

import json
from pathlib import Path

import pytest

from tenfold.files.traces.detect import detect, read_trace
from tenfold.files.traces.public.acme import read_acme
from tenfold.files.traces.public.alibaba_2020 import read_alibaba_2020
from tenfold.files.traces.public.alibaba_2023 import read_openb_pods
from tenfold.files.traces.public.helios import read_helios
from tenfold.files.traces.public.philly import read_philly
from tenfold.files.traces.sacct import read_sacct
from tenfold.model.errors import InputError, InvalidFile

HELIOS = (
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue"
)
ACME = (
    "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,"
    "submit_time,start_time,end_time,fail_time,stop_time,duration,queue,gpu_time"
)
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time"
)
SACCT = (
    "JobID|JobName|User|Account|Partition|QOS|State|Submit|Start|End|Elapsed|TimelimitRaw|"
    "ReqTRES|AllocTRES|NNodes|Priority"
)


def write(folder: Path, name: str, *lines: str) -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def attempt(start: str | None, end: str | None, *gpus: int) -> dict[str, object]:
    places = [{"ip": f"m{at}", "gpus": [f"gpu{n}" for n in range(n)]} for at, n in enumerate(gpus)]
    return {"start_time": start, "end_time": end, "detail": places}


def entry(job: str, submitted: str, *attempts: dict[str, object]) -> dict[str, object]:
    return {
        "status": "Killed",
        "vc": "v1",
        "jobid": job,
        "attempts": list(attempts),
        "submitted_time": submitted,
        "user": "u1",
    }


def test_philly_adds_up_the_attempts_of_a_job(tmp_path: Path):
    day = "2017-10-07"
    log = [
        entry(
            "two",
            f"{day} 01:00:10",
            attempt(f"{day} 01:01:00", f"{day} 01:02:00", 8),
            attempt(f"{day} 01:03:00 PDT", f"{day} 01:05:00 PDT", 8, 8),
        ),
        entry("one", f"{day} 01:00:00", attempt(f"{day} 02:00:00", f"{day} 02:00:30", 2)),
        entry("never", f"{day} 01:00:00"),
        entry("still", f"{day} 01:00:00", attempt(f"{day} 02:00:00", None, 2)),
    ]
    trace = read_philly(write(tmp_path, "cluster_job_log", json.dumps(log)))
    assert [(job.id, job.submitted_ms, job.duration_ms) for job in trace.jobs] == [
        ("one", 0, 30_000),
        ("two", 10_000, 180_000),
    ]
    assert [job.shape.gpus for job in trace.jobs] == [2, 16]
    assert (trace.jobs[1].team, trace.jobs[1].user) == ("v1", "u1")
    assert trace.statuses["two"] == "cancelled"
    assert trace.notes == [
        "1 job is skipped: no attempt with GPUs is recorded",
        "1 job is skipped: the end of the last attempt is not recorded",
        "time 0 is 2017-10-07 01:00:00",
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"a": 1}', "not-a-job-log"),
        ("[{", "not-json"),
        (json.dumps([entry("a", "yesterday", attempt("x", "y", 1))]), "wrong-value"),
        ("[]", "no-jobs"),
    ],
)
def test_a_philly_log_that_is_none_is_refused(tmp_path: Path, text: str, code: str):
    with pytest.raises(InputError) as caught:
        read_philly(write(tmp_path, "cluster_job_log", text))
    assert caught.value.code == code


def test_helios_jobs_have_virtual_clusters_for_teams(tmp_path: Path):
    first, second = "2020-06-09 18:41:01", "2020-06-09 18:41:31"
    path = write(
        tmp_path,
        "cluster_log.csv",
        HELIOS,
        f"1,ua,vca,16,64,2,COMPLETED,{first},{first},{second},30,0",
        f"2,ub,vcb,0,4,1,TIMEOUT,{second},{second},2020-06-09 18:42:31,60,0",
        f"3,ub,vcb,4,4,1,CANCELLED,{second},None,{second},,0",
    )
    trace = read_helios(path)
    gang, cpu = trace.jobs
    assert (gang.team, gang.shape.gpus, gang.shape.gpus_per_node) == ("vca", 16, 8)
    assert (gang.duration_ms, cpu.submitted_ms) == (30_000, 30_000)
    assert (cpu.shape.gpus, cpu.shape.cpus_milli) == (0, 4_000)
    assert trace.statuses == {"1": "completed", "2": "timeout"}
    assert trace.notes[0] == "1 job is skipped: no submission, run or request is recorded"


def test_acme_counts_from_start_to_end_and_memory_by_pod(tmp_path: Path):
    at = "2023-05-17 11:0{}:58+00:00"
    path = write(
        tmp_path,
        "trace_kalos.csv",
        ACME,
        f"k1,u1,8,64,960,1000,100.0,Pretrain,NODE_FAIL,{at.format(0)},{at.format(2)},"
        f"{at.format(5)},,,300,120.0,1.0",
    )
    [job] = read_acme(path).jobs
    assert (job.duration_ms, job.qos) == (180_000, "Pretrain")
    assert (job.shape.gpus_per_node, job.shape.memory_mib) == (8, 8_000 * 1_024)


def test_acme_without_memory_is_read_too(tmp_path: Path):
    header = ACME.replace("mem_per_pod_GB,shared_mem_per_pod,", "").replace(
        "fail_time,stop_time,", ""
    )
    start, end = "2023-03-01 00:18:22+08:00", "2023-03-01 00:20:22+08:00"
    path = write(
        tmp_path,
        "trace_seren.csv",
        header,
        f"5,u,1,8,128,Other,FAILED,{start},{start},{end},120,0,9",
    )
    trace = read_acme(path)
    assert trace.jobs[0].duration_ms == 120_000
    assert trace.notes == ["time 0 is 2023-02-28 16:18:22"]


def test_bad_cells_of_a_public_trace_are_named_with_their_lines(tmp_path: Path):
    when = "2020-06-09 18:41:01"
    rows = [f"{at},u,v,{gpus},1,1,FAILED,{when},{when},{when},0,0" for at, gpus in enumerate("1x2")]
    path = write(tmp_path, "log.csv", HELIOS, *rows, "9,u,v,1,1,1,FAILED,noon,,,5,0")
    with pytest.raises(InvalidFile) as caught:
        read_helios(path)
    found = [(one.line, one.code, one.field) for one in caught.value.findings]
    assert found == [(3, "not-a-number", "gpu_num"), (5, "wrong-value", "submit_time")]


def test_pai_tasks_add_up_to_jobs(tmp_path: Path):
    tasks = write(
        tmp_path,
        "pai_task_table.csv",
        "j1,ps,1.0,Terminated,110.0,200.0,600.0,10.0,,",
        "j1,worker,2.0,Terminated,120.0,260.0,400.0,5.0,50.0,T4",
        "j2,tf,1.0,Failed,130.0,140.0,100.0,1.0,25.0,MISC",
        "j3,tf,1.0,Running,130.0,,100.0,1.0,100.0,V100",
    )
    jobs = write(
        tmp_path, "pai_job_table.csv", "j1,i1,u1,Terminated,100.0,260.0", "j9,i9,u9,Failed,1.0,2.0"
    )
    trace = read_alibaba_2020(tasks, jobs)
    first, second = trace.jobs
    assert (first.id, first.user, first.submitted_ms, first.duration_ms) == ("j1", "u1", 0, 150_000)
    assert (first.shape.gpus, first.shape.cpus_milli, first.shape.accelerators) == (
        1,
        14_000,
        ("T4",),
    )
    assert (second.shape.milli, second.submitted_ms) == (250, 30_000)
    assert trace.statuses == {"j1": "completed", "j2": "failed"}
    assert read_trace([jobs, tasks]).jobs == trace.jobs
    assert "the start of its first task" in read_trace(tasks).notes[-1]


def test_openb_pods_may_share_a_gpu(tmp_path: Path):
    path = write(
        tmp_path,
        "openb_pod_list.csv",
        PODS,
        "p2,4000,15258,1,220,,BE,Running,100,400,150",
        "p1,88000,327680,8,1000,V100M16|V100M32,LS,Succeeded,40,90,40",
        "p3,1000,1024,0,0,,LS,Pending,200,260,",
    )
    trace = read_openb_pods(path)
    whole, share, waiting = trace.jobs
    assert (whole.shape.gpus, whole.shape.accelerators) == (8, ("V100M16", "V100M32"))
    assert (share.shape.milli, share.shape.memory_mib, share.duration_ms) == (220, 15_258, 250_000)
    assert (share.submitted_ms, waiting.duration_ms) == (60_000, 60_000)
    assert trace.statuses == {"p1": "completed", "p2": "running", "p3": "pending"}
    assert trace.notes == ["1 pods were never scheduled: assumed to run from creation to deletion"]


def test_sacct_reads_jobs_and_passes_over_their_steps(tmp_path: Path):
    day, mine = "2026-01-02T03", "b|bob|nlp|gpu|normal"
    tres = "billing=8,cpu=8,gres/gpu:h100=16,gres/gpu=16,mem=64G,node=2"
    path = write(
        tmp_path,
        "sacct.txt",
        SACCT,
        f'7_1|say "hi"|ann|vision|gpu|high|COMPLETED|{day}:04:05|{day}:05:00|2026-01-03T03:05:10|'
        f"1-00:00:10|2880|{tres}|{tres}|2|100",
        f"7_1.batch|batch||vision||||{day}:05:00|{day}:05:00|x|x|x|||2|",
        f"8|{mine}|CANCELLED by 1000|{day}:04:00|{day}:04:10|{day}:04:20|00:00:10|UNLIMITED|"
        "cpu=4,mem=512M,node=1||1|5",
        f"9|{mine}|PENDING|{day}:04:00|Unknown|Unknown|00:00:00|60|cpu=4||1|5",
        f"10|{mine}|RUNNING|{day}:06:00|{day}:06:00|Unknown|05:00|Partition_Limit|"
        "cpu=4|cpu=4,gres/gpu=1|1|5",
        f"11|{mine}|CANCELLED|{day}:04:00|None|{day}:05:00|00:00:00|60|cpu=4||1|5",
    )
    trace = read_sacct(path)
    cpu, gang, running = trace.jobs
    assert (gang.id, gang.team, gang.user, gang.qos, gang.priority) == (
        "7_1",
        "vision",
        "ann",
        "high",
        100,
    )
    assert (gang.submitted_ms, gang.duration_ms, gang.limit_ms) == (5_000, 86_410_000, 172_800_000)
    assert (gang.shape.gpus, gang.shape.gpus_per_node, gang.shape.accelerators) == (
        16,
        8,
        ("h100",),
    )
    assert (gang.shape.cpus_milli, gang.shape.memory_mib) == (8_000, 65_536)
    assert (cpu.shape.memory_mib, cpu.limit_ms, cpu.duration_ms) == (512, None, 10_000)
    assert (running.shape.gpus, running.duration_ms) == (1, 300_000)
    assert trace.statuses == {"7_1": "completed", "8": "cancelled", "10": "running"}
    assert trace.notes[:2] == [
        "2 jobs are skipped: they never started",
        "1 jobs are still running; they count with their run time so far",
    ]


def test_a_job_that_was_put_back_in_the_queue_stands_twice(tmp_path: Path):
    day = "2026-01-02T03"
    row = f"5|b|bob|nlp|gpu|n|NODE_FAIL|{day}:04:0{{}}|{day}:05:00||00:01:00|60|cpu=4||1|5"
    trace = read_sacct(write(tmp_path, "s.txt", SACCT, row.format(1), row.format(2)))
    assert [job.id for job in trace.jobs] == ["5", "5#2"]
    assert "1 rows repeat a job" in trace.notes[-1]


def test_a_format_is_told_by_its_first_line(tmp_path: Path):
    first_lines = {
        "jobs": "job_id,submit_s,duration_s,gpus",
        "helios": HELIOS,
        "acme": ACME,
        "alibaba-2023": PODS,
        "sacct": SACCT,
        "philly": "[{",
        "alibaba-2020": "j1,tf,1.0,Failed,130.0,140.0,100.0,1.0,25.0,MISC",
    }
    for name, line in first_lines.items():
        assert detect([write(tmp_path, f"{name}.csv", line, "")]) == name
    assert detect([tmp_path / "any.parquet"]) == "jobs"


def test_what_is_no_trace_is_refused_with_a_way_on(tmp_path: Path):
    path = write(tmp_path, "x.csv", "a,b,c", "1,2,3")
    with pytest.raises(InputError) as unknown:
        read_trace(path)
    assert unknown.value.code == "unknown-trace"
    assert "`a,b,c`" in unknown.value.message
    assert "gpus_per_node" in unknown.value.hint
    for files, named, code in (
        ([], "auto", "no-file"),
        ([path], "pbs", "unknown-format"),
        ([path, path], "sacct", "one-file"),
    ):
        with pytest.raises(InputError) as caught:
            read_trace(files, named)
        assert caught.value.code == code
