"""Read the steps of a job from JSON Lines or CSV: one row a step.

`step_s` is needed; `compute_s`, `comm_s` and `data_s` are its parts where they are known,
in every row or in none. Keys of the run (`gpus`, `accelerator` ...) may stand in any row.
Other columns, such as a loss, are ignored and listed.
"""

import csv
import io
from math import isfinite
from typing import cast

import msgspec

from tenfold.files.core.expectations import describe_value
from tenfold.files.core.read_errors import json_problem
from tenfold.files.measured.reading import KEYS, TIMES_MAX_S, Reading
from tenfold.model.baseline import Part, Steps, downsample_values
from tenfold.model.errors import InputError

NO_STEP = "each line needs `step_s`, the step time in seconds"
PART_COLUMNS: dict[str, Part] = {
    "compute_s": "compute",
    "comm_s": "communication",
    "communication_s": "communication",
    "data_s": "data",
}


def read_step_lines(text: str, file: str, skip: int) -> Reading:
    """Return the steps of JSON Lines, the first `skip` of them skipped."""
    table = _Table(file)
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = cast(object, msgspec.json.decode(line))
        except (msgspec.DecodeError, RecursionError) as error:
            raise InputError(
                "not-json",
                f"not valid JSON: {json_problem(error)}",
                "write one JSON object per line",
                file=file,
                line=number,
            ) from None
        if not isinstance(row, dict):
            raise InputError(
                "wrong-value",
                f"the line must be a JSON object, but is {describe_value(row)}",
                'write lines such as {"step": 1, "step_s": 0.5}',
                file=file,
                line=number,
            )
        table.take(cast(dict[str, object], row), number)
    return table.reading(skip)


def read_step_csv(text: str, file: str, skip: int) -> Reading:
    """Return the steps of a table whose first line names its columns."""
    table = _Table(file)
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        if "step_s" not in [(name or "").strip() for name in reader.fieldnames or ()]:
            raise InputError(
                "missing-column",
                "the header has no column `step_s`",
                "start with a line such as `step,step_s,compute_s,comm_s,data_s`",
                file=file,
                line=1,
                field="step_s",
            )
        for row in reader:
            cells = {
                name.strip(): cell.strip()
                for name, cell in cast(dict[object, object], row).items()
                if isinstance(name, str) and isinstance(cell, str) and cell.strip()
            }
            if cells:
                table.take(dict[str, object](cells), reader.line_num)
    except csv.Error as error:
        raise InputError(
            "syntax",
            f"`{file}` is not CSV: {error}",
            "quote cells that contain commas, quotes or line breaks",
            file=file,
            line=reader.line_num,
        ) from None
    return table.reading(skip)


class _Table:
    """The rows taken so far."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.step_s: list[float] = []
        self.parts_s: dict[Part, list[float]] = {}
        self.keys: dict[str, str] = {}
        self.ignored: dict[str, None] = {}
        self.first_line = 0

    def take(self, row: dict[str, object], line: int) -> None:
        """Add one row, or raise with what is wrong in it."""
        self.first_line = self.first_line or line
        found: dict[Part, float] = {}
        for name, value in row.items():
            if name in PART_COLUMNS:
                found[PART_COLUMNS[name]] = self._seconds(name, value, line)
            elif name in KEYS:
                self._key(name, value, line)
            elif name not in ("step", "step_s"):
                self.ignored[name] = None
        if "step_s" not in row:
            raise self._fault("missing-key", "`step_s` is missing", "step_s", line, NO_STEP)
        step_s = self._seconds("step_s", row["step_s"], line)
        if step_s <= 0:
            raise self._fault("wrong-value", "`step_s` must be above 0", "step_s", line)
        if self.step_s:
            self._same_parts(found, line)
        self.step_s.append(step_s)
        for part, value in found.items():
            self.parts_s.setdefault(part, []).append(value)

    def reading(self, skip: int) -> Reading:
        """Return what was taken, without the first steps."""
        kept = tuple(self.step_s[skip:])
        notes = (f"ignored columns: {', '.join(self.ignored)}",) if self.ignored else ()
        parts: dict[Part, tuple[float, ...]] = {
            part: downsample_values(tuple(seconds[skip:])) for part, seconds in self.parts_s.items()
        }
        steps = Steps(count=len(kept), step_s=downsample_values(kept), parts_s=parts)
        return Reading(measured=steps, keys=self.keys, notes=notes)

    def _seconds(self, name: str, value: object, line: int) -> float:
        try:
            number = float(value) if isinstance(value, str | int | float) else -1.0
        except (ValueError, OverflowError):
            number = -1.0
        if isinstance(value, bool) or not isfinite(number) or not 0 <= number <= TIMES_MAX_S:
            message = f"`{name}` expects a number of seconds, got {describe_value(value)}"
            raise self._fault("wrong-value", message, name, line)
        return number

    def _key(self, name: str, value: object, line: int) -> None:
        text = f"{value:g}" if isinstance(value, float) else str(value)
        known = self.keys.setdefault(name, text)
        if known != text:
            raise self._fault(
                "mixed-runs", f"`{name}` is `{text}`, but was `{known}` before", name, line
            )

    def _same_parts(self, found: dict[Part, float], line: int) -> None:
        for part in dict.fromkeys([*self.parts_s, *found]):
            if (part in found) != (part in self.parts_s):
                column = "comm_s" if part == "communication" else f"{part}_s"
                first = self.first_line
                has = f"lacks `{column}`, which line {first} has"
                if part in found:
                    has = f"has `{column}`, which line {first} lacks"
                raise self._fault("missing-key", f"the row {has}", column, line)

    def _fault(self, code: str, message: str, field: str, line: int, hint: str = "") -> InputError:
        hints = {
            "missing-key": "give every step the same columns",
            "wrong-value": "write seconds, such as 0.52",
            "mixed-runs": "put each run in its own file",
        }
        return InputError(
            code, message, hint or hints[code], file=self.file, line=line, field=field
        )
