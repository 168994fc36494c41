"""Copy a journal while it is being written: consistent at one point in time, and verified."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from tenfold.journal.store import Store
from tenfold.model.errors import InputError, Unreachable


def back_up(store: Store, path: Path, *, force: bool = False) -> None:
    """Copy an SQLite journal at one point in time; the writer is not blocked.

    The file appears once it is complete, synced and verified. For PostgreSQL use its own tools,
    `pg_dump` or continuous archiving.
    """
    source = store.file
    if source is None:
        raise InputError(
            "backup-elsewhere",
            f"the journal `{store.name}` is in PostgreSQL, which has its own backup tools",
            "use `pg_dump --format=custom`, or continuous archiving to keep every event",
        )
    if path.exists() and not force:
        raise InputError(
            "file-exists",
            f"`{path}` already exists",
            "use another file name, or add `--force` to overwrite it",
            file=str(path),
        )
    partial = path.with_name(f".{path.name}.half")
    try:
        partial.unlink(missing_ok=True)
        # It contains the journal's data, so no other user may read it.
        partial.touch(mode=0o600)
        _copy(source, partial)
        check_copy(partial)
        _sync(partial)
        partial.replace(path)
        _sync(path.parent)
    except (OSError, sqlite3.Error) as error:
        raise Unreachable(
            "backup-failed",
            f"cannot copy the journal to `{path}`: {error}",
            "check free disk space and write permission",
        ) from None
    finally:
        partial.unlink(missing_ok=True)


def check_copy(path: Path) -> None:
    """Raise if a copy is not an intact database."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as copy:
            found = copy.execute("PRAGMA integrity_check").fetchone()[0]
    except sqlite3.Error as error:
        found = str(error)
    if found != "ok":
        raise InputError(
            "journal-damaged",
            f"`{path}` is not an intact journal: {found}",
            "use another backup",
            file=str(path),
        )


def shrink(store: Store) -> int:
    """Return free pages of an SQLite file to the disk; return how many bytes were freed.

    No other process may use the journal meanwhile.
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
            f"cannot shrink the journal `{file}`: {error}",
            "no data is lost; shrinking needs free disk space for a second copy",
        ) from None
    return before - file.stat().st_size


def _copy(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as live, closing(sqlite3.connect(target)) as copy:
        # All pages in one step are one point in time; in several, each write would restart the
        # copy.
        live.backup(copy, pages=-1)
        # Without a write-ahead file, a copy can be moved as a single file.
        copy.execute("PRAGMA journal_mode=DELETE")
        # A journal that lacks its last events is damaged, unless it says that it is a backup.
        copy.execute("UPDATE chain SET copied_seq = last_seq")
        copy.commit()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
