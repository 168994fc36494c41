"""Whether a journal can be written now: asked once, before anybody is told where to ask.

A writer waits for half a minute for another, which is right while it serves. Whoever starts a
control plane is told sooner.
"""

from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from tenfold.journal.store import WAIT_MS, Store, reason_of
from tenfold.model.errors import Unreachable

LOCK_MS = 5_000
"""How long another may hold the journal at the start: a commit takes milliseconds."""


def check_usable(store: Store) -> None:
    """Raise where SQLite's file may not be written, or another program holds it; change nothing."""
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
        # What the driver raises is not known here by name, nor need it be.
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
            f"another program has held the journal `{store.name}` for {LOCK_MS // 1_000} s: {said}",
            "end what writes it (`fuser` names it), and start again; jobs that run go on meanwhile",
        )
    return Unreachable(
        "journal-unwritable",
        f"the journal `{store.name}` cannot be written: {said}",
        "let this user write the file and its folder, or free the disk; jobs that run go on",
    )
