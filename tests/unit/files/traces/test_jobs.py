"""The documented job table, as CSV and as Parquet."""

import gzip
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tenfold.files.prices import tables as price_tables
from tenfold.files.traces.columns import COLUMNS
from tenfold.files.traces.jobs import read_jobs
from tenfold.files.traces.write import write_jobs
from tenfold.model.errors import InputError, InvalidFile

HEADER = ",".join(COLUMNS)
SHARED = Path(__file__).parents[5] / "shared" / "data" / "jobs"


def table(folder: Path, *rows: str, header: str = HEADER, name: str = "jobs.csv") -> Path:
    path = folder / name
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def faults_of(path: Path, **options: bool) -> list[tuple[int | None, str, str]]:
    with pytest.raises(InvalidFile) as caught:
        read_jobs(path, **options)
    return [(one.line, one.code, one.message) for one in caught.value.findings]


def test_a_row_becomes_a_job_in_milliseconds(tmp_path: Path):
    row = "a,vision,ann,1.5,60.0004,16,8,A100|H100,Pass,high,128,512.5,3600"
    trace = read_jobs(table(tmp_path, row))
    [job] = trace.jobs
    assert (job.id, job.team, job.user, job.qos) == ("a", "vision", "ann", "high")
    assert (job.submitted_ms, job.duration_ms, job.limit_ms) == (1_500, 60_000, 3_600_000)
    assert (job.shape.gpus, job.shape.gpus_per_node) == (16, 8)
    assert job.shape.accelerators == ("A100", "H100")
    assert (job.shape.cpus_milli, job.shape.memory_mib) == (128_000, 524_800)
    assert trace.statuses == {"a": "completed"}
    assert trace.notes == []


def test_what_is_empty_or_absent_is_not_known(tmp_path: Path):
    path = table(tmp_path, "a,,,0,5,1,,nan,,,,None,", "b,NULL,,1,5,1,,,,,,,")
    first, second = read_jobs(path, default_team="all").jobs
    assert first.shape is second.shape
    assert (first.team, first.limit_ms, first.shape.accelerators) == ("all", None, ())
    bare = table(tmp_path, "0,5,1", "3,5,0.25", header="submit_s,duration_s,gpus", name="b.csv")
    jobs = read_jobs(bare).jobs
    assert [job.id for job in jobs] == ["job-1", "job-2"]
    assert (jobs[1].shape.gpus, jobs[1].shape.milli) == (0, 250)


def test_jobs_come_by_time_of_submission_and_keep_their_order_within_it(tmp_path: Path):
    rows = ["a,9,1,1", "b,3,1,1", "c,9,1,1", "d,3,1,1"]
    jobs = read_jobs(table(tmp_path, *rows, header="job_id,submit_s,duration_s,gpus")).jobs
    assert [(job.id, job.seq) for job in jobs] == [("b", 0), ("d", 1), ("a", 2), ("c", 3)]


def test_jobs_that_ask_alike_share_one_shape(tmp_path: Path):
    rows = [f"j{at},,,{at},5,{at % 3 + 1},,V100,,,{at % 2},," for at in range(60)]
    jobs = read_jobs(table(tmp_path, *rows)).jobs
    assert len({id(job.shape) for job in jobs}) == 6
    assert len({job.shape.key for job in jobs}) == 6


def test_a_column_that_is_not_understood_is_noted(tmp_path: Path):
    path = table(tmp_path, "0,5,1,x,7", header="submit_s,duration_s,gpus,model,node")
    note = "the columns `model`, `node` are unknown and ignored"
    assert read_jobs(path).notes == [note]


def test_every_row_that_cannot_be_is_named_with_its_line(tmp_path: Path):
    rows = [
        "a,,,0,5,1,,,,,,,",
        "a,,,0,5,1,,,,,,,",
        "b,,,0,-5,1,,,,,,,",
        "c,,,0,5,1.5,,,,,,,",
        "d,,,soon,5,1,,,,,,,",
        "e,,,0,5,,,,,,,,",
        "f,,,0,,1,,,,,,,",
        "",
        "g,,,-1,5,12,8,,,,,,",
        "h,,,0,5,-2,,,,,inf,-1,",
        "i,,,0,5,4,8,,,,,,",
    ]
    found = faults_of(table(tmp_path, *rows))
    assert [(line, code) for line, code, _ in found] == [
        (3, "duplicate-name"),
        (4, "wrong-value"),
        (5, "wrong-value"),
        (6, "not-a-number"),
        (7, "wrong-value"),
        (8, "wrong-value"),
        (10, "wrong-value"),
        (11, "wrong-value"),
    ]
    assert found[0][2] == "duplicate job `a`, also on line 2"
    assert found[2][2] == "`gpus` is 1.5: use a fraction below 1 or a whole number"
    assert "`gpus` is 12, not a multiple of `gpus_per_node` (8); `submit_s` must" in found[6][2]


