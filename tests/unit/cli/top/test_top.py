"""`tenfold top`: the screen, driven by keys alone."""

import asyncio
import sys
from collections.abc import Callable, Generator
from itertools import count
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Static

from tenfold.cli.job.columns import seconds_between
from tenfold.cli.main import main
from tenfold.cli.top.reader import (
    Reading,
    TopFilter,
    TopReader,
    gauge,
    moved_on,
    parse_filter,
    row_of,
    sort_value,
)
from tenfold.cli.top.screen import TopApp
from tenfold.model.api.fleet import FleetStatus
from tenfold.model.api.jobs import Job, Reason
from tenfold.model.errors import Unreachable
from unit.up_process import Up, commands_find, running

AT = "2026-11-18T12:00:00.000Z"
FLEET = FleetStatus(
    at=AT,
    nodes={"up": 4},
    gpus={"held": 24, "free": 8},
    accelerators={"H100": 32},
    jobs={"running": 3, "pending": 2},
    event=7,
)


def job(number: int, **named: object) -> Job:
    values: dict[str, object] = {
        "id": f"job-{number}",
        "name": "job",
        "team": ("red", "blue")[number % 2],
        "user": f"user-{number % 3}",
        "state": ("running", "pending")[number % 2],
        "attempts": (),
        "reason": Reason(code="started", sentence="started"),
        "gpus": float(number % 8),
        "submitted_at": "2026-11-18T11:00:00.000Z",
    }
    return Job(**(values | named))  # pyright: ignore[reportArgumentType]


def reading(*jobs: Job, alarms: tuple[str, ...] = ()) -> Reading:
    return Reading(fleet=FLEET, jobs=jobs, at=AT, alarms=alarms)


class GivenReader(TopReader):
    """Returns given readings, one after the other; the last one again and again."""

    def __init__(self, *readings: Reading | Unreachable) -> None:
        super().__init__()
        self.readings = list(readings)

    def read(self) -> Reading:
        found = self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]
        if isinstance(found, Unreachable):
            raise found
        return found

    def details(self, job_id: str) -> str:
        return f"details of {job_id}"


def driven(reader: TopReader, drive: "Callable[[TopApp, Pilot[None]], object]") -> None:
    """Run the screen without a terminal; it is read again only on request."""

    async def run() -> None:
        app = TopApp(reader, TopFilter(), 3_600.0)
        async with app.run_test(size=(140, 40)) as pilot:
            await app.workers.wait_for_complete()
            await pilot.pause()
            await drive(app, pilot)  # pyright: ignore[reportGeneralTypeIssues]

    asyncio.run(run())


def column(app: TopApp, place: int) -> list[str]:
    table = app.query_one("#jobs", DataTable)
    return [str(table.get_row_at(row)[place]) for row in range(table.row_count)]


def text(app: TopApp, name: str) -> str:
    return str(app.query_one(name, Static).content)


async def read_again(app: TopApp, pilot: Pilot[None]) -> None:
    app.read_again()
    await app.workers.wait_for_complete()
    await pilot.pause()


def test_the_fleet_the_queue_alarms_and_jobs_are_on_screen():
    async def drive(app: TopApp, pilot: Pilot[None]) -> None:
        assert "24 of 32 allocated (8 free)" in text(app, "#fleet")
        assert text(app, "#queue") == "jobs 3 running, 2 pending; nodes 4 up"
        assert text(app, "#alarms") == "alarm: 1 node down"
        assert column(app, 0) == ["job-1", "job-2"]

    driven(GivenReader(reading(job(1), job(2), alarms=("1 node down",))), drive)


