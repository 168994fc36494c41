"""Read the hourly CO2 intensity and price of the grid.

CSV with the columns `hour`, `co2_g_per_kwh` and optionally `usd_per_kwh`. Hours count up from
0, and the curve repeats after the last. Lines that start with `#` are comments.
"""

from collections.abc import Mapping
from math import isfinite
from pathlib import Path

from tenfold.files.traces.csv_table import csv_rows
from tenfold.files.traces.errors import TraceErrors
from tenfold.model.errors import InputError
from tenfold.model.facts.intensity import Intensity, curve_of

COLUMNS = ("hour", "co2_g_per_kwh", "usd_per_kwh")
REQUIRED = COLUMNS[:2]
CO2_MAX = 5_000.0
USD_MAX = 10.0
HOURS_MAX = 10 * 8_784
PER_MWH_HINT = "values are per kilowatt-hour: divide values per megawatt-hour by 1,000"


def read_intensity(path: Path) -> Intensity:
    """Return the curves of a file, or raise with every bad line."""
    table = _Table(str(path))
    for line, cells in csv_rows(path):
        stripped = [cell.strip() for cell in cells]
        if any(stripped) and not stripped[0].startswith("#"):
            table.add_row(stripped, line)
    return table.intensity()


class _Table:
    """The hours read so far, and what is wrong with their lines."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.header: list[str] = []
        self.bad = TraceErrors(file)
        self.hours = 0
        self.co2: list[float] = []
        self.usd: list[float] = []

    def add_row(self, cells: list[str], line: int) -> None:
        if not self.header:
            self._read_header(cells, line)
        elif len(cells) > len(self.header):
            message = f"the row has {len(cells)} cells, but the header has {len(self.header)}"
            self.bad.add("too-many-cells", message, "quote cells that contain a comma", line)
        else:
            padded = [*cells, *[""] * (len(self.header) - len(cells))]
            self._read_row(dict(zip(self.header, padded, strict=True)), line)

    def intensity(self) -> Intensity:
        self.bad.raise_if_any()
        if not self.co2:
            raise InputError(
                "csv-header",
                f"`{self.file}` has no rows",
                f"start with the line `{','.join(COLUMNS)}`, then one row per hour",
                file=self.file,
            )
        usd = curve_of(self.usd) if self.usd else None
        return Intensity(co2_g_per_kwh=curve_of(self.co2), usd_per_kwh=usd)

    def _read_header(self, cells: list[str], line: int) -> None:
        self.header = [cell.lower() for cell in cells]
        missing = [name for name in REQUIRED if name not in self.header]
        unknown = [name for name in self.header if name not in COLUMNS]
        problem = ""
        if missing:
            problem = f"has no column `{missing[0]}`"
        elif unknown:
            problem = f"has an unknown column `{unknown[0][:40]}`"
        elif len(dict.fromkeys(self.header)) < len(self.header):
            problem = "has a duplicate column"
        if problem:
            raise InputError(
                "csv-header",
                f"the header {problem}",
                f"start with the line `{','.join(COLUMNS)}`; the last column is optional",
                file=self.file,
                line=line,
            )

    def _read_row(self, row: Mapping[str, str], line: int) -> None:
        expected, self.hours = self.hours, self.hours + 1
        if _number(row["hour"]) != expected or expected >= HOURS_MAX:
            message = f"`hour` expects {expected}, got `{row['hour'][:40]}`"
            hint = f"hours count up from 0 without gaps, at most {HOURS_MAX:,}"
            self.bad.add("wrong-value", message, hint, line, "hour")
        self._read_value(row, "co2_g_per_kwh", 0.0, CO2_MAX, line)
        if "usd_per_kwh" in self.header:
            # Day-ahead prices can be negative.
            self._read_value(row, "usd_per_kwh", -USD_MAX, USD_MAX, line)

    def _read_value(
        self, row: Mapping[str, str], name: str, least: float, most: float, line: int
    ) -> None:
        value = _number(row[name])
        if value is None or not least <= value <= most:
            message = f"`{name}` expects a number from {least:g} to {most:g}"
            said = f"{message}, got `{row[name][:40]}`"
            hint = PER_MWH_HINT if value is not None and value > most else "write a plain number"
            self.bad.add("wrong-value", said, hint, line, name)
        else:
            (self.co2 if name == "co2_g_per_kwh" else self.usd).append(value)


def _number(text: str) -> float | None:
    try:
        value = float(text[:40])
    except ValueError:
        return None
    return value if isfinite(value) else None
