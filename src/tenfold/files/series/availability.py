"""Read how many spot nodes were available over time: CSV or Parquet with `t_s` and `value`."""

from itertools import pairwise
from pathlib import Path
from statistics import median_low

from msgspec import Struct

from tenfold.files.series.columns import bad_row, number_column
from tenfold.files.traces.tables import Table, read_table
from tenfold.model.errors import InputError

COLUMNS = ("t_s", "value")
HINT = "sort the rows by time, and give one row per time"
NUMBERS = "give `t_s` in seconds, and `value` as a number of nodes"


class AvailabilityTrace(Struct, frozen=True):
    """How many nodes are available, each for a time; the trace then repeats."""

    nodes: tuple[float, ...]
    lasts_s: tuple[float, ...]


def read_availability(path: Path) -> AvailabilityTrace:
    """Return a trace; raise with the first bad line."""
    table = read_table(path, COLUMNS)
    missing = [name for name in COLUMNS if name not in table.names]
    if missing or table.rows < 2:
        problem = f"has no column `{missing[0]}`" if missing else "has fewer than two rows"
        raise InputError(
            "csv-header",
            f"`{path}` {problem}",
            "give the columns `t_s` (seconds, increasing) and `value` (nodes available)",
            file=str(path),
        )
    times = number_column(table, path, "t_s", NUMBERS)
    nodes = number_column(table, path, "value", NUMBERS)
    gaps = [after - before for before, after in pairwise(times)]
    for row, gap in enumerate(gaps, start=1):
        if gap <= 0:
            raise _bad(table, path, row, "t_s", "`t_s` must increase from row to row")
    for row, value in enumerate(nodes):
        if value < 0:
            raise _bad(table, path, row, "value", f"`value` must not be negative, got {value:g}")
    # How long the last sample lasts is not recorded.
    return AvailabilityTrace(tuple(nodes), (*gaps, median_low(gaps)))


def _bad(table: Table, path: Path, row: int, field: str, message: str) -> InputError:
    hint = HINT if field == "t_s" else NUMBERS
    return bad_row(table, path, row, (field, message, hint))