def test_keys_sort_reverse_and_filter():
    async def drive(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press("s", "s")
        assert column(app, 1) == ["blue", "blue", "red", "red"]
        await pilot.press("r")
        assert column(app, 1) == ["red", "red", "blue", "blue"]
        await pilot.press("slash", *"state=running", "enter")
        assert column(app, 3) == ["running", "running"]
        assert "2 jobs with state=running" in text(app, "#note")
        await pilot.press("slash", "x", "enter")
        assert "cannot read" in text(app, "#note")

    driven(GivenReader(reading(*(job(number) for number in range(1, 5)))), drive)


def test_a_selected_job_shows_its_details_until_escape():
    async def drive(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press("down", "enter")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert text(app, "#detail") == "details of job-2"
        assert app.query_one("#details").display
        await pilot.press("escape")
        assert not app.query_one("#details").display

    driven(GivenReader(reading(job(1), job(2))), drive)


def test_a_control_plane_that_is_away_is_read_again():
    async def drive(app: TopApp, pilot: Pilot[None]) -> None:
        assert text(app, "#note") == "no answer; retrying"
        await read_again(app, pilot)
        assert column(app, 0) == ["job-1"]

    driven(GivenReader(Unreachable("away", "no answer"), reading(job(1))), drive)


def test_only_changed_cells_are_written_and_the_selection_stays():
    jobs = [job(number) for number in range(1_000)]
    changed = list(jobs)
    changed[5] = job(5, state="stopping")
    written: list[object] = []

    async def drive(app: TopApp, pilot: Pilot[None]) -> None:
        table = app.query_one("#jobs", DataTable)
        await pilot.press("down", "down")
        update = table.update_cell

        def noted(*words: object, **named: object) -> None:
            written.append(words[:2])
            update(*words, **named)  # pyright: ignore[reportArgumentType]

        table.update_cell = noted  # pyright: ignore[reportAttributeAccessIssue]
        await read_again(app, pilot)
        assert written == [("job-5", "state")]
        assert table.row_count == 1_000
        # A new job moves the rows below it, and the selected one with them.
        await read_again(app, pilot)
        assert column(app, 0)[:2] == ["job-2000", "job-0"]
        assert table.cursor_row == 3

    driven(
        GivenReader(reading(*jobs), reading(*changed), reading(job(2_000), *changed)),
        drive,
    )


def test_text_from_jobs_is_escaped_and_columns_sort_by_value():
    hostile = job(1, team="\x1b]0;title\x07", user="a\nb", gpus=16.0)
    assert row_of(hostile, AT)[1:3] == ("\\u001b]0;title\\u0007", "a\\nb")
    assert sort_value(hostile, "GPUs") > sort_value(job(2), "GPUs")
    assert "░" * 10 in gauge(FLEET, 40)


def test_a_filter_that_cannot_be_read_says_what_to_write():
    assert parse_filter("team=red state=pending") == TopFilter(team="red", state="pending")
    assert isinstance(parse_filter("pending"), str)
    assert isinstance(parse_filter("team="), str)


def test_without_the_extra_or_a_terminal_the_error_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    assert main(["top"]) == 2
    assert "`tenfold top` needs a terminal" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "textual", None)
    monkeypatch.setattr("tenfold.cli.top.command.find_spec", lambda _: None)
    assert main(["top"]) == 2
    assert "pip install 'tenfold[top]'" in capsys.readouterr().err


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Generator[Up, None, None]:
    with running(tmp_path_factory.mktemp("up") / "home", "--virtual-nodes", "2") as made:
        yield made


def test_a_real_control_plane_is_read(
    up: Up, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    commands_find(up, monkeypatch)
    file = tmp_path / "job.toml"
    file.write_text('gpus_per_node = 8\nnodes = 2\ncommand = ["sleep", "600"]\narray = 3\n')
    assert main(["job", "submit", str(file)]) == 0
    reader = TopReader(limit=2)
    try:
        found = reader.read()
        assert len(found.jobs) == 2
        assert sum(found.fleet.gpus.values()) == 16
        assert "(team admin)" in reader.details("job-1[2]")
    finally:
        reader.close()
    assert main(["job", "cancel", "job-1"]) == 0


def test_a_column_widens_when_a_value_gets_longer():
    async def drive(app: TopApp, pilot: Pilot[None]) -> None:
        table = app.query_one("#jobs", DataTable)
        await read_again(app, pilot)
        age = next(one for one in table.columns.values() if str(one.label) == "age")
        assert column(app, 5) == ["1m05s"]
        assert age.content_width == len("1m05s")

    early = job(1, submitted_at="2026-11-18T11:59:01.000Z")
    later = Reading(fleet=FLEET, jobs=(early,), at="2026-11-18T12:00:06.000Z", alarms=())
    driven(GivenReader(reading(early), later), drive)


def test_the_clock_ages_and_run_times_move_while_nothing_is_recorded():
    runs = job(2, elapsed_s=50.0)
    over = job(4, state="succeeded", elapsed_s=50.0)
    later = moved_on(reading(job(1), runs, over), FLEET, 12.0)
    assert later.at == "2026-11-18T12:00:12.000Z"
    assert [one.elapsed_s for one in later.jobs[1:]] == [62.0, 50.0]
    assert row_of(later.jobs[1], later.at)[6] == "1m02s"


def test_a_reader_moves_the_clock_on_although_no_event_was_recorded(
    up: Up, monkeypatch: pytest.MonkeyPatch
):
    commands_find(up, monkeypatch)
    passed = count(100.0, 7.0)
    monkeypatch.setattr("tenfold.cli.top.reader.monotonic", lambda: next(passed))
    reader = TopReader()
    first, second = reader.read(), reader.read()
    while first.fleet.event != second.fleet.event:
        first, second = second, reader.read()
    reader.close()
    assert seconds_between(first.at, second.at) == 7.0
