"""Move old events out of the journal while it is served, in its own thread.

It runs every hour. Events older than the retention move to bundles once there is a day's worth, a
small part at a time with a pause after each, so that neither the loop nor readers notice.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from msgspec import Struct
from sqlalchemy.exc import SQLAlchemyError

from tenfold.files.records.replay_bundle import BundleHeader
from tenfold.journal.compaction import DAY_MS, KEEP_DAYS, compact_once, oldest_ms
from tenfold.journal.retention import Export
from tenfold.journal.store import open_store
from tenfold.model.errors import TenfoldError
from tenfold.server.background.background import BackgroundTask

POLL_S = 3_600.0
PAUSE_S = 5.0
"""Between two parts."""
END_S = 30.0
_LOG = logging.getLogger("tenfold.server")


class RetentionSettings(Struct, frozen=True, kw_only=True):
    """How long events stay in the journal, and where older ones go."""

    folder: Path
    days: float = KEEP_DAYS
    interval_s: float = POLL_S
    pause_s: float = PAUSE_S


class Leader(Protocol):
    """Which epoch this control plane leads in."""

    @property
    def epoch(self) -> int | None:
        """The epoch; None if it does not lead."""
        ...


class JournalRetention(BackgroundTask):
    """Moves old events out of a journal while it runs; each part as a whole or not at all."""

    def __init__(
        self,
        journal: str,
        retention: RetentionSettings,
        header: BundleHeader,
        now_ms: Callable[[], int],
        lead: Leader | None = None,
    ) -> None:
        super().__init__("upkeep", END_S)
        self._lead = lead
        self._journal = journal
        self._settings = retention
        self._header = header
        self._now_ms = now_ms

    def once(self) -> list[Export]:
        """Move what is due, and return what was moved; a standby moves nothing."""
        epoch = None if self._lead is None else self._lead.epoch
        if self._lead is not None and epoch is None:
            return []
        older_ms = self._now_ms() - round(self._settings.days * DAY_MS)
        store = open_store(self._journal)
        moved: list[Export] = []
        try:
            oldest = oldest_ms(store)
            if oldest is None or oldest >= older_ms - DAY_MS:
                return moved
            while not self.stopping.is_set():
                part = compact_once(
                    store, self._settings.folder, older_ms, self._header, epoch=epoch
                )
                if part is None:
                    break
                moved.append(part)
                _LOG.info("moved events %d to %d to a bundle", part.first_seq, part.last_seq)
                self.stopping.wait(self._settings.pause_s)
        finally:
            store.close()
        return moved

    def work(self) -> None:
        """Run every hour."""
        while not self.stopping.wait(self._settings.interval_s):
            try:
                self.once()
            except (TenfoldError, OSError, SQLAlchemyError) as error:
                # Nothing is lost: the journal is only larger than it needs to be.
                _LOG.error("could not move old events out of the journal: %s", error)
