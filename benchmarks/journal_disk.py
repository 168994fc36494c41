"""A disk that remembers every write, so that it can be broken off at any of them.

SQLite writes through a file layer that notes each write, truncation, sync and deletion. From
the notes the files are made as a crash after any of them could leave them: what was synced is
there; of what was not, any part may be, down to single sectors. The layer can also refuse a
write, as a full disk does.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple

import apsw

SECTOR = 512
PAGES_TO_CHECKPOINT = 40
"""Small, so that a short run checkpoints often: there the database file itself is written."""


class Op(NamedTuple):
    """One thing that was asked of the disk, or a mark of the caller's."""

    kind: Literal["write", "truncate", "sync", "delete", "mark"]
    file: str = ""
    at: int = 0
    """Where it was written, the size after a truncation, or the caller's number."""
    data: bytes = b""


class Disk:
    """Notes what passes, and can be told to refuse."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.refuses: Callable[[int], bool] = lambda number: False

    def mark(self, number: int) -> None:
        """Note that the caller has come so far."""
        self.ops.append(Op("mark", at=number))

    def take(self, op: Op) -> None:
        """Note an operation, or refuse it."""
        number = len(self.ops)
        self.ops.append(op)
        if self.refuses(number):
            raise apsw.FullError("no space left on device")


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._disk = disk
        self._name = os.path.basename(path) if path else ""

    def xWrite(self, data: bytes, offset: int) -> None:
        if self._name:
            self._disk.take(Op("write", self._name, offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        if self._name:
            self._disk.take(Op("truncate", self._name, newsize))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        if self._name:
            self._disk.take(Op("sync", self._name))
        super().xSync(flags)


class _Layer(apsw.VFS):
    def __init__(self, name: str, disk: Disk) -> None:
        self._disk = disk
        super().__init__(name, "", maxpathname=0)

    def xOpen(self, name: Any, flags: list[int]) -> _File:
        return _File(self._disk, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self._disk.take(Op("delete", os.path.basename(filename)))
        super().xDelete(filename, syncdir)


class _Cursor:
    """As much of a driver's cursor as SQLAlchemy asks for."""

    arraysize = 1
    rowcount = -1

    def __init__(self, connection: "apsw.Connection") -> None:
        self._connection = connection
        self.description: Any = None
        self.lastrowid = 0
        self._rows: Iterator[Any] = iter(())

    def execute(self, sql: str, values: Sequence[Any] = ()) -> "_Cursor":
        cursor = self._connection.cursor()
        self.description = None

        def seen(cursor: apsw.Cursor, sql: str, bindings: object) -> bool:
            told = cursor.get_description()
            self.description = [(one[0], *[None] * 6) for one in told] or None
            return True

        cursor.exec_trace = seen
        with _as_driver_errors():
            self._rows = iter(list(cursor.execute(sql, tuple(values))))
        self.lastrowid = self._connection.last_insert_rowid()
        self.rowcount = self._connection.changes()
        return self

    def executemany(self, sql: str, rows: Sequence[Sequence[Any]]) -> "_Cursor":
        with _as_driver_errors():
            self._connection.cursor().executemany(sql, [tuple(row) for row in rows])
        return self

    def fetchone(self) -> Any:
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        return list(self._rows)

    def fetchmany(self, size: int = 1) -> list[Any]:
        return list(islice(self._rows, size))

    def close(self) -> None:
        self._rows = iter(())


class _Connection:
    isolation_level: Any = None

    def __init__(self, path: Path, layer: str, synchronous: str) -> None:
        self._connection = apsw.Connection(str(path), vfs=layer)
        self._synchronous = synchronous
        self._connection.pragma("wal_autocheckpoint", PAGES_TO_CHECKPOINT)

    def cursor(self) -> Any:
        return _Pragmatic(self._connection, self._synchronous)

    def create_function(self, name: str, count: int, called: Any, **_: object) -> None:
        self._connection.create_scalar_function(name, called, count)

    def commit(self) -> None:
        self._end("COMMIT")

    def rollback(self) -> None:
        self._end("ROLLBACK")

    def close(self) -> None:
        self._connection.close()

    def _end(self, word: str) -> None:
        if self._connection.in_transaction:
            with _as_driver_errors():
                self._connection.execute(word)


class _Pragmatic(_Cursor):
    """Lets a test take away the promise that a commit is on the disk."""

    def __init__(self, connection: apsw.Connection, synchronous: str) -> None:
        super().__init__(connection)
        self._synchronous = synchronous

    def execute(self, sql: str, values: Sequence[Any] = ()) -> _Cursor:
        if sql.startswith("PRAGMA synchronous="):
            sql = f"PRAGMA synchronous={self._synchronous}"
        return super().execute(sql, values)


@contextmanager
def noted_disk(path: Path, synchronous: str = "FULL") -> Iterator[tuple[Disk, Callable[[], Any]]]:
    """Give a disk and the way to connect to a database on it."""
    disk, name = Disk(), f"noted-{path}"
    layer = _Layer(name, disk)
    try:
        yield disk, lambda: _Connection(path, name, synchronous)
    finally:
        layer.unregister()


@contextmanager
def _as_driver_errors() -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise sqlite3.OperationalError(str(error)) from error


class _Kept:
    """One file: what is surely on the disk, and what was written since."""

    def __init__(self) -> None:
        self.durable: bytearray | None = None
        self.since: list[Op] = []

    def left(self, dice: Random) -> bytes | None:
        """Return what a crash leaves of it: any part of what was not synced."""
        way = dice.randrange(4)
        if self.durable is None and (way == 0 or not self.since):
            return None
        content = bytearray(self.durable or b"")
        for op in self.since:
            if way == 1 or (way > 1 and dice.random() < 0.5):
                _change(content, op, dice if way == 3 else None)
        return bytes(content)


def after_crash(ops: Sequence[Op], dice: Random) -> dict[str, bytes]:
    """Return the files as a crash after these operations may leave them."""
    files: dict[str, _Kept] = {}
    for op in ops:
        if op.kind == "mark":
            continue
        kept = files.setdefault(op.file, _Kept())
        if op.kind == "sync":
            kept.durable = kept.durable or bytearray()
            for change in kept.since:
                _change(kept.durable, change)
            kept.since = []
        elif op.kind == "delete":
            del files[op.file]
        else:
            kept.since.append(op)
    left = {name: kept.left(dice) for name, kept in files.items()}
    return {name: content for name, content in left.items() if content is not None}


def _change(content: bytearray, op: Op, torn: Random | None = None) -> None:
    if op.kind == "truncate":
        del content[op.at :]
        return
    for start in range(0, len(op.data), SECTOR):
        if torn is not None and torn.random() < 0.5:
            continue
        part = op.data[start : start + SECTOR]
        at = op.at + start
        if len(content) < at:
            content.extend(bytes(at - len(content)))
        content[at : at + len(part)] = part
