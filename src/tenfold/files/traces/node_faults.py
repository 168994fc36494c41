"""Read a trace of node faults: InfiniteHBD JSON, or CSV.

JSON is a list of events `{"node_id", "event_time", "event_type", "fault_type"}` with times
in days and the types `fault_start` and `fault_end`. CSV has the columns `node`, `start_s`
and `end_s`, and optionally `cause`; an empty `end_s` means that the node did not come back.
"""

import csv
import io
from math import isfinite
from pathlib import Path
from typing import cast

import msgspec

from tenfold.files.core.document import decode, read_bytes
from tenfold.files.core.read_errors import json_problem
from tenfold.files.traces.errors import TraceErrors
from tenfold.model.errors import InputError
from tenfold.model.fault import FaultTrace, TraceFault

COLUMNS = ("node", "start_s", "end_s", "cause")
SIZE_MAX_BYTES = 512 * 1024 * 1024
DAY_S = 86_400.0
LATEST_S = 100 * 365 * DAY_S


def read_fault_trace(path: Path) -> FaultTrace:
    """Return the faults of a trace by the suffix of its file, or raise with every bad row."""
    suffix = path.suffix.lower()
    if suffix not in (".json", ".csv"):
        raise InputError(
            "unknown-suffix",
            f"`{path}` must end in .json or .csv",
            f"a fault trace is InfiniteHBD JSON, or CSV with {', '.join(COLUMNS)}",
            file=str(path),
        )
    text = decode(read_bytes(path, SIZE_MAX_BYTES), path)
    rows = _Rows(str(path))
    if suffix == ".json":
        _read_json(text, rows)
    else:
        _read_csv(text, rows)
    return rows.trace()


class _Rows:
    """What was read so far: whole faults, those still open, and bad rows."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.bad = TraceErrors(file)
        self.whole: list[TraceFault] = []
        self.open: dict[str, list[tuple[float, str]]] = {}
        self.last_s = 0.0

    def add(self, node: str, start_s: float, end_s: float | None, cause: str) -> None:
        self.last_s = max(self.last_s, start_s, end_s or 0.0)
        if end_s is None:
            self.open.setdefault(node, []).append((start_s, cause))
        else:
            self.whole.append(TraceFault(node, start_s, end_s, cause))

    def close(self, node: str, end_s: float) -> bool:
        open_faults = self.open.get(node)
        if not open_faults:
            return False
        start_s, cause = open_faults.pop(0)
        self.add(node, start_s, max(start_s, end_s), cause)
        return True

    def trace(self) -> FaultTrace:
        self.bad.raise_if_any()
        for node, open_faults in self.open.items():
            self.whole += [
                TraceFault(node, at, self.last_s, cause, is_open=True) for at, cause in open_faults
            ]
        faults = sorted(self.whole, key=lambda fault: (fault.start_s, fault.node))
        if not faults:
            raise InputError(
                "no-faults",
                f"`{self.file}` has no faults",
                "use `--failures none` instead",
                file=self.file,
            )
        return FaultTrace(file=self.file, faults=tuple(faults), span_s=self.last_s)


def _read_json(text: str, rows: _Rows) -> None:
    try:
        events = cast(object, msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(
            "not-json",
            f"`{rows.file}` is not valid JSON: {json_problem(error)}",
            "fix the file",
            file=rows.file,
        ) from None
    if not isinstance(events, list):
        raise InputError(
            "wrong-value",
            f"`{rows.file}` is not a list of events",
            'a fault trace in JSON is `[{"node_id": ..., "event_time": ...}, ...]`',
            file=rows.file,
        )
    for number, event in enumerate(cast(list[object], events), start=1):
        _read_event(event, number, rows)


def _read_event(event: object, number: int, rows: _Rows) -> None:
    fields = cast(dict[str, object], event) if isinstance(event, dict) else {}
    node, kind, at = fields.get("node_id"), fields.get("event_type"), fields.get("event_time")
    time_s = _seconds(at, DAY_S)
    if not isinstance(node, str) or not node or kind not in ("fault_start", "fault_end"):
        message = f"event {number} has no `node_id`, or is not a `fault_start` or `fault_end`"
        rows.bad.add("wrong-value", message, "write both as text", None, "event_type")
    elif time_s is None:
        message = f"event {number} has the `event_time` `{at}`"
        rows.bad.add(
            "wrong-value", message, "write days since the start of the trace", None, "event_time"
        )
    elif kind == "fault_start":
        rows.add(node, time_s, None, _cause(fields.get("fault_type")))
    elif not rows.close(node, time_s):
        message = f"event {number} ends a fault of `{node}` that has not started"
        rows.bad.add("end-without-start", message, "order the events by time", None, "node_id")


def _cause(kind: object) -> str:
    named = cast(dict[str, object], kind).get("Class") if isinstance(kind, dict) else kind
    return "-".join(named.lower().split()) if isinstance(named, str) else ""


def _seconds(value: object, unit_s: float) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value[:40])
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    seconds = float(value) * unit_s
    return seconds if isfinite(seconds) and 0 <= seconds <= LATEST_S else None


def _read_csv(text: str, rows: _Rows) -> None:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] = []
    try:
        for cells in reader:
            stripped = [cell.strip() for cell in cells]
            if not any(stripped):
                continue
            if header:
                row = dict(zip(header, stripped, strict=False))
                _read_row(row, reader.line_num, rows)
            else:
                header = _header(stripped, reader.line_num, rows.file)
    except csv.Error as error:
        raise InputError(
            "syntax",
            f"`{rows.file}` is not CSV: {error}",
            "quote cells that contain commas, quotes or line breaks",
            file=rows.file,
            line=reader.line_num,
        ) from None


def _header(cells: list[str], line: int, file: str) -> list[str]:
    header = [cell.lower() for cell in cells]
    missing = [column for column in COLUMNS[:3] if column not in header]
    if missing:
        raise InputError(
            "csv-header",
            f"the header has no column `{missing[0]}`",
            f"start with the line `{','.join(COLUMNS)}`",
            file=file,
            line=line,
        )
    return header


def _read_row(row: dict[str, str], line: int, rows: _Rows) -> None:
    node, start, end = row.get("node", ""), row.get("start_s", ""), row.get("end_s", "")
    start_s, end_s = _seconds(start, 1.0), _seconds(end, 1.0)
    if not node:
        rows.bad.add("wrong-value", "the row has no node", "fill in `node`", line, "node")
    elif start_s is None or (end_s is None and end):
        field, fields = ("start_s", start) if start_s is None else ("end_s", end)
        message = f"`{field}` expects seconds since the start, got `{fields[:40]}`"
        rows.bad.add("wrong-value", message, "write a plain number", line, field)
    elif end_s is not None and end_s < start_s:
        message = f"the fault of `{node}` ends at {end_s:g} s, before it starts at {start_s:g} s"
        rows.bad.add("end-before-start", message, "fix the two times", line, "end_s")
    else:
        rows.add(node, start_s, end_s, row.get("cause", ""))
