"""Group commit: one thread makes the changes of many requests durable with one sync.

Each change runs in a savepoint of its own, so one that fails takes no other with it. Processes
take turns through a file lock: SQLite's own waiting is unfair and sleeps between attempts.
"""

import asyncio
import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from tenfold.objects.catalog.schema import connect

BATCH_MAX = 512

T = TypeVar("T")
_Change = Callable[[sqlite3.Connection], Any]
_Job = tuple[_Change, asyncio.AbstractEventLoop, "asyncio.Future[Any]"]
_Outcome = tuple[_Job, Any, BaseException | None]


class Writer:
    """Makes changes in the order in which they arrive; a result means that it is durable."""

    def __init__(self, path: Path) -> None:
        self._connection = connect(path)
        self._lock = os.open(
            path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self.commits = 0
        self.changes = 0
        self._thread = threading.Thread(target=self._run, name="catalog-writer", daemon=True)
        self._thread.start()

    async def write(self, change: Callable[[sqlite3.Connection], T]) -> T:
        """Run `change` in a transaction; return its result once it is on disk."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self._jobs.put((change, loop, done))
        # A caller that gives up leaves its change to run: it may be committed already.
        return await asyncio.shield(done)

    def close(self) -> None:
        """Make every change that was handed over, then stop."""
        self._jobs.put(None)
        self._thread.join()
        self._connection.close()
        os.close(self._lock)

    def _run(self) -> None:
        while (first := self._jobs.get()) is not None:
            batch, is_last = self._batch(first)
            _deliver(self._commit(batch))
            if is_last:
                return

    def _batch(self, first: _Job) -> tuple[list[_Job], bool]:
        batch = [first]
        while len(batch) < BATCH_MAX:
            try:
                job = self._jobs.get_nowait()
            except Empty:
                break
            if job is None:
                return batch, True
            batch.append(job)
        return batch, False

    def _commit(self, batch: Sequence[_Job]) -> list[_Outcome]:
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            outcomes = [self._change(job) for job in batch]
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            return [(job, None, error) for job in batch]
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)
        self.commits += 1
        self.changes += len(batch)
        return outcomes

    def _change(self, job: _Job) -> _Outcome:
        connection = self._connection
        connection.execute("SAVEPOINT change")
        try:
            result = job[0](connection)
        except Exception as error:
            if not connection.in_transaction:
                # SQLite gave up the whole transaction: the disk is full, for example.
                raise
            connection.execute("ROLLBACK TO change")
            connection.execute("RELEASE change")
            return job, None, error
        connection.execute("RELEASE change")
        return job, result, None


def _deliver(outcomes: Sequence[_Outcome]) -> None:
    """Hand the results to their loops, with one call for each loop."""
    loops = {id(job[1]): job[1] for job, _, _ in outcomes}
    for loop in loops.values():
        mine = [outcome for outcome in outcomes if outcome[0][1] is loop]
        if not loop.is_closed():
            loop.call_soon_threadsafe(_settle, mine)


def _settle(outcomes: Sequence[_Outcome]) -> None:
    for (_, _, done), result, error in outcomes:
        if done.done():
            continue
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)
