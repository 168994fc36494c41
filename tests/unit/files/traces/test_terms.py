"""The columns of a job table that say when a job may run, where, and what may be done to it."""

from pathlib import Path

import pytest

from tenfold.files.traces.jobs import read_jobs
from tenfold.files.traces.trace import JobTrace
from tenfold.files.traces.write import write_jobs
from tenfold.model.errors import InvalidFile
from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.job.terms import Terms

BASE = "job_id,submit_s,duration_s,gpus"


def table(folder: Path, header: str, *rows: str) -> Path:
    path = folder / "jobs.csv"
    path.write_text("\n".join([f"{BASE},{header}", *rows]) + "\n")
    return path


def read(folder: Path, header: str, *rows: str) -> JobTrace:
    return read_jobs(table(folder, header, *rows))


def faults(folder: Path, header: str, *rows: str) -> list[tuple[int | None, str, str]]:
    with pytest.raises(InvalidFile) as caught:
        read_jobs(table(folder, header, *rows))
    assert all(one.hint for one in caught.value.findings)
    return [(one.line, one.code, one.message) for one in caught.value.findings]


def test_a_row_has_the_terms_that_it_states(tmp_path: Path):
    header = "kind,preemptible,checkpoint_every_s,least_gpus,most_gpus,after,off_peak,busy_s"
    rows = ["a,0,60,8,training,no,600,4,16,,Yes,", "b,0,60,1,interactive,,,,,a,,12.5"]
    first, second = read(tmp_path, header, *rows).jobs
    assert first.terms == Terms(
        kind="training",
        preemptible=False,
        checkpoint_every_ms=600_000,
        least_gpus=4,
        most_gpus=16,
        off_peak=True,
    )
    assert second.terms == Terms(kind="interactive", after=("a",), busy_ms=12_500)
    assert (first.shape.where, second.shape.where) == (None, None)


def test_a_row_that_states_nothing_has_no_terms(tmp_path: Path):
    first, second = read(tmp_path, "kind,off_peak", "a,0,60,8,batch,no", "b,0,60,8,,").jobs
    assert (first.terms, second.terms) == (None, None)
    assert first.shape is second.shape


def test_one_bound_of_an_elastic_job_is_enough(tmp_path: Path):
    jobs = read(tmp_path, "least_gpus,most_gpus", "a,0,60,8,2,", "b,0,60,8,,32").jobs
    assert [(job.terms.least_gpus, job.terms.most_gpus) for job in jobs if job.terms] == [
        (2, 8),
        (8, 32),
    ]


def test_a_row_says_where_its_gang_may_stand_and_rows_alike_share_a_shape(tmp_path: Path):
    rows = [f"{name},0,60,16,rack,required,eu; certified,slow" for name in "ab"]
    first, second = read(tmp_path, "within,how,needs,avoids", *rows).jobs
    assert first.shape.where == PlacementConstraints(
        within="rack", how="required", needs=("eu", "certified"), avoids=("slow",)
    )
    assert first.shape.key == "16 required rack +eu +certified -slow"
    assert first.shape is second.shape


def test_an_experiment_keeps_away_from_production(tmp_path: Path):
    first, second = read(
        tmp_path, "kind,avoids", "a,0,60,1,experiment,", "b,0,60,1,experiment,slow"
    ).jobs
    assert first.shape.where == PlacementConstraints(avoids=("production",))
    assert second.shape.where == PlacementConstraints(avoids=("slow", "production"))


def test_an_array_becomes_its_members_and_who_comes_after_it_comes_after_all(tmp_path: Path):
    header = "array,array_most,after,status"
    trace = read(tmp_path, header, "end,9,60,1,,,sweep,", "sweep,5,60,8,3,2,,failed")
    assert [(job.id, job.seq) for job in trace.jobs] == [
        ("sweep[0]", 0),
        ("sweep[1]", 1),
        ("sweep[2]", 2),
        ("end", 3),
    ]
    member, end = trace.jobs[0].terms, trace.jobs[3].terms
    assert member is not None
    assert end is not None
    assert (member.array, member.array_most) == ("sweep", 2)
    assert trace.jobs[0].terms is trace.jobs[2].terms
    assert end.after == ("sweep[0]", "sweep[1]", "sweep[2]")
    assert trace.statuses == dict.fromkeys(["sweep[0]", "sweep[1]", "sweep[2]"], "failed")