def test_at_most_twenty_bad_rows_are_shown_and_the_rest_counted(tmp_path: Path):
    path = table(tmp_path, *[f"j{at},,,0,-1,1,,,,,,," for at in range(57)])
    found = faults_of(path)
    assert len(found) == 21
    assert found[-1] == (None, "more-bad-rows", "37 more bad rows, 57 in total")


def test_parquet_names_rows_where_csv_names_lines(tmp_path: Path):
    path = tmp_path / "jobs.parquet"
    columns = {"submit_s": [0.0, 1.0], "duration_s": [5.0, None], "gpus": [1, 3.5]}
    pq.write_table(pa.table(columns), path)
    [(line, code, message)] = faults_of(path)
    assert (line, code) == (None, "wrong-value")
    assert message.startswith("row 2: `gpus` is 3.5")
    assert message.endswith("`duration_s` is empty")


def test_parquet_is_read_whatever_the_types_of_its_columns(tmp_path: Path):
    path = tmp_path / "jobs.parquet"
    columns = {
        "job_id": pa.array([7, 8, None]),
        "team": pa.array(["a", None, "b"]).dictionary_encode(),
        "submit_s": pa.array([3, 0, 1], pa.int32()),
        "duration_s": pa.array(["5", "6.5", "7"]),
        "gpus": pa.array([1.0, 0.5, 8.0]),
        "gpus_per_node": pa.array([None, None, 4], pa.int8()),
        "priority": pa.array([1, 2, None]),
    }
    pq.write_table(pa.table(columns), path)
    jobs = read_jobs(path).jobs
    assert [(job.id, job.team, job.duration_ms) for job in jobs] == [
        ("8", "", 6_500),
        ("job-3", "b", 7_000),
        ("7", "a", 5_000),
    ]
    assert [job.priority for job in jobs] == [2, 0, 1]
    assert [job.shape.gpus_per_node for job in jobs] == [None, 4, None]


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("jobs.txt", "submit_s", "unknown-suffix"),
        ("jobs.csv", "", "no-jobs"),
        ("jobs.csv", "submit_s,duration_s,gpus\n", "no-jobs"),
        ("jobs.csv", "submit_s,duration_s\n1,2\n", "missing-column"),
        ("jobs.csv", "submit_s,gpus\n1,2\n", "missing-column"),
        ("jobs.csv", "duration_s,gpus\n1,2\n", "missing-column"),
        ("jobs.csv", "gpus,gpus\n1,2\n", "csv-header"),
        ("jobs.csv", "submit_s,duration_s,gpus\n1,2,3,4\n", "too-many-cells"),
        ("jobs.csv", 'submit_s,duration_s,gpus\n1,"2,3\n', "syntax"),
        ("jobs.parquet", "PAR1 not really PAR1", "unreadable-table"),
        ("jobs.csv.gz", "not packed", "unreadable-table"),
    ],
)
def test_a_file_that_is_no_job_table_is_refused(tmp_path: Path, name: str, text: str, code: str):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_jobs(path)
    assert caught.value.code == code
    assert caught.value.hint
    assert str(path) in caught.value.file


def test_text_that_is_not_unicode_is_refused_with_its_line(tmp_path: Path):
    path = tmp_path / "jobs.csv"
    path.write_bytes(b"submit_s,duration_s,gpus,team\n1,2,3,\xff\n")
    with pytest.raises(InputError) as caught:
        read_jobs(path)
    assert caught.value.code == "not-utf-8"


