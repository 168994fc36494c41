"""Read the tables that price catalogues come in: CSV, gzipped CSV, Parquet or JSON.

A public catalogue is written by scripts, so a column that is missing or not a number is
a fault of the whole file and is refused here. A row with an odd price is not: that is
what the rules in `rules` are for.
"""

import csv
import gzip
import io
import zlib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import cast

import msgspec
from msgspec import Struct

from tenfold.files.core.document import SIZE_MAX_BYTES, read_bytes
from tenfold.files.core.parquet import arrow_for
from tenfold.model.errors import InputError

SUFFIXES = (".csv", ".csv.gz", ".parquet", ".json")
Columns = Mapping[str, Sequence[object]]


class PriceTable(Struct, frozen=True):
    """Named columns of one length: text without gaps, and numbers, None where there is none."""

    texts: dict[str, list[str]]
    numbers: dict[str, list[float | None]]


def read_table(path: Path, text: Sequence[str], numbers: Sequence[str]) -> PriceTable:
    """Return the named columns of a table."""
    return table_of(path, read_columns(path), text, numbers)


def table_of(
    path: Path, columns: Columns, text: Sequence[str], numbers: Sequence[str]
) -> PriceTable:
    """Return some columns of a table that was read, as text or as numbers."""
    for column in (*text, *numbers):
        if column not in columns:
            raise InputError(
                "missing-column",
                f"`{path}` has no column `{column}`",
                f"a price table needs {', '.join((*text, *numbers))}",
                file=str(path),
                field=column,
            )
    return PriceTable(
        {name: ["" if one is None else str(one).strip() for one in columns[name]] for name in text},
        {name: _numbers(path, name, columns[name]) for name in numbers},
    )


def read_columns(path: Path) -> Columns:
    """Return every column of a table by its name."""
    if not path.name.endswith(SUFFIXES):
        raise InputError(
            "unknown-suffix",
            f"`{path}` is not a price table",
            f"use a file that ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}",
            file=str(path),
        )
    content = read_bytes(path)
    try:
        if path.suffix == ".parquet":
            return _parquet(content, path)
        if path.suffix == ".json":
            return _json(content)
        return _csv(_unpacked(content, path) if path.suffix == ".gz" else content)
    except (csv.Error, OSError, EOFError, RecursionError, ValueError, zlib.error) as error:
        reason = str(error).splitlines()[0] if str(error) else "it is truncated"
    raise InputError(
        "unreadable-table",
        f"`{path}` cannot be read as a table: {reason}",
        "check that the download is complete",
        file=str(path),
    )


def _csv(content: bytes) -> dict[str, list[str | None]]:
    rows = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
    first = next(rows, None)
    if not first:
        raise ValueError("it is empty")
    header = [name.strip() for name in first]
    columns: list[list[str | None]] = [[] for _ in header]
    for row in rows:
        if len(row) > len(header):
            raise ValueError(f"line {rows.line_num} has more cells than the header")
        for at, column in enumerate(columns if row else []):
            column.append(row[at] or None if at < len(row) else None)
    return dict(zip(header, columns, strict=True))


def _json(content: bytes) -> dict[str, list[object]]:
    rows: object = msgspec.json.decode(content)
    if isinstance(rows, dict):
        # Some tools wrap the list: {"items": [...]}.
        rows = next((one for one in cast(dict[str, object], rows).values()), None)
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) for row in cast(list[object], rows)
    ):
        raise ValueError("it is not a list of objects")
    table = cast(list[dict[str, object]], rows)
    names = dict.fromkeys(name for row in table for name in row)
    return {name: [row.get(name) for row in table] for name in names}


def _parquet(content: bytes, path: Path) -> dict[str, list[object]]:
    _, parquet = arrow_for(path)
    table = parquet.read_table(io.BytesIO(content))
    # Corruption that the reader does not notice would show up as odd values.
    table.validate(full=True)
    return {name: table.column(name).to_pylist() for name in cast(list[str], table.column_names)}


def _unpacked(content: bytes, path: Path) -> bytes:
    # Read one byte past the limit: a small file may unpack to more than memory holds.
    with gzip.open(io.BytesIO(content)) as stream:
        text = stream.read(SIZE_MAX_BYTES + 1)
    if len(text) > SIZE_MAX_BYTES:
        raise InputError(
            "file-too-large",
            f"`{path}` unpacks to more than {SIZE_MAX_BYTES / 1e6:,.0f} MB",
            "use one snapshot of the catalogue, not its history",
            file=str(path),
        )
    return text


def _numbers(path: Path, column: str, values: Sequence[object]) -> list[float | None]:
    numbers: list[float | None] = []
    for at, value in enumerate(values):
        number = None if value is None else _number(value)
        if number is None and value is not None:
            raise InputError(
                "not-a-number",
                f"column `{column}` of `{path}` holds `{value}`, which is not a number",
                "leave the cell empty if there is no price",
                file=str(path),
                # Row 0 of a CSV is on line 2, under the header; Parquet has no lines.
                line=None if path.suffix == ".parquet" else at + 2,
                field=column,
            )
        numbers.append(number)
    return numbers


def _number(value: object) -> float | None:
    if not isinstance(value, str | int | float | Decimal):
        return None
    if isinstance(value, str):
        value = value.strip().removeprefix("$")
    try:
        return None if isinstance(value, str) and "_" in value else float(value)
    except ValueError:
        return None
