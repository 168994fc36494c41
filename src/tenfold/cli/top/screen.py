"""The screen of `tenfold top`. Only rows that changed are written, so 1,000 jobs stay smooth."""

from typing import ClassVar, cast

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import DataTable, Footer, Input, Static

from tenfold.cli.top.reader import (
    HEADINGS,
    NUMERIC,
    Reading,
    Row,
    TopFilter,
    TopReader,
    gauge,
    parse_filter,
    queue_line,
    row_of,
    sort_value,
)
from tenfold.clock import process_cpu_s
from tenfold.model.api.jobs import Job
from tenfold.model.errors import TenfoldError
from tenfold.report.visible import visible_line

GAUGE_CELLS = 40


class TopApp(App[None]):
    """Fleet gauge, queue, alarms, a table of jobs, and the details of one."""

    ENABLE_COMMAND_PALETTE = False
    CSS: ClassVar[str] = """
    #fleet, #queue, #alarms, #note { height: auto; }
    #alarms { color: $warning; }
    #filter { display: none; height: 3; }
    #details { display: none; height: 45%; border-top: solid $primary; }
    DataTable { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("s", "sort", "Sort"),
        Binding("r", "reverse", "Reverse"),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("escape", "close", "Back"),
    ]

    def __init__(self, reader: TopReader, filters: TopFilter, interval_s: float) -> None:
        super().__init__()
        self.refresh_cpu_s = 0.0
        """CPU time of the last update of the screen, without reading."""
        self._reader, self._filter, self._interval_s = reader, filters, interval_s
        self._reading: Reading | None = None
        self._rows: dict[str, Row] = {}
        """By job, the cells on screen."""
        self._order: list[str] = []
        self._sort, self._is_reversed = "", False
        self._is_reading = False
        self._shown_job = ""

    def compose(self) -> ComposeResult:
        """Make the widgets."""
        yield Static(id="fleet", markup=False)
        yield Static(id="queue", markup=False)
        yield Static(id="alarms", markup=False)
        yield Static("connecting", id="note", markup=False)
        yield Input(placeholder="team=NAME user=NAME state=STATE", id="filter")
        yield DataTable[Text](id="jobs", cursor_type="row", zebra_stripes=False)
        with VerticalScroll(id="details"):
            yield Static(id="detail", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Start to read."""
        table = self._table
        for heading in HEADINGS:
            table.add_column(heading, key=heading)
        table.focus()
        self.set_interval(self._interval_s, self.read_again)
        self.read_again()

    def read_again(self) -> None:
        """Read the control plane in a thread, unless the last reading is still under way."""
        if not self._is_reading:
            self._is_reading = True
            self.run_worker(self._read, thread=True, group="read")

    def _read(self) -> None:
        try:
            reading = self._reader.read()
        except TenfoldError as problem:
            self.call_from_thread(self._failed, problem.message)
        else:
            self.call_from_thread(self._update, reading)

    def _failed(self, message: str) -> None:
        self._is_reading = False
        self._say(f"{message}; retrying")

    def _update(self, reading: Reading) -> None:
        began_s = process_cpu_s()
        self._is_reading = False
        self._reading = reading
        self.query_one("#fleet", Static).update(gauge(reading.fleet, GAUGE_CELLS))
        self.query_one("#queue", Static).update(queue_line(reading.fleet))
        alarms = "\n".join(f"alarm: {one}" for one in reading.alarms) or "alarms: none"
        self.query_one("#alarms", Static).update(alarms)
        self._show_jobs(reading)
        self.refresh_cpu_s = process_cpu_s() - began_s

    def _show_jobs(self, reading: Reading) -> None:
        jobs = [job for job in reading.jobs if self._filter.matches(job)]
        if self._sort:
            jobs.sort(key=lambda job: sort_value(job, self._sort), reverse=self._is_reversed)
        elif self._is_reversed:
            jobs.reverse()
        self._write_rows(jobs, reading.at)
        shown = f"{len(jobs):,} jobs"
        named = self._filter.text
        order = f", sorted by {self._sort}" if self._sort else ""
        self._say(f"{shown}{f' with {named}' if named else ''}{order}; {reading.at[11:19]} UTC")

    def _write_rows(self, jobs: list[Job], at: str) -> None:
        """Change the cells that differ; rows are written anew only if their order changed."""
        rows = {job.id: row_of(job, at) for job in jobs}
        order, table = list(rows), self._table
        if order != self._order:
            selected = self._selected()
            with self.batch_update():
                table.clear()
                for name, row in rows.items():
                    table.add_row(*map(_cell, row, HEADINGS), key=name)
                if selected in rows:
                    table.move_cursor(row=order.index(selected), animate=False)
        else:
            for name, row in rows.items():
                before = self._rows[name]
                if before == row:
                    continue
                for heading, old, new in zip(HEADINGS, before, row, strict=True):
                    if old != new:
                        # An age that grows by a digit would be cut off; widths cost time to find.
                        is_longer = len(new) > len(old)
                        cell = _cell(new, heading)
                        table.update_cell(name, heading, cell, update_width=is_longer)
        self._rows, self._order = rows, order

    def _selected(self) -> str:
        place = self._table.cursor_row
        return self._order[place] if 0 <= place < len(self._order) else ""

    @property
    def _table(self) -> DataTable[Text]:
        return cast("DataTable[Text]", self.query_one("#jobs", DataTable))

    def _say(self, text: str) -> None:
        self.query_one("#note", Static).update(visible_line(text))

    def action_sort(self) -> None:
        """Sort by the next column; after the last, in the order of the control plane."""
        names = ("", *HEADINGS)
        self._sort = names[(names.index(self._sort) + 1) % len(names)]
        self._again()

    def action_reverse(self) -> None:
        """Reverse the order."""
        self._is_reversed = not self._is_reversed
        self._again()

    def action_filter(self) -> None:
        """Ask for a filter."""
        field = self.query_one("#filter", Input)
        field.display = True
        field.value = self._filter.text
        field.focus()

    def action_close(self) -> None:
        """Close the filter and the details."""
        self._shown_job = ""
        self.query_one("#filter", Input).display = False
        self.query_one("#details").display = False
        self._table.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Apply the filter that was typed."""
        found = parse_filter(event.value)
        if isinstance(found, str):
            self._say(found)
            return
        self._filter = found
        self.action_close()
        self._again()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Show a job: its details are read in a thread."""
        name = event.row_key.value or ""
        self._shown_job = name
        self.query_one("#details").display = True
        self.query_one("#detail", Static).update("reading")
        self.run_worker(
            lambda: self._read_details(name), thread=True, group="details", exclusive=True
        )

    def _read_details(self, name: str) -> None:
        try:
            text = self._reader.details(name)
        except TenfoldError as problem:
            text = visible_line(problem.message)
        self.call_from_thread(self._show_details, name, text)

    def _show_details(self, name: str, text: str) -> None:
        if name == self._shown_job:
            self.query_one("#detail", Static).update(text)

    def _again(self) -> None:
        if self._reading is not None:
            self._show_jobs(self._reading)

    def on_unmount(self) -> None:
        """Close the connection."""
        self._reader.close()


def _cell(text: str, heading: str) -> Text:
    return Text(text, justify="right" if heading in NUMERIC else "left", no_wrap=True)
