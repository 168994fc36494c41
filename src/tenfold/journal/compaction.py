"""Keep a journal to the last so many days: older events move into bundles, part by part.

A part is small enough that neither reading it nor taking it out holds up the loop. It ends where
a cycle was closed, so that each part replays. This is done beside the writer and not by it: the
epoch is checked in the transaction, and a writer that took over meanwhile makes it fail.
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
"""Days that stay in the journal where nothing else is said: a month can be asked about at once."""
DAY_MS = 86_400_000
PART = 50_000
"""Events in one bundle: reading that many again takes about a second."""
LOCK = ".compacting"


def compact_once(
    store: Store,
    folder: Path,
    older_ms: int,
    header: BundleHeader | None = None,
    *,
    part: int = PART,
) -> Export | None:
    """Move the oldest part of what happened before `older_ms`; None where nothing is left to."""
    with store.reading() as connection:
        last = _part_ends(connection, older_ms, part)
        epoch = connection.execute(select(LEASE.c.epoch)).scalar()
    if last is None or epoch is None:
        return None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            "history-unusable",
            f"old events cannot be moved to `{folder}`: {error.strerror or error}",
            "check the disk and who may write there",
            file=str(folder),
        ) from None
    with _exclusive(folder):
        return export_events(JournalWriter(store, epoch), folder, last, header)


def oldest_ms(store: Store) -> int | None:
    """Return when the first event that was not moved out happened; None where there is none."""
    with store.reading() as connection:
        return _at(connection, exported_until(connection) + 1)


def _part_ends(connection: Connection, older_ms: int, part: int) -> int | None:
    """Return the last event of the next part, after which a cycle was closed; None if none is.

    The newest event always stays: cycles that follow it may not be written yet.
    """
    exported, newest = exported_until(connection), last_seq(connection)
    last = _last_before(connection, older_ms, exported, newest - 1)
    after = CYCLES.c.after_seq
    most = min(last, exported + part)
    within = select(func.max(after)).where(after > exported, after <= most)
    found = connection.execute(within).scalar()
    if found is None:
        # One moment may bring more events than a part holds.
        beyond = select(func.min(after)).where(after > most, after <= last)
        found = connection.execute(beyond).scalar()
    return found


def _last_before(connection: Connection, older_ms: int, low: int, high: int) -> int:
    """Return the last event in (low, high] that happened before a moment, or `low`.

    Time never goes back from one event to the next, and none is missing in between.
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
    """Keep others from moving events to this folder at the same time."""
    file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Refused(
                "compacting-already",
                f"old events are being moved to `{folder}` already",
                "wait for it to end; the control plane does so by itself",
            ) from None
        yield
    finally:
        os.close(file)
