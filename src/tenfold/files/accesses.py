"""Read traces of storage accesses: CSV with one access per line, in the order in which the job
reads them."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from tenfold.files.core.document import read_text
from tenfold.model.errors import InputError
from tenfold.model.objects.tiering import Access

COLUMNS = ("key", "size_bytes", "op", "epoch", "compute_s")


def read_accesses(path: Path) -> list[Access]:
    """Return the accesses of a CSV file with the columns key, size_bytes, op, epoch, compute_s."""
    rows = csv.DictReader(io.StringIO(read_text(path), newline=""))
    try:
        return _read(rows, path)
    except csv.Error as error:
        raise _wrong(str(path), rows.line_num + 1, str(error)) from None


def _read(rows: "csv.DictReader[str]", path: Path) -> list[Access]:
    missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
    if missing:
        raise InputError(
            "missing-column",
            f"the column `{missing[0]}` is missing",
            f"an access trace has the columns {', '.join(COLUMNS)}",
            file=str(path),
            line=1,
        )
    found = list(_accesses(rows, str(path)))
    if not found:
        raise InputError(
            "empty-trace",
            "the trace has no accesses",
            "add at least one row below the header",
            file=str(path),
            line=1,
        )
    return found


def _accesses(rows: "csv.DictReader[str]", file: str) -> Iterator[Access]:
    for row in rows:
        op = row["op"]
        try:
            access = Access(
                row["key"],
                int(row["size_bytes"]),
                _op(op),
                int(row["epoch"]),
                float(row["compute_s"]),
            )
        except (TypeError, ValueError) as error:
            raise _wrong(file, rows.line_num, str(error)) from None
        if access.size_bytes <= 0 or not 0 <= access.compute_s < 1e9 or not access.key:
            raise _wrong(file, rows.line_num, "a key, a size above 0 and a time are needed")
        yield access


def _op(text: str) -> Literal["read", "write"]:
    if text == "read":
        return "read"
    if text == "write":
        return "write"
    raise ValueError(f"`op` is `{text}`, expected read or write")


def _wrong(file: str, line: int, problem: str) -> InputError:
    return InputError(
        "wrong-value",
        f"this access cannot be used: {problem}",
        "write it like `shard-0001,268435456,read,0,0.5`",
        file=file,
        line=line,
    )
