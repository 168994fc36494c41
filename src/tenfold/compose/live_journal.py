"""A journal as the control plane sees it: restore, append, and the witnesses that belong to it."""

from collections.abc import Sequence

from sqlalchemy import func, select

from tenfold.compose.control_plane import Restored
from tenfold.engine.loop import Witness
from tenfold.journal.append import JournalWriter, open_journal
from tenfold.journal.read import attempts_of, last_number, open_submissions
from tenfold.journal.rows import AttemptRow
from tenfold.journal.snapshots import Snapshotter, restore
from tenfold.journal.store import Store, open_store
from tenfold.journal.tables import EVENTS
from tenfold.live.book import Entry
from tenfold.model.events import Event
from tenfold.model.finding import Finding
from tenfold.model.ids import JobId
from tenfold.model.units import Millis

CRASHED = "crashed"


class LiveJournal:
    """A journal opened for writing; whoever wrote it before is shut out."""

    def __init__(self, where: str, holder: str, now_ms: int) -> None:
        self.store: Store = open_store(where)
        try:
            self._writer: JournalWriter = open_journal(self.store, holder, now_ms)
        except BaseException:
            self.store.close()
            raise
        self.warnings: tuple[Finding, ...] = ()

    def restore(self) -> Restored:
        """Return what the journal says is so now."""
        found = restore(self.store)
        self.warnings = found.warnings
        with self.store.reading() as connection:
            number = last_number(connection) + 1
            last_ms = connection.execute(select(func.max(EVENTS.c.at_ms))).scalar() or 0
        self._writer.close_cut(found.fleet, Millis(last_ms))
        return Restored(found.fleet, self._entries(), number, Millis(last_ms))

    def append(self, events: Sequence[Event]) -> None:
        """Return once the disk has these."""
        self._writer.append(events)

    def witnesses(self) -> list[Witness]:
        """Return what keeps the decision log and saves snapshots."""
        return [self._writer, Snapshotter(self._writer)]

    def close(self) -> None:
        """Write what still waits, and let go."""
        try:
            self._writer.flush()
        finally:
            self.store.close()

    def _entries(self) -> dict[JobId, Entry]:
        unfinished = open_submissions(self.store)
        tried = [row.id for row, _ in unfinished if row.attempts]
        attempts = attempts_of(self.store, tried)
        return {
            row.id: Entry(
                event.work,
                attempts=row.attempts,
                crashes=crashes_of(attempts.get(row.id, ())),
            )
            for row, event in unfinished
            if event.work is not None
        }


def crashes_of(attempts: Sequence[AttemptRow]) -> int:
    """Return how many of the latest attempts crashed, one after another."""
    count = 0
    for attempt in reversed(attempts):
        if attempt.reason == CRASHED:
            count += 1
        elif attempt.ended_ms is not None:
            break
    return count
