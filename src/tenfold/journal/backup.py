"""Copy a journal while it is written: one moment of it, whole and checked."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from tenfold.journal.store import Store
from tenfold.model.errors import InputError, Unreachable


def back_up(store: Store, path: Path, *, force: bool = False) -> None:
    """Copy an SQLite journal as it is at one moment; the writer goes on meanwhile.

    The file appears when it is whole, on the disk and checked. For PostgreSQL use its own
    tools, `pg_dump` or continuous archiving: they know more than a copy made from here.
    """
    source = store.file
    if source is None:
        raise InputError(
            "backup-elsewhere",
            f"the journal `{store.name}` is backed up by the database that holds it",
            "use `pg_dump --format=custom`, or continuous archiving for every last event",
        )
    if path.exists() and not force:
        raise InputError(
            "file-exists",
            f"`{path}` exists already",
            "name another file, or say that it may be written over",
            file=str(path),
        )
    partial = path.with_name(f".{path.name}.half")
    try:
        partial.unlink(missing_ok=True)
        # It holds what the journal holds, so nobody else may read it either.
        partial.touch(mode=0o600)
        _copy(source, partial)
        check_copy(partial)
        _sync(partial)
        partial.replace(path)
        _sync(path.parent)
    except (OSError, sqlite3.Error) as error:
        raise Unreachable(
            "backup-failed",
            f"the journal could not be copied to `{path}`: {error}",
            "check the room on the disk and who may write there",
        ) from None
    finally:
        partial.unlink(missing_ok=True)


def check_copy(path: Path) -> None:
    """Raise where a copy is not a whole database."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as copy:
            found = copy.execute("PRAGMA integrity_check").fetchone()[0]
    except sqlite3.Error as error:
        found = str(error)
    if found != "ok":
        raise InputError(
            "journal-damaged",
            f"`{path}` is not a whole journal: {found}",
            "use another backup",
            file=str(path),
        )


def shrink(store: Store) -> int:
    """Give what is free in an SQLite file back to the disk; return how many bytes.

    Nobody else may use the journal meanwhile.
    """
    file = store.file
    if file is None:
        return 0
    before = file.stat().st_size
    store.close()
    try:
        with closing(sqlite3.connect(file)) as database:
            database.execute("VACUUM")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        raise Unreachable(
            "journal-unwritable",
            f"the journal `{file}` could not be made smaller: {error}",
            "nothing is lost; it takes as much room again on the disk while it is done",
        ) from None
    return before - file.stat().st_size


def _copy(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as live, closing(sqlite3.connect(target)) as copy:
        # All pages in one step are one moment; in several, each write would begin it anew.
        live.backup(copy, pages=-1)
        # Without a write-ahead file beside it, a copy can be moved as one file.
        copy.execute("PRAGMA journal_mode=DELETE")


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
