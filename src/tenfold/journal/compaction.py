"""Keep only the last days in a journal: older events move into bundles, part by part.

A part is small enough that neither reading nor deleting it blocks the loop. It ends where a cycle
was closed, so each part can be replayed. It runs beside the writer: the epoch is checked in the
transaction, and it fails if another writer took over.
"""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, func, select

from tenfold.files.records.replay_bundle import BundleHeader
from tenfold.journal.append import JournalWriter
from tenfold.journal.retention import Export, export_events
from tenfold.journal.snapshots import exported_until
from tenfold.journal.store import Store, last_seq
from tenfold.journal.tables import CYCLES, EVENTS, LEASE
from tenfold.model.errors import InputError, Refused

KEEP_DAYS = 30
"""Days kept in the journal by default."""
DAY_MS = 86_400_000
PART = 50_000
"""Events per bundle: reading this many takes about a second."""
LOCK = ".compacting"


def compact_once(
    store: Store,
    folder: Path,
    older_ms: int,
    header: BundleHeader | None = None,
    *,
    part: int = PART,
    epoch: int | None = None,
) -> Export | None:
    """Move the oldest part of the events before `older_ms`; None if there is none to move.

    It is refused if another control plane is the leader by now than that of `epoch`, or than now.
    """
    with store.reading() as connection:
        last = _part_ends(connection, older_ms, part)
        epoch = epoch or connection.execute(select(LEASE.c.epoch)).scalar()
    if last is None or epoch is None:
        return None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            "history-unusable",
            f"cannot move old events to `{folder}`: {error.strerror or error}",
            "check free disk space and write permission",
            file=str(folder),
        ) from None
    with _exclusive(folder):
        return export_events(JournalWriter(store, epoch), folder, last, header)


def oldest_ms(store: Store) -> int | None:
    """Return the time of the first event in the journal; None if it is empty."""
    with store.reading() as connection:
        return _at(connection, exported_until(connection) + 1)


def _part_ends(connection: Connection, older_ms: int, part: int) -> int | None:
    """Return the last event of the next part, where a cycle was closed; None if there is none.

    The newest event always stays: cycles that follow it may not be written yet.
    """
    exported, newest = exported_until(connection), last_seq(connection)
    last = _last_before(connection, older_ms, exported, newest - 1)
    after = CYCLES.c.after_seq
    most = min(last, exported + part)
    within = select(func.max(after)).where(after > exported, after <= most)
    found = connection.execute(within).scalar()
    if found is None:
        # One point in time may have more events than fit in a part.
        beyond = select(func.min(after)).where(after > most, after <= last)
        found = connection.execute(beyond).scalar()
    return found


def _last_before(connection: Connection, older_ms: int, low: int, high: int) -> int:
    """Return the last event in (low, high] before a time, or `low`.

    Event times never decrease and numbers have no gaps.
    """
    while low < high:
        middle = (low + high + 1) // 2
        at_ms = _at(connection, middle)
        if at_ms is not None and at_ms < older_ms:
            low = middle
        else:
            high = middle - 1
    return low


def _at(connection: Connection, seq: int) -> int | None:
    return connection.execute(select(EVENTS.c.at_ms).where(EVENTS.c.seq == seq)).scalar()


@contextmanager
def _exclusive(folder: Path) -> Generator[None, None, None]:
    """Hold a lock on the folder against other compactions."""
    file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Refused(
                "compacting-already",
                f"another process is already moving old events to `{folder}`",
                "wait for it to finish; a running control plane compacts by itself",
            ) from None
        yield
    finally:
        os.close(file)
