"""Read when jobs last saved, in threads: the loop reads no file that a job wrote.

The end of an attempt waits for its answer. A file system that does not respond holds up the jobs
that save there, each for a limited time, and no others.
"""

import os
from collections import deque
from contextlib import suppress
from threading import Lock, Thread

from msgspec import Struct

from tenfold.live.attempts.active import CheckpointTime
from tenfold.live.executor import AttemptEnded, AttemptLost
from tenfold.model.job.job import Job
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.units import SECOND, Millis

AttemptOver = AttemptEnded | AttemptLost
READ_MS_MOST = Millis(5 * SECOND)
"""After this the time of the last checkpoint counts as unknown."""
THREADS_MOST = 8
"""Threads that may wait for a file system at the same time."""


class _Question(Struct, eq=False):
    observed: AttemptOver
    job: Job
    run_spec: RunSpec
    until_ms: Millis
    is_answered: bool = False
    """Read by the loop only."""


class CheckpointReader:
    """Questions of one loop. All methods are called by the loop; `saved_at` by threads."""

    def __init__(self, saved_at: CheckpointTime) -> None:
        self._saved_at = saved_at
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._lock = Lock()
        self._queue: deque[_Question] = deque()
        self._answers: deque[tuple[_Question, Millis | None]] = deque()
        self._open: dict[int, _Question] = {}
        self._threads = 0
        self._is_closed = False

    def fileno(self) -> int:
        """Return a descriptor that is readable while `answers` has something to return."""
        return self._wake

    def next_deadline_ms(self) -> Millis | None:
        """Return when the oldest question expires; None if there is none."""
        return next((one.until_ms for one in self._open.values()), None)

    def ask(self, observed: AttemptOver, job: Job, run_spec: RunSpec, now_ms: Millis) -> None:
        """Have a thread read when the job of an ended attempt last saved."""
        question = _Question(observed, job, run_spec, Millis(now_ms + READ_MS_MOST))
        self._open[id(question)] = question
        with self._lock:
            self._queue.append(question)
            if self._threads >= THREADS_MOST:
                return
            self._threads += 1
        Thread(target=self._work, name="tenfold-checkpoints", daemon=True).start()

    def answers(self, now_ms: Millis) -> list[tuple[AttemptOver, Millis | None]]:
        """Return new answers; a question that expired has none."""
        with suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        found: list[tuple[AttemptOver, Millis | None]] = []
        while self._answers:
            question, saved_ms = self._answers.popleft()
            if self._open.pop(id(question), None) is not None:
                found.append((question.observed, saved_ms))
        for question in [one for one in self._open.values() if one.until_ms <= now_ms]:
            question.is_answered = True
            del self._open[id(question)]
            found.append((question.observed, None))
        return found

    def close(self) -> None:
        """Drop all questions. A thread that hangs ends with the process."""
        with self._lock:
            self._is_closed = True
            self._queue.clear()
            os.close(self._wake)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._queue:
                    self._threads -= 1
                    return
                question = self._queue.popleft()
            if question.is_answered:
                continue
            saved_ms = None
            with suppress(Exception):
                # Whatever a job left there is its own problem: without a time it has not saved.
                saved_ms = self._saved_at(question.job, question.run_spec)
            with self._lock:
                if self._is_closed:
                    return
                self._answers.append((question, saved_ms))
                os.eventfd_write(self._wake, 1)