def test_terms_that_cannot_be_are_named_with_their_line(tmp_path: Path):
    header = "kind,preemptible,checkpoint_every_s,within,how,busy_s,array_most"
    rows = [
        "a,0,60,8,toy,,,,,,",
        "b,0,60,8,,maybe,,,,,",
        "c,0,60,8,,,0,,,,",
        "d,0,60,8,,,often,,,,",
        "e,0,60,8,,,,room,,,",
        "f,0,60,8,,,,rack,near,,",
        "g,0,60,8,,,,,,-1,",
        "h,0,60,8,,,,,,,1.5",
        "i,0,60,8,training,yes,60,rack,spread,5,1",
    ]
    found = faults(tmp_path, header, *rows)
    assert [(line, code) for line, code, _ in found] == [
        (2, "wrong-value"),
        (3, "wrong-value"),
        (4, "wrong-value"),
        (5, "not-a-number"),
        *((line, "wrong-value") for line in range(6, 10)),
    ]
    assert found[0][2] == "`kind` has the unknown value `toy`"
    assert found[2][2] == "`checkpoint_every_s` must be positive, got 0"


def test_an_elastic_job_asks_for_whole_gpus_within_its_bounds_and_for_nothing_else(tmp_path: Path):
    header = "least_gpus,most_gpus,gpus_per_node,cpus,mem_gib"
    rows = [
        "a,0,60,8,9,,,,",
        "b,0,60,8,,4,,,",
        "c,0,60,8,1.5,,,,",
        "d,0,60,0.5,1,,,,",
        "e,0,60,8,2,,,16,",
        "f,0,60,8,,16,,,32",
        "g,0,60,8,3,,4,,",
        "h,0,60,8,4,12,4,,",
    ]
    found = faults(tmp_path, header, *rows)
    assert [line for line, _, _ in found] == [2, 3, 4, 5, 6, 7, 8]
    assert found[0][2] == "`least_gpus` is 9, more than `gpus` (8)"
    assert found[3][2] == "a job with 0.5 GPUs cannot be elastic"
    assert found[4][2] == "an elastic job cannot request `cpus`"
    assert "which nodes of 4 GPUs cannot provide" in found[6][2]


def test_jobs_come_after_jobs_of_the_table_and_never_in_a_circle(tmp_path: Path):
    rows = [
        "a,0,60,1,c,",
        "b,0,60,1,nobody,",
        "c,0,60,1,d,",
        "d,0,60,1,a;e,",
        "e,0,60,1,,2",
        "f,0,60,1,e[1],",
        "g,0,60,1,e[2],",
        "h,0,60,1,h,",
    ]
    found = faults(tmp_path, "after,array", *rows)
    assert [line for line, _, _ in found] == [2, 3, 4, 5, 8, 9]
    assert found[0][2] == "job `a` can never start: its `after` dependencies form a cycle"
    assert found[1][2] == "`after` names `nobody`, which is not in this table"
    assert "`e[2]`" in found[4][2]


def test_an_array_has_a_number_of_members_with_names_of_their_own(tmp_path: Path):
    rows = ["a,0,60,1,0", "b,0,60,1,2.5", "c,0,60,1,1e9", "d,0,60,1,2", "d[1],0,60,1,"]
    found = faults(tmp_path, "array", *rows)
    assert [(line, code) for line, code, _ in found] == [
        (2, "wrong-value"),
        (3, "wrong-value"),
        (4, "wrong-value"),
        (5, "duplicate-name"),
    ]


@pytest.mark.parametrize("name", ["again.csv", "again.parquet"])
def test_terms_are_the_same_after_writing_and_reading(tmp_path: Path, name: str):
    header = (
        "kind,preemptible,checkpoint_every_s,least_gpus,most_gpus,after,array,array_most,"
        "off_peak,within,how,needs,avoids,busy_s,status"
    )
    rows = [
        "a,0,60,8,training,no,600,4,16,,,,yes,rack,balanced,eu,slow,,failed",
        "b,0,60,8,experiment,,,,,a,3,2,,,,,,,completed",
        "c,1,60,1,interactive,,,,,b,,,,,,,,0,",
        "d,1,60,1,,,,,,,,,,,,,,,",
    ]
    before = read(tmp_path, header, *rows)
    write_jobs(tmp_path / name, before)
    assert read_jobs(tmp_path / name) == before


def test_members_that_differ_are_written_apart(tmp_path: Path):
    trace = read(tmp_path, "array", "a,0,60,8,2")
    odd = JobTrace(trace.jobs, [], {trace.jobs[1].id: "failed"})
    write_jobs(tmp_path / "again.csv", odd)
    again = read_jobs(tmp_path / "again.csv")
    assert [job.id for job in again.jobs] == ["a[0]", "a[1]"]
    assert again.statuses == odd.statuses
