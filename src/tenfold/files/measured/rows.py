"""Read what was measured of a fleet as it grew: `measured.csv`, a row a measurement.

Columns: `layer`, `resource`, `factor` (how many times the demand of today) and `usage`, and
where known `limit`, `unit`, `queue` for a layer that has several, and `axis`, what grew when it
was measured. Usage and limit are in the same unit; an empty limit was not measured. Every row is
checked, and all faults come back with their lines.
"""

import math
from collections.abc import Mapping
from pathlib import Path

from tenfold.files.traces.csv_table import csv_rows
from tenfold.model.errors import InputError, InvalidFile
from tenfold.model.fleet.finding import Finding
from tenfold.model.growth.growth import AXES, Axis
from tenfold.model.growth.measured import UsagePoint

COLUMNS = ("layer", "resource", "queue", "factor", "usage", "limit", "unit", "axis")
OPTIONAL = ("queue", "limit", "unit", "axis")
TEXT_MAX = 200


def read_measured(path: Path) -> tuple[UsagePoint, ...]:
    """Return the measurements of a file in its order, or raise with every faulty line."""
    rows = csv_rows(path)
    line, header = next(rows, (1, [""]))
    names = [cell.strip().removeprefix("\ufeff").lower() for cell in header]
    _check_header(names, str(path), line)
    findings: list[Finding] = []
    points: dict[int, UsagePoint] = {}
    for at, cells in rows:
        row = _Row(str(path), at, findings)
        stripped = [cell.strip() for cell in cells]
        if len(stripped) > len(names):
            count = f"{len(stripped)} cells, but the header has {len(names)}"
            row.add("too-many-cells", f"the row has {count}", "quote cells that contain a comma")
        elif any(stripped):
            padded = [*stripped, *[""] * (len(names) - len(stripped))]
            point = row.read(dict(zip(names, padded, strict=True)))
            if point is not None:
                points[at] = point
    if not points and not findings:
        findings.append(_nothing_measured(str(path), line))
    findings += _mixed_units(points, str(path))
    if findings:
        raise InvalidFile(str(path), findings)
    return tuple(points.values())


def _check_header(names: list[str], file: str, line: int) -> None:
    missing = [name for name in COLUMNS if name not in names and name not in OPTIONAL]
    unknown = [name for name in names if name not in COLUMNS]
    twice = [name for name in names if names.count(name) > 1]
    code, problem = "csv-header", ""
    if missing:
        code, problem = "missing-column", f"has no column `{missing[0]}`"
    elif twice:
        problem = f"has the column `{twice[0]}` twice"
    elif unknown:
        problem = f"has an unknown column `{unknown[0]}`"
    if problem:
        raise InputError(
            code,
            f"the header {problem}",
            f"start with the line `{','.join(COLUMNS)}`",
            file=file,
            line=line,
            field=(missing or twice or unknown)[0],
        )


class _Row:
    """One line of the file, and where its faults go."""

    def __init__(self, file: str, line: int, findings: list[Finding]) -> None:
        self.file = file
        self.line = line
        self._findings = findings

    def add(self, code: str, message: str, hint: str, field: str = "") -> None:
        path = (field,) if field else ()
        found = Finding(
            code=code, message=message, hint=hint, file=self.file, line=self.line, path=path
        )
        self._findings.append(found)

    def read(self, cells: Mapping[str, str]) -> UsagePoint | None:
        before = len(self._findings)
        layer, resource = self._text(cells, "layer"), self._text(cells, "resource")
        factor = self._number(cells, "factor", above=True)
        usage = self._number(cells, "usage", above=False)
        limit = self._number(cells, "limit", above=True) if cells.get("limit") else None
        axis = self._axis(cells.get("axis", ""))
        if len(self._findings) > before:
            return None
        return UsagePoint(
            layer=layer,
            resource=resource,
            queue=cells.get("queue", ""),
            factor=factor,
            usage=usage,
            limit=limit,
            unit=cells.get("unit", ""),
            axis=axis,
        )

    def _axis(self, text: str) -> Axis | None:
        known: dict[str, Axis] = {axis: axis for axis in AXES}
        found = known.get(text)
        if text and found is None:
            self.add(
                "wrong-value",
                f"`axis` expects one of {', '.join(AXES)}, got `{text}`",
                "leave it empty if the measurement applies to every axis",
                "axis",
            )
        return found

    def _text(self, cells: Mapping[str, str], name: str) -> str:
        text = cells[name]
        if not 1 <= len(text) <= TEXT_MAX:
            got = f"{len(text)} characters" if text else "nothing"
            self.add(
                "wrong-value",
                f"`{name}` expects a string of 1 to {TEXT_MAX} characters, got {got}",
                f"fill in `{name}` in every row",
                name,
            )
        return text

    def _number(self, cells: Mapping[str, str], name: str, *, above: bool) -> float:
        text = cells[name]
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and (value > 0.0 or (value == 0.0 and not above))):
            expected = "a number above 0" if above else "a number of 0 or more"
            got = f"`{text}`" if text else "nothing"
            self.add(
                "wrong-value",
                f"`{name}` expects {expected}, got {got}",
                "write a plain number in the unit of the row",
                name,
            )
        return value


def _nothing_measured(file: str, line: int) -> Finding:
    return Finding(
        code="no-measurements",
        message=f"`{file}` has a header but no rows",
        hint="add one row per measurement",
        file=file,
        line=line,
    )


def _mixed_units(points: Mapping[int, UsagePoint], file: str) -> list[Finding]:
    """Return a finding for each resource whose rows are in more than one unit."""
    units: dict[tuple[str, str, str], str] = {}
    mixed: dict[tuple[str, str, str], Finding] = {}
    for line, point in points.items():
        key = (point.layer, point.resource, point.queue)
        first = units.setdefault(key, point.unit)
        if point.unit != first and key not in mixed:
            mixed[key] = Finding(
                code="wrong-value",
                message=f"`{point.resource}` has two units: `{first}` and `{point.unit}`",
                hint="use the same unit in all rows of a resource",
                file=file,
                line=line,
                path=("unit",),
            )
    return list(mixed.values())
