"""Read the requests of a service: CSV or Parquet with `t_s`, `input_tokens`, `output_tokens`."""

from collections.abc import Sequence
from pathlib import Path

from tenfold.files.series.columns import bad_row, check_columns, number_column
from tenfold.files.traces.tables import Table, read_table
from tenfold.model.service.simulated import RequestTrace
from tenfold.model.units import SECOND

COLUMNS = ("t_s", "input_tokens", "output_tokens")
HINT = (
    "give one row per request with the columns `t_s` (seconds), `input_tokens` and `output_tokens`"
)
TOKENS_MAX = 100_000_000
SPAN_MAX_S = 10 * 366 * 86_400


def read_requests(path: Path) -> RequestTrace:
    """Return requests in order of arrival, the first one at time 0; raise with the first bad line.

    Other columns are ignored.
    """
    table = read_table(path, COLUMNS)
    check_columns(table, path, COLUMNS, HINT)
    times = number_column(table, path, "t_s", HINT)
    tokens = [_tokens(table, path, name) for name in COLUMNS[1:]]
    first = min(times)
    if max(times) - first > SPAN_MAX_S:
        row = times.index(max(times))
        message = f"`t_s` is {times[row]:g}, more than ten years after the first request"
        raise bad_row(table, path, row, ("t_s", message, "write `t_s` in seconds"))
    order = sorted(range(len(times)), key=times.__getitem__)
    return RequestTrace(
        [round((times[row] - first) * SECOND) for row in order],
        *([column[row] for row in order] for column in tokens),
    )


def _tokens(table: Table, path: Path, name: str) -> Sequence[int]:
    values = number_column(table, path, name, HINT)
    for row, value in enumerate(values):
        if not 0 <= value <= TOKENS_MAX:
            message = f"`{name}` must be from 0 to {TOKENS_MAX:,}, got {value:g}"
            raise bad_row(table, path, row, (name, message, "write the number of tokens"))
    return [round(value) for value in values]
