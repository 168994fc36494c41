"""The only writer of a journal: events are on disk when `append` returns.

A failed append changes nothing and may be retried. If the connection broke during a commit, the
next append checks what was written first, so no event is written twice.
"""

import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, func, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from tenfold.engine.decision_log import Cycle
from tenfold.engine.loop import Decider
from tenfold.fleet.fleet import Fleet
from tenfold.journal.integrity.chain import digest_at, link, read_chain
from tenfold.journal.integrity.head_file import Head, HeadFile
from tenfold.journal.integrity.table_sum import MASK
from tenfold.journal.leadership.lease import ALONE, Claim, check_epoch, take_lease
from tenfold.journal.read_tables import update_read_tables
from tenfold.journal.shared.texts import OTHERS_FROM, TextReader, TextSharing
from tenfold.journal.store import Store, last_seq, reason_of
from tenfold.journal.tables import CHAIN, CYCLES, EVENTS, SHARED_TEXTS
from tenfold.model.decision import Decision
from tenfold.model.errors import Refused, Unreachable
from tenfold.model.events import KIND_OF, ActionOrdered, Event, JobSubmitted
from tenfold.model.units import Millis

Row = dict[str, Any]

_LOG = logging.getLogger("tenfold.journal")
CYCLES_HELD_MOST = 256
"""Cycles are written with the next events, in one commit; a crash can lose this many."""

_END = "UPDATE chain SET last_seq = {0}, head = {0}, tables = (tables + {0}) & {1}"
"""Plain SQL: with each commit, building a statement would cost more than the statement."""


def open_journal(store: Store, holder: str, now_ms: int, claim: Claim = ALONE) -> "JournalWriter":
    """Become the writer of a journal; the previous writer is rejected from now on.

    Call this before `restore`: nothing is written by others after it. Raise if another control
    plane holds a lease.
    """
    return JournalWriter(store, take_lease(store, holder, now_ms, claim))


