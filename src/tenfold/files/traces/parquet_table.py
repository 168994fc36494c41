"""Read Parquet with Arrow, on one thread.

Arrow checks a damaged file where others end the process, and more threads would only
burn time on files of this size.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from tenfold.files.core.document import read_bytes
from tenfold.files.core.parquet import arrow_for
from tenfold.files.traces.cells import NUMBER_MAX, Cells, checked, known_texts, parsed, thousandths
from tenfold.files.traces.errors import check_header, unreadable

SIZE_MAX_BYTES = 2 * 1024**3
_DAMAGED = (OSError, ValueError, KeyError, NotImplementedError, MemoryError)


class ParquetTable:
    """A Parquet file; only what is wanted of it is read."""

    def __init__(self, path: Path, wanted: Sequence[str]) -> None:
        arrow, parquet = arrow_for(path)
        self.file = str(path)
        content = read_bytes(path, SIZE_MAX_BYTES)
        try:
            source = parquet.ParquetFile(arrow.BufferReader(content), pre_buffer=False)
            self.names = tuple(cast(list[str], source.schema_arrow.names))
            columns = [name for name in self.names if name in wanted]
            check_header(self.names, path, None)
            self._table = source.read(columns=columns, use_threads=False)
            self._table.validate(full=True)
        except _DAMAGED as error:
            raise unreadable(path, str(error)) from None
        self.rows = cast(int, source.metadata.num_rows)

    def texts(self, name: str) -> Cells[str] | None:
        """Return a column as text."""
        array = self._array(name)
        if array is None:
            return None
        values = cast(list[object], array.tolist())
        column = self._table.column(name)
        if column.null_count == 0 and str(column.type) in ("string", "large_string"):
            return known_texts(cast(list[str], values))
        return known_texts([_text(one) for one in values])

    def numbers(self, name: str) -> Cells[float] | None:
        """Return a column as finite numbers."""
        array = self._array(name)
        if array is None:
            return None
        if array.dtype.kind not in "iuf":
            texts = self.texts(name)
            return None if texts is None else parsed(texts)
        return checked(cast(list[float], array.astype("float64").tolist()))

    def milli(self, name: str) -> Cells[int] | None:
        """Return a column of numbers in whole thousandths."""
        array = self._array(name)
        if array is None:
            return None
        if array.dtype.kind in "iuf":
            scaled = (array.astype("float64") * 1_000).round()
            if (abs(scaled) <= NUMBER_MAX * 1_000).all():
                return Cells(cast(list[int], scaled.astype("int64").tolist()), False, {})
        cells = self.numbers(name)
        return None if cells is None else thousandths(cells)

    def lines(self) -> list[int] | None:
        """Return None: Parquet has rows, not lines."""
        return None

    def _array(self, name: str) -> Any | None:
        if name not in self._table.column_names:
            return None
        column = self._table.column(name)
        if column.null_count == len(column):
            return None
        if hasattr(column.type, "index_type"):
            # Arrow takes a gap for the first word of a dictionary, unless it is decoded.
            words = [chunk.dictionary_decode() for chunk in column.chunks]
            return np.concatenate([one.to_numpy(zero_copy_only=False) for one in words])
        return column.to_numpy(zero_copy_only=False)


def _text(value: object) -> str:
    # Arrow makes floats of whole numbers with gaps between them.
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value)
