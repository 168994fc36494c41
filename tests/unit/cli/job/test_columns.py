"""The columns of `job list`: node lists as Slurm writes them, durations, and `--format`."""

from pathlib import Path
from typing import get_type_hints

import pytest
from msgspec import UNSET

from tenfold.cli.job.columns import (
    COLUMNS,
    columns_of,
    default_columns,
    node_list,
    short_duration,
    short_nodes,
)
from tenfold.cli.job.command import list_command
from tenfold.cli.job.listing import collapsed
from tenfold.model.api.jobs import Attempt, Job, Reason
from tenfold.model.errors import InputError
from tenfold.model.job.job import JobState

AT = "2026-11-16T12:00:00.000Z"


def job(state: JobState = "running", nodes: tuple[str, ...] = (), **fields: object) -> Job:
    attempt = Attempt(
        number=1,
        started_at="2026-11-16T11:00:00.000Z",
        ended_at=None,
        nodes=nodes,
        exit_code=None,
        reason="",
    )
    made = {
        "id": "a-1",
        "name": "a",
        "team": "red",
        "state": state,
        "attempts": (attempt,) if nodes else (),
        "reason": Reason(code=state, sentence=state),
        "gpus": 64.0,
        "submitted_at": "2026-11-16T09:55:00.000Z",
        "elapsed_s": 3_600.0,
    }
    return Job(**{**made, **fields})  # pyright: ignore[reportArgumentType]


def cells(one: Job, *names: str) -> list[str]:
    return [COLUMNS[name].text(one, AT) for name in names]


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (("hx-b09", "hx-b10", "hx-b11"), "hx-b[09-11]"),
        (("n10", "n9", "n2"), "n[2,9-10]"),
        (("a1", "b1"), "a1,b1"),
        (("login",), "login"),
        ((), ""),
    ],
)
def test_nodes_are_compressed_as_slurm_writes_them(names: tuple[str, ...], text: str):
    assert node_list(names) == text


def test_a_node_list_that_is_too_long_for_a_table_is_counted():
    odd = [f"node-{number:04d}" for number in range(1, 200, 2)]
    assert short_nodes(odd) == "node-0001 and 99 more"
    assert short_nodes(odd[:2]) == "node-[0001,0003]"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0s"), (59.9, "59s"), (61, "1m01s"), (600, "10m"), (7_500, "2h05m"), (273_600, "3d04h")],
)
def test_durations_have_no_spaces(seconds: float, text: str):
    assert short_duration(seconds) == text


def test_a_running_job_shows_its_gpus_age_elapsed_time_and_nodes():
    shown = cells(job(nodes=("n1", "n2")), "gpus", "age", "elapsed", "nodes", "node_count")
    assert shown == ["64", "2h05m", "1h00m", "n[1-2]", "2"]


def test_a_pending_job_shows_neither_the_nodes_nor_the_time_of_an_earlier_attempt():
    assert cells(job("pending", ("n1",)), "nodes", "elapsed", "started") == ["", "", ""]


def test_a_control_plane_of_an_earlier_version_leaves_columns_empty():
    old = job(gpus=UNSET, submitted_at=UNSET, elapsed_s=UNSET, user=UNSET)
    assert cells(old, "gpus", "age", "elapsed", "user", "submitted") == [""] * 5


def test_every_column_can_be_named_and_an_unknown_one_is_refused_with_the_list():
    assert columns_of(" job, GPUS ,nodes") == [COLUMNS[name] for name in ("job", "gpus", "nodes")]
    for text in ("job,colour", "", ","):
        with pytest.raises(InputError) as refused:
            columns_of(text)
        assert "node_count" in refused.value.hint


def test_attempts_and_forecasts_are_columns_only_where_there_are_any():
    headings = [column.heading for column in default_columns([job()])]
    assert headings == ["job", "team", "state", ">GPUs", ">age", ">elapsed", "nodes", "reason"]
    again = default_columns([job(attempts_total=3)])
    assert ">attempts" in [column.heading for column in again]


def test_a_job_that_two_pages_have_is_one_line():
    found = collapsed([job("pending"), job("running"), job(id="b-2[0]"), job(id="b-2[1]")])
    assert [one.id for one in found] == ["a-1", "b-2[0-1]"]
    assert found[0].state == "running"


def test_the_help_of_job_list_and_the_guide_name_every_column():
    option = get_type_hints(list_command, include_extras=True)["columns"].__metadata__[0]
    assert option.help == f"Columns, separated by commas: {', '.join(COLUMNS)}"
    guide = Path("docs/how-to/follow-your-jobs.md").read_text()
    assert [name for name in COLUMNS if f"`{name}`" not in guide] == []
