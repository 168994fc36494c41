"""Read CSV, packed or not, as columns or row by row."""

import csv
import gc
import gzip
import io
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from tenfold.files.core.document import read_bytes
from tenfold.files.traces.cells import Cells, known_texts, parsed, thousandths
from tenfold.files.traces.errors import check_header, unreadable
from tenfold.model.errors import InputError

SIZE_MAX_BYTES = 2 * 1024**3
_PIECE_BYTES = 1 << 20


class CsvTable:
    """A CSV file with a header."""

    def __init__(self, path: Path) -> None:
        self.file = str(path)
        self._path = path
        self._content = read_plain_bytes(path)
        with _no_collection():
            body = _all_rows(self._content, path)
            header = [cell.strip() for cell in body.pop(0)] if body else []
            self.names = tuple(header)
            self.rows = len(body)
            check_header(self.names, path, 1)
            self._columns = dict(zip(header, zip(*self._squared(body), strict=True), strict=False))

    def texts(self, name: str) -> Cells[str] | None:
        """Return a column as text."""
        column = self._columns.get(name)
        return None if column is None else known_texts(column)

    def numbers(self, name: str) -> Cells[float] | None:
        """Return a column as finite numbers."""
        cells = self.texts(name)
        return None if cells is None else parsed(cells)

    def milli(self, name: str) -> Cells[int] | None:
        """Return a column of numbers in whole thousandths."""
        cells = self.numbers(name)
        return None if cells is None else thousandths(cells)

    def lines(self) -> list[int] | None:
        """Return the line on which each row ends."""
        return [line for line, _ in _rows(self._content, self._path)][1:]

    def _squared(self, body: list[list[str]]) -> list[list[str]]:
        """Fill short rows up with empty cells; a row with too many is refused."""
        width = len(self.names)
        if set(map(len, body)) <= {width}:
            return body
        for line, row in zip(self.lines() or [], body, strict=True):
            if len(row) > width:
                raise InputError(
                    "too-many-cells",
                    f"the row has {len(row)} cells, but the header has {width}",
                    "quote cells that contain a comma",
                    file=self.file,
                    line=line,
                )
            row.extend([""] * (width - len(row)))
        return body


def read_plain_bytes(path: Path, size_max_bytes: int = SIZE_MAX_BYTES) -> bytes:
    """Return a file's bytes, unpacked where its name ends in .gz."""
    content = read_bytes(path, SIZE_MAX_BYTES)
    if not path.name.lower().endswith(".gz"):
        return content
    try:
        with gzip.open(io.BytesIO(content)) as stream:
            # A small file may unpack to more than memory holds; a read of that size would ask for
            # all of it at once.
            plain, size = list[bytes](), 0
            while size <= size_max_bytes and (piece := stream.read(_PIECE_BYTES)):
                plain.append(piece)
                size += len(piece)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise unreadable(path, str(error)) from None
    if size > size_max_bytes:
        raise InputError(
            "file-too-large",
            f"`{path}` unpacks to more than {size_max_bytes / 1e6:,.0f} MB",
            "split the trace by time",
            file=str(path),
        )
    return b"".join(plain)


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a file that are not blank, each with its line."""
    yield from _rows(read_plain_bytes(path), path)


def _all_rows(content: bytes, path: Path) -> list[list[str]]:
    """Return all rows at once, which is faster than one by one."""
    reader = csv.reader(_text(content), strict=True, skipinitialspace=True)
    try:
        rows = list(reader)
    except (csv.Error, UnicodeDecodeError) as error:
        raise _broken(error, path, reader.line_num) from None
    return [row for row in rows if row] if [] in rows else rows


def _rows(content: bytes, path: Path) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(_text(content), strict=True, skipinitialspace=True)
    try:
        for cells in reader:
            if cells:
                yield reader.line_num, cells
    except (csv.Error, UnicodeDecodeError) as error:
        raise _broken(error, path, reader.line_num) from None


def _text(content: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline="")


def _broken(error: csv.Error | UnicodeDecodeError, path: Path, line: int) -> InputError:
    if isinstance(error, UnicodeDecodeError):
        return InputError(
            "not-utf-8",
            f"`{path}` is not UTF-8 text",
            f"save it as UTF-8, or convert it: iconv -t utf-8 {path}",
            file=str(path),
            line=line + 1,
        )
    return InputError(
        "syntax",
        f"`{path}` is not CSV: {error}",
        "quote cells that contain commas, quotes or line breaks",
        file=str(path),
        line=line,
    )


@contextmanager
def _no_collection() -> Generator[None]:
    """Keep the collector from walking 100,000 rows again and again while they are made."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