class JournalWriter:
    """The journal of the loop, which also records its decision log."""

    def __init__(self, store: Store, epoch: int) -> None:
        self.store = store
        self.epoch = epoch
        self._encoder = msgspec.json.Encoder()
        self._cycles: list[dict[str, Any]] = []
        self._in_doubt = False
        self._head_file: HeadFile | None = None
        self._end = _END.format("?" if store.dialect == "sqlite" else "%s", MASK)
        with store.reading() as connection:
            self.seq = last_seq(connection)
            """Number of the last event known to be on disk."""
            self.digest = _start(connection, self.seq)
            """Its digest."""
            self._cycle_number = _last_cycle(connection)

    @property
    def next_cycle(self) -> int:
        """Number of the next cycle."""
        return self._cycle_number + 1

    def append(self, events: Sequence[Event]) -> None:
        """Store events durably and in order, with the read tables derived from them, or raise."""
        if not events:
            return
        with self._transaction() as connection:
            fresh = events[self._count_written(connection, events) :] if self._in_doubt else events
            digest = self.digest
            if fresh:
                rows, texts = self._rows(fresh)
                digest = rows[-1]["chain"]
                if texts:
                    connection.execute(insert(SHARED_TEXTS), texts)
                connection.execute(insert(EVENTS), rows)
                numbered = list(enumerate(fresh, start=self.seq + 1))
                change = update_read_tables(connection, numbered) & MASK
                self._record_end(connection, numbered[-1][0], digest, change)
        self._in_doubt = False
        self.seq += len(fresh)
        self.digest = digest
        if self._head_file is not None:
            self._head_file.write(self.seq, digest)

    def record_head(self, path: Path) -> None:
        """Record the head of the chain in a file from now on; call this after `restore`."""
        self.close_head()
        with self.store.reading() as connection:
            chain = read_chain(connection)
        try:
            self._head_file = HeadFile(path, Head(chain.journal, self.seq, self.digest))
        except OSError as error:
            # The old file is still true; on a full disk, the events matter more.
            _LOG.warning("cannot write the head of the journal to `%s`: %s", path, error)
            return
        if chain.copied_seq is not None:
            # Only now: a restored backup is no longer recognised without this.
            with self._transaction() as connection:
                connection.execute(update(CHAIN).values(copied_seq=None))

    def close_head(self) -> None:
        """Sync and close the head file."""
        if self._head_file is not None:
            head_file, self._head_file = self._head_file, None
            head_file.close()

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        """Record the end of a cycle; its orders were recorded before."""
        waits, runs = len(fleet.pending), len(fleet.running)
        wake_ms = decision.wake_at_ms
        self.note(Cycle(now_ms, decider.name, fleet.version, waits, runs, (), wake_ms))

    def note(self, cycle: Cycle, after_seq: int | None = None) -> None:
        """Buffer the record of a cycle until the next events are written, or `flush`."""
        self._cycle_number += 1
        self._cycles.append(
            {
                "number": self._cycle_number,
                "after_seq": self.seq if after_seq is None else after_seq,
                "at_ms": cycle.at_ms,
                "decider": cycle.decider,
                "body": self._encoder.encode(cycle).decode(),
            }
        )
        if len(self._cycles) >= CYCLES_HELD_MOST:
            self.flush()

    def close_interrupted_cycle(self, fleet: Fleet, now_ms: Millis) -> None:
        """Close the cycle of a writer that was killed after it recorded its orders.

        `fleet` is the current state by the journal; the cycle is written with the next events.
        """
        ordered = EVENTS.c.kind == KIND_OF[ActionOrdered]
        last = select(func.max(CYCLES.c.after_seq)).scalar_subquery()
        query = select(func.count()).where(EVENTS.c.seq > func.coalesce(last, 0), ordered)
        with self.store.reading() as connection:
            unclosed = connection.execute(query).scalar()
        if unclosed:
            waits, runs = len(fleet.pending), len(fleet.running)
            self.note(Cycle(now_ms, "", fleet.version, waits, runs, is_cut=True))

    def flush(self) -> None:
        """Write buffered cycles: before a snapshot, an export, or shutdown."""
        if self._cycles:
            with self._transaction():
                pass

    @contextmanager
    def writing(self) -> Generator[Connection, None, None]:
        """Yield a transaction of this epoch, for rows other than events."""
        with self._transaction() as connection:
            yield connection

    @contextmanager
    def _transaction(self) -> Generator[Connection, None, None]:
        try:
            with self.store.writing() as connection:
                check_epoch(connection, self.epoch)
                cycles = self._cycles
                if self._in_doubt:
                    written = _last_cycle(connection)
                    cycles = [cycle for cycle in cycles if cycle["number"] > written]
                if cycles:
                    connection.execute(insert(CYCLES), cycles)
                yield connection
        except SQLAlchemyError as error:
            self._in_doubt = True
            raise Unreachable(
                "journal-unwritable",
                f"cannot write to the journal `{self.store.name}`: {reason_of(error)}",
                "no request was acknowledged; free disk space or restore the database connection",
            ) from error
        except Refused:
            raise
        except BaseException:
            self._in_doubt = True
            raise
        self._cycles.clear()

    def _record_end(self, connection: Connection, seq: int, digest: bytes, change: int) -> None:
        """Record the head of the chain and the sum of the read tables with the events."""
        connection.exec_driver_sql(self._end, (seq, digest, change))

    def _rows(self, events: Sequence[Event]) -> tuple[list[Row], list[Row]]:
        """Return the rows of events, and the texts that some of them share."""
        encode, digest = self._encoder.encode, self.digest
        rows: list[Row] = []
        sharing = TextSharing()
        is_alone = len(events) == 1
        for seq, event in enumerate(events, start=self.seq + 1):
            at_ms, kind, body = event.at_ms, KIND_OF[type(event)], encode(event)
            digest = link(digest, seq, at_ms, kind.encode(), body)
            row: Row = {"seq": seq, "at_ms": at_ms, "kind": kind, "chain": digest, "shared": None}
            rows.append(row)
            # Tested here: for most events, a call would cost more than the test.
            may_share = len(body) >= OTHERS_FROM or (
                type(event) is JobSubmitted and event.job.terms is not None
            )
            if is_alone or not may_share or not sharing.add(row, event, body):
                row["body"] = body.decode()
        return rows, sharing.texts

    def _count_written(self, connection: Connection, events: Sequence[Event]) -> int:
        """Return how many of these events were written by a commit that seemed to fail."""
        columns = select(EVENTS.c.seq, EVENTS.c.body, EVENTS.c.shared, EVENTS.c.chain)
        written = columns.where(EVENTS.c.seq > self.seq).order_by(EVENTS.c.seq)
        found, digest, texts = 0, self.digest, TextReader(connection)
        is_same = True
        for seq, own, shared, chain in connection.execute(written):
            found, digest = found + 1, chain
            body = texts.joined(seq, own, shared)
            is_same = (
                is_same
                and found <= len(events)
                and self._encoder.encode(events[found - 1])
                == (body.encode() if isinstance(body, str) else body)
            )
        if not is_same:
            raise Refused(
                "journal-ahead",
                f"the journal has {found} events after {self.seq} that were not applied",
                "restart the control plane: it reads them from the journal",
            )
        self.seq += found
        self.digest = digest
        return found


def _start(connection: Connection, seq: int) -> bytes:
    digest = digest_at(connection, seq)
    return read_chain(connection).start if digest is None else digest


def _last_cycle(connection: Connection) -> int:
    return connection.execute(select(func.max(CYCLES.c.number))).scalar() or 0
