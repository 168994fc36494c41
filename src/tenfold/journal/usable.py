"""Check at startup that a journal can be written.

A writer waits half a minute for another one, which is right while it serves. At startup the error
comes sooner.
"""

from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from tenfold.journal.store import WAIT_MS, Store, reason_of
from tenfold.model.errors import Unreachable

LOCK_MS = 5_000
"""How long another process may hold the lock at startup: a commit takes milliseconds."""


def check_usable(store: Store) -> None:
    """Raise if the SQLite file is not writable or is locked by another process; change nothing."""
    if store.dialect != "sqlite":
        return
    try:
        raw = store.engine.raw_connection()
        try:
            _try_lock(raw.cursor())
        finally:
            raw.close()
    except SQLAlchemyError as error:
        raise _unusable(store, reason_of(error)) from None
    except Exception as error:
        # The driver's exceptions are not imported here.
        raise _unusable(store, str(error)) from None


def _try_lock(cursor: Any) -> None:
    cursor.execute(f"PRAGMA busy_timeout={LOCK_MS}")
    try:
        cursor.execute("BEGIN IMMEDIATE")
        cursor.execute("ROLLBACK")
    finally:
        cursor.execute(f"PRAGMA busy_timeout={WAIT_MS}")
        cursor.close()


def _unusable(store: Store, said: str) -> Unreachable:
    if "locked" in said:
        return Unreachable(
            "journal-locked",
            f"another process locks the journal `{store.name}` for {LOCK_MS // 1_000} s: {said}",
            "stop that process (`fuser` finds it) and start again; running jobs are not affected",
        )
    return Unreachable(
        "journal-unwritable",
        f"cannot write to the journal `{store.name}`: {said}",
        "make the file and its folder writable, or free disk space; running jobs are not affected",
    )
