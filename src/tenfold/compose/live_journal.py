"""A journal as the control plane sees it: restore, append, and the witnesses that belong to it."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from sqlalchemy import func, select

from tenfold.compose.control_plane import Restored
from tenfold.engine.loop import Witness
from tenfold.journal.append import JournalWriter, open_journal
from tenfold.journal.integrity.head_file import check_head
from tenfold.journal.integrity.rebuild import check_read_tables
from tenfold.journal.leadership.lease import ALONE, Claim
from tenfold.journal.models.read import models
from tenfold.journal.policies import note_policy
from tenfold.journal.read import last_number, latest_keys, nodes, open_submissions
from tenfold.journal.snapshots import Snapshotter, restore
from tenfold.journal.store import Store, open_store
from tenfold.journal.tables import EVENTS
from tenfold.live.acceptance import NodeRecord
from tenfold.live.job_registry import JobEntry
from tenfold.live.keys import KEYS_KEPT_MAX
from tenfold.live.models.registry import ModelRegistry
from tenfold.model.events import Event
from tenfold.model.fleet.finding import Finding
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.submission import SubmitKey
from tenfold.model.policy.policy import Policy
from tenfold.model.units import Millis


class LiveJournal:
    """A journal opened for writing; any previous writer is fenced off.

    `head` is the file that keeps the head of the journal's digest chain.
    """

    def __init__(
        self,
        where: str,
        holder: str,
        now_ms: int,
        policy: Policy | None = None,
        *,
        head: Path | None = None,
        claim: Claim = ALONE,
    ) -> None:
        self.store: Store = open_store(where)
        self._head = head
        try:
            self._writer: JournalWriter = open_journal(self.store, holder, now_ms, claim)
            if policy is not None:
                note_policy(self._writer, policy)
        except BaseException:
            self.store.close()
            raise
        self.warnings: tuple[Finding, ...] = ()

    @property
    def epoch(self) -> int:
        """The epoch of this writer, which a later one makes stale."""
        return self._writer.epoch

    def restore(self) -> Restored:
        """Return what the journal says is so now."""
        checked = None
        if self._head is not None:
            checked = check_head(self.store, self._head)
        found = restore(self.store)
        rebuilt = check_read_tables(self._writer)
        self.warnings = (*found.warnings, *(one for one in (checked, rebuilt) if one is not None))
        if self._head is not None:
            self._writer.record_head(self._head)
        with self.store.reading() as connection:
            number = last_number(connection) + 1
            last_ms = connection.execute(select(func.max(EVENTS.c.at_ms))).scalar() or 0
        self._writer.close_interrupted_cycle(found.fleet, Millis(last_ms))
        keys = [
            (SubmitKey(TeamId(row.team), row.key, row.digest), row.number)
            for row in latest_keys(self.store, KEYS_KEPT_MAX)
        ]
        node_records = {
            row.id: NodeRecord(row.cause, row.acceptance, row.fields, row.state == "left")
            for row in nodes(self.store)
        }
        return Restored(
            found.fleet,
            self._entries(),
            number,
            Millis(last_ms),
            keys,
            node_records,
            self._models(),
        )

    def append(self, events: Sequence[Event]) -> None:
        """Return once the disk has these."""
        self._writer.append(events)

    def witnesses(self) -> list[Witness]:
        """Return what keeps the decision log and saves snapshots."""
        return [self._writer, Snapshotter(self._writer)]

    def flush(self) -> None:
        """Write what is buffered, so that readers see it."""
        self._writer.flush()

    def close(self) -> None:
        """Flush pending writes and close."""
        try:
            self._writer.flush()
        finally:
            self._writer.close_head()
            self.store.close()

    def _models(self) -> ModelRegistry:
        found = models(self.store)
        return ModelRegistry(
            [
                (row.body, row.stage, row.removed_ms is not None)
                for record in found
                for row in record.versions
            ],
            [
                (row.team, row.model, row.alias, row.number)
                for record in found
                for row in record.aliases
            ],
        )

    def _entries(self) -> dict[JobId, JobEntry]:
        return {
            row.id: JobEntry(
                event.run_spec,
                attempts=row.attempts,
                team=event.job.team,
                event_bytes=len(msgspec.json.encode(event)),
            )
            for row, event in open_submissions(self.store)
            if event.run_spec is not None
        }