def test_filling_takes_pods_in_file_order_without_times(tmp_path: Path):
    rows = ["p1,1,460,,4,8", "p2,8,1000,A|B,64,128", "p1,1,460,,4,8", "p3,0,0,,2,4"]
    header = "pod,num_gpu,gpu_milli,gpu_spec,cpus,mem_gib"
    trace = read_jobs(table(tmp_path, *rows, header=header), fill=True)
    assert [job.id for job in trace.jobs] == ["p1", "p2", "p1#2", "p3"]
    assert [job.submitted_ms for job in trace.jobs] == [0, 1, 2, 3]
    assert [(job.shape.gpus, job.shape.milli) for job in trace.jobs] == [
        (0, 460),
        (8, 0),
        (0, 460),
        (0, 0),
    ]
    assert trace.jobs[1].shape.accelerators == ("A", "B")
    assert trace.jobs[0].shape is trace.jobs[2].shape
    assert trace.jobs[0].duration_ms is None
    assert "1 rows repeat" in trace.notes[0]


def test_a_name_that_is_made_up_never_hides_one_that_was_given(tmp_path: Path):
    header = "job_id,submit_s,duration_s,gpus"
    path = table(tmp_path, "job-2,0,1,1", ",0,1,1", header=header)
    assert faults_of(path) == [(3, "duplicate-name", "duplicate job `job-2`, also on line 2")]
    pods = table(tmp_path, "p,1", "p,1", "p#2,1", "p,1", header="pod,num_gpu", name="pods.csv")
    assert [job.id for job in read_jobs(pods, fill=True).jobs] == ["p", "p#3", "p#2", "p#4"]


def test_filling_still_refuses_what_cannot_be(tmp_path: Path):
    path = table(tmp_path, "a,2.5", "b,", header="job_id,gpus")
    assert [line for line, _, _ in faults_of(path, fill=True)] == [2, 3]


def test_one_name_in_two_traces_gets_a_hint(tmp_path: Path):
    header = "trace,job_id,submit_s,duration_s,gpus"
    path = table(tmp_path, "one,0,0,1,1", "two,0,0,1,1", header=header)
    with pytest.raises(InvalidFile) as caught:
        read_jobs(path)
    assert "see the column `trace`" in caught.value.hint


@pytest.mark.parametrize("name", ["again.csv", "again.csv.gz", "again.parquet"])
def test_a_trace_is_the_same_after_writing_and_reading(tmp_path: Path, name: str):
    header = f"{HEADER},priority,deadline_s,profile"
    rows = [
        "a,vision,ann,0,60,16,8,A100|H100,failed,high,128,512.5,3600,7,90.5,llm",
        "b,,,0.001,1e6,0.333,,,,,0.5,0.25,,,,",
    ]
    before = read_jobs(table(tmp_path, *rows, header=header))
    write_jobs(tmp_path / name, before)
    assert read_jobs(tmp_path / name) == before
    if name.endswith(".gz"):
        assert gzip.decompress((tmp_path / name).read_bytes()).startswith(b"job_id,")


def test_a_file_is_not_written_over_unasked(tmp_path: Path):
    trace = read_jobs(table(tmp_path, "a,,,0,5,1,,,,,,,"))
    for name, code in (("jobs.csv", "file-exists"), ("jobs.json", "unknown-suffix")):
        with pytest.raises(InputError) as caught:
            write_jobs(tmp_path / name, trace)
        assert caught.value.code == code
    write_jobs(tmp_path / "jobs.csv", trace, force=True)
    assert read_jobs(tmp_path / "jobs.csv") == trace


def test_the_published_philly_subset_reads_whole():
    path = SHARED / "philly_2017.parquet"
    if not path.is_file():
        pytest.skip("the public Philly subset is not on this machine")
    jobs = read_jobs(path).jobs
    assert len(jobs) >= 10_000
    assert len({id(job.shape) for job in jobs}) == len({job.shape.key for job in jobs})
    assert sum(job.shape.gpus for job in jobs) / len(jobs) == pytest.approx(1.30, abs=0.2)


def test_parquet_without_arrow_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    trace = read_jobs(table(tmp_path, "a,,,0,5,1,,,,,,,"))
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    path = tmp_path / "jobs.parquet"
    path.write_bytes(b"PAR1")
    columns = ("cloud",)
    for ask in (
        lambda: read_jobs(path),
        lambda: write_jobs(path, trace),
        lambda: price_tables.read_table(path, columns, ()),
    ):
        with pytest.raises(InputError) as caught:
            ask()
        assert caught.value.code == "parquet-not-installed"
        assert "pip install 'tenfold[parquet]'" in caught.value.hint
