"""Accounting as recorded jobs: arrays, cancelled jobs, running jobs, amounts."""

from pathlib import Path

import pytest

from tenfold.files.slurm.accounting import FIELDS, read_accounting, read_accounting_text
from tenfold.files.slurm.amounts import gpus_of_request, read_amounts
from tenfold.model.errors import InputError
from tenfold.model.job.recorded import RecordedJob

ROW = {
    "JobID": "12_3",
    "JobIDRaw": "15",
    "JobName": "train",
    "User": "ann",
    "Account": "vision",
    "Partition": "normal",
    "State": "COMPLETED",
    "Submit": "1000",
    "Eligible": "1010",
    "Start": "1100",
    "End": "1400",
    "TimelimitRaw": "10",
    "ReqTRES": "billing=2,cpu=2,gres/gpu=16,mem=500G,node=2",
    "AllocTRES": "billing=2,cpu=2,gres/gpu=16,node=2",
    "NNodes": "2",
    "NodeList": "n[1-2]",
    "Priority": "125",
    "ExitCode": "3:0",
    "TotalCPU": "01:00.500",
    "QOS": "normal",
}


def listing(*changes: dict[str, str]) -> str:
    """Return a listing with a row for each set of changes."""
    rows = ["|".join({**ROW, **one}[name] for name in FIELDS) for one in changes]
    return "\n".join(["|".join(FIELDS), *rows, ""])


def one(**changes: str) -> RecordedJob:
    """Return the job of a listing with one row."""
    return read_accounting_text(listing(changes), "sacct")[0]


def test_a_member_of_an_array_is_read_with_all_that_it_held() -> None:
    job = one()
    assert (job.id, job.number, job.user, job.account) == ("12_3", 15, "ann", "vision")
    assert (job.submitted_s, job.eligible_s, job.started_s, job.ended_s) == (1000, 1010, 1100, 1400)
    assert job.node_names == ("n1", "n2")
    assert (job.gpus, job.nodes, job.gpus_per_node_asked) == (16, 2, 8)
    assert (job.limit_s, job.exit_code, job.cpu_s) == (600, 3, 60.5)
    assert job.memory_gib == 0, "Slurm did not allocate memory"


def test_a_job_that_was_cancelled_while_it_waited_never_started() -> None:
    job = one(State="CANCELLED by 1000", NodeList="None assigned", AllocTRES="", Start="1200")
    assert job.state == "cancelled"
    assert job.started_s is None
    assert job.gpus == 16, "what it asked for"


def test_a_running_job_has_no_end() -> None:
    assert one(State="RUNNING", End="Unknown").ended_s is None


def test_steps_are_no_jobs() -> None:
    assert read_accounting_text(listing({"JobID": "12.batch"}), "sacct") == []


def test_a_wrong_amount_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    path.write_text(listing({}, {"ReqTRES": "cpu=many"}))
    with pytest.raises(InputError) as refused:
        read_accounting(path)
    assert refused.value.line == 3


@pytest.mark.parametrize(
    ("text", "gpus", "types"),
    [
        ("cpu=1,gres/gpu=2", 2, ()),
        ("gres/gpu=4,gres/gpu:h100=4", 4, ("h100",)),
        ("gres/gpu:a100=1,gres/gpu:h100=2", 3, ("a100", "h100")),
        ("", 0, ()),
    ],
)
def test_gpus_are_counted_once(text: str, gpus: float, types: tuple[str, ...]) -> None:
    found = read_amounts(text)
    assert (found.gpus, found.gpu_types) == (gpus, types)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("gres:gpu:h100:2", (2, ("h100",))),
        ("gres/gpu:4", (4, ())),
        ("gpu:h100:8(IDX:0-7)", (0, ())),
        ("gres:gpu", (1, ())),
        ("", (0, ())),
    ],
)
def test_a_request_per_node_has_a_count_and_types(
    text: str, found: tuple[int, tuple[str, ...]]
) -> None:
    assert gpus_of_request(text) == found


@pytest.mark.parametrize(
    "name",
    [
        "a|b",
        "|",
        "ends in a bar|",
        "two\nlines",
        "two\n\nempty\n",
        "a|b\nc|d|e",
        "of a\x0bprinter\u2028page",
        'a quote " and a comma,',
    ],
)
def test_a_name_with_bars_and_line_breaks_is_one_cell(name: str, tmp_path: Path) -> None:
    text = listing({"JobName": name, "QOS": ""}, {"JobID": "13", "JobName": "next"})
    path = tmp_path / "sacct.txt"
    path.write_text(text)
    for jobs in (read_accounting_text(text, "sacct"), read_accounting(path)):
        assert [(job.id, job.name) for job in jobs] == [("12_3", name.strip()), ("13", "next")]
        assert (jobs[0].user, jobs[0].gpus, jobs[0].ended_s) == ("ann", 16, 1400)


def test_the_free_text_that_holds_the_bars_is_found_among_several(tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    path.write_text(
        "JobID|JobName|State|Submit|Start|End|Comment|NodeList\n"
        "7|train|COMPLETED|10|20|30|see a|b|c|n1\n"
        "8|x|y|FAILED|10|20|30|none|n2\n"
    )
    first, second = read_accounting(path)
    assert (first.name, first.state, first.node_names) == ("train", "completed", ("n1",))
    assert (second.name, second.state, second.node_names) == ("x|y", "failed", ("n2",))


def test_a_row_that_was_cut_off_does_not_take_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    path.write_text("JobID|Submit|State|Start|End\n7|10|COMPLETED\n8|10|COMPLETED|20|30\n")
    assert [(job.id, job.ended_s) for job in read_accounting(path)] == [("7", None), ("8", 30)]
