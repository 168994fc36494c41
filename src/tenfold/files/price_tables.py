"""Read the tables that price catalogues come in: CSV, gzipped CSV or Parquet.

A public catalogue is written by scripts, so a column that is missing or not a number is
a fault of the whole file and is refused here. A row with an odd price is not: that is
what the rules in `price_rules` are for.
"""

import gzip
import zlib
from collections.abc import Sequence
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import polars as pl
from polars.exceptions import PolarsError

from tenfold.files.document import SIZE_MAX_BYTES, read_bytes
from tenfold.model.errors import InputError

SUFFIXES = (".csv", ".csv.gz", ".parquet")


def read_table(path: Path, text: Sequence[str], numbers: Sequence[str]) -> pl.DataFrame:
    """Return the named columns of a table, text with no gaps and numbers as floats."""
    frame = _read(path)
    for column in (*text, *numbers):
        if column not in frame.columns:
            raise InputError(
                "missing-column",
                f"`{path}` has no column `{column}`",
                f"a price table needs {', '.join((*text, *numbers))}",
                file=str(path),
                field=column,
            )
    for column in numbers:
        _check_numbers(path, frame[column])
    return frame.select(
        *(pl.col(column).cast(pl.String).fill_null("").str.strip_chars() for column in text),
        *(pl.col(column).cast(pl.Float64, strict=False) for column in numbers),
    )


def _read(path: Path) -> pl.DataFrame:
    if not path.name.endswith(SUFFIXES):
        raise InputError(
            "unknown-suffix",
            f"`{path}` is not a price table by its name",
            f"give a file that ends in {', '.join(SUFFIXES)}",
            file=str(path),
        )
    content = read_bytes(path)
    try:
        if path.suffix == ".parquet":
            return _parquet(content)
        text = _unpacked(content, path) if path.suffix == ".gz" else content
        return pl.read_csv(text, infer_schema=False)
    except (PolarsError, OSError, EOFError, ValueError, zlib.error) as error:
        reason = str(error).splitlines()[0] if str(error) else "it breaks off"
    raise InputError(
        "unreadable-table",
        f"`{path}` cannot be read as a table: {reason}",
        "check that the download is whole",
        file=str(path),
    )


def _parquet(content: bytes) -> pl.DataFrame:
    # Polars trusts Parquet and ends the process on a damaged file; Arrow can check one.
    arrow = cast(Any, import_module("pyarrow.parquet"))
    table = arrow.read_table(BytesIO(content))
    table.validate(full=True)
    # Neither names nor metadata are part of that check: ask for the one, drop the other.
    columns = {name: table.column(name) for name in table.column_names}
    return pl.DataFrame({name: pl.Series(name, column) for name, column in columns.items()})


def _unpacked(content: bytes, path: Path) -> bytes:
    # Read one byte past the limit: a small file may unpack to more than memory holds.
    with gzip.open(BytesIO(content)) as stream:
        text = stream.read(SIZE_MAX_BYTES + 1)
    if len(text) > SIZE_MAX_BYTES:
        raise InputError(
            "file-too-large",
            f"`{path}` unpacks to more than {SIZE_MAX_BYTES / 1e6:,.0f} MB",
            "take one snapshot of the catalogue, not its history",
            file=str(path),
        )
    return text


def _check_numbers(path: Path, values: pl.Series) -> None:
    if values.dtype.is_nested() or values.dtype.is_temporal():
        raise _not_a_number(path, values.name, str(values.dtype), None)
    bad = values.is_not_null() & values.cast(pl.Float64, strict=False).is_null()
    at = bad.arg_max()
    if at is not None and bad[at]:
        # Row 0 of a CSV stands on line 2, under the header; Parquet has no lines.
        line = None if path.suffix == ".parquet" else at + 2
        raise _not_a_number(path, values.name, str(values[at]), line)


def _not_a_number(path: Path, column: str, value: str, line: int | None) -> InputError:
    return InputError(
        "not-a-number",
        f"column `{column}` of `{path}` holds `{value}`, which is not a number",
        "leave a price empty where there is none",
        file=str(path),
        line=line,
        field=column,
    )
