"""The engine of one site, in a thread of its own: one that hangs delays no other.

The thread owns the executor: it makes it, gives it orders in turn, and collects what it reports.
Whoever asks never waits longer than a bound; how long the engine has owed an answer tells whether
the site is lost.
"""

import logging
import os
import select
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Event, Lock, Thread
from time import monotonic
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from tenfold.live.executor import (
    AttemptEnded,
    AttemptLost,
    AttemptStarted,
    AttemptState,
    Executor,
    FencedExecutor,
    Observation,
)
from tenfold.live.local.attempt.folder import ExecutorDir
from tenfold.model.errors import Refused, TenfoldError
from tenfold.model.ids import JobId, NodeId, SiteId

ASK_S = 1.0
"""Between two questions to an engine whether it is there. An assumption."""
RETRY_S = 0.5
"""After a failure, before the next try."""
END_S = 10.0
T = TypeVar("T")
_LOG = logging.getLogger("tenfold.live")


class AnsweringExecutor(Executor, Protocol):
    """An executor that can be asked whether its engine is there."""

    @property
    def waits_since_s(self) -> float | None:
        """Since when the engine owes an answer, on the monotonic clock; None if it does not."""
        ...

    def ask(self) -> None:
        """Ask the engine for a sign of life, without waiting."""
        ...


class SiteSettings(Struct, frozen=True, kw_only=True, eq=False):
    """One site: its engine and its nodes."""

    name: SiteId
    nodes: tuple[NodeId, ...]
    home: str
    """The folder of its executor."""
    make: Callable[[], AnsweringExecutor]
    lost_after_s: float
    """How long the engine may owe an answer before the site is lost."""
    opens_shells: bool = False
    """Whether its jobs run on this machine."""


class Awaited(Generic[T]):
    """What another thread will say."""

    def __init__(self) -> None:
        self._said = Event()
        self._lock = Lock()
        self._value: T | None = None
        self._is_late = False

    def set(self, value: T) -> bool:
        """Say it; return whether someone still waits for it."""
        with self._lock:
            self._value = value
            self._said.set()
            return not self._is_late

    def get(self, until_s: float) -> T | None:
        """Return it, or None if it is not said by this moment."""
        self._said.wait(max(until_s - monotonic(), 0.0))
        with self._lock:
            self._is_late = self._value is None
            return self._value


class SiteThread:
    """Carries out orders at one site, and collects what its engine reports."""

    def __init__(self, settings: SiteSettings, tell: Callable[[], None]) -> None:
        """`tell` is called, in any thread, once there is something to take."""
        self.settings = settings
        self.name = settings.name
        self.home = ExecutorDir(settings.home)
        self.stale: Refused | None = None
        """Why nothing is ordered any more: another control plane is the leader."""
        self._tell = tell
        self._lock = Lock()
        self.answers = False
        """Whether the engine answered since it was made, or since this was reset."""
        self._orders: deque[Callable[[AnsweringExecutor], None]] = deque()
        self._seen: deque[Observation] = deque()
        self._epoch: int | None = None
        self._is_fenced = False
        self._is_open = False
        """Whether observations are collected: from the first request for them."""
        self._busy_since_s: float | None = None
        """Since when this thread tries in vain to get on."""
        self._engine_since_s: float | None = None
        """Since when the engine has owed an answer."""
        self._is_failing = self._has_asked = False
        self._ask_at_s = 0.0
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._closing = Event()
        self._thread = Thread(target=self._run, name=f"site {self.name}", daemon=True)
        self._thread.start()

    @property
    def is_silent(self) -> bool:
        """Whether the engine has owed an answer for too long."""
        found = (self._busy_since_s, self._engine_since_s)
        since_s = min((one for one in found if one is not None), default=None)
        return since_s is not None and monotonic() - since_s >= self.settings.lost_after_s

    def put(self, order: Callable[[AnsweringExecutor], None]) -> None:
        """Leave an order; orders are carried out in turn."""
        with self._lock:
            self._orders.append(order)
        self._alarm()

    def fence(self, epoch: int) -> None:
        """Send this epoch with every order from now on."""
        self._epoch, self._is_fenced = epoch, False
        self._alarm()

    def begin(self) -> None:
        """Collect observations from now on."""
        if not self._is_open:
            self._is_open = True
            self._alarm()

    def take(self) -> list[Observation]:
        """Return what the engine reported since the last call."""
        with self._lock:
            seen, self._seen = list(self._seen), deque()
        return seen

    def attempts(self) -> Awaited[list[AttemptState]]:
        """Ask for every unsettled attempt; what it contains is not reported again."""
        awaited = Awaited[list[AttemptState]]()

        def ask(executor: AnsweringExecutor) -> None:
            states = executor.attempts()
            with self._lock:
                known = {(state.job_id, state.attempt): state for state in states}
                self._seen = deque(one for one in self._seen if not _is_in(one, known))
            if not awaited.set(states):
                # Nobody learned it from the states: it is reported.
                self._collect([state.end for state in states if state.end is not None])

        self.put(ask)
        return awaited

    def fenced(self) -> bool:
        """Tell whether the engine takes no orders of earlier epochs."""
        return self._is_fenced or self.stale is not None

    def close(self) -> None:
        """End the thread; jobs continue. `join` waits for it."""
        self._closing.set()
        self._alarm()

    def join(self, until_s: float) -> None:
        """Wait until the thread has ended, or until this moment."""
        self._thread.join(max(until_s - monotonic(), 0.0))

    def report(self, one: Observation) -> None:
        """Add an observation of our own to those of the engine."""
        self._collect([one])

    def _alarm(self) -> None:
        with self._lock:
            if self._wake >= 0:
                os.eventfd_write(self._wake, 1)

    def _run(self) -> None:
        executor: AnsweringExecutor | None = None
        try:
            while not self._closing.is_set():
                if self._busy_since_s is None:
                    self._busy_since_s = monotonic()
                try:
                    executor = executor or self.settings.make()
                    self._turn(executor)
                except Refused as refused:
                    self.stale = refused
                    self._tell()
                    return
                except Exception as error:
                    self._fail(error)
                    continue
                self._is_failing = False
                self._busy_since_s = None
                self._sleep(executor)
        finally:
            if executor is not None:
                executor.close()
            with self._lock:
                os.close(self._wake)
                self._wake = -1

    def _fail(self, error: Exception) -> None:
        """Note a failure, once until the next success; the engine may come back."""
        if not self._is_failing:
            _LOG.warning("site `%s` does not answer: %s", self.name, error)
        self._is_failing = True
        self._closing.wait(RETRY_S)

    def _sleep(self, executor: AnsweringExecutor) -> None:
        until_s = self._ask_at_s - monotonic()
        with suppress(OSError):
            files = [self._wake, executor.fileno()] if self._is_open else [self._wake]
            select.select(files, [], [], max(until_s, 0.0))
        with suppress(BlockingIOError):
            os.eventfd_read(self._wake)

    def _turn(self, executor: AnsweringExecutor) -> None:
        if self._epoch is not None and not self._is_fenced:
            epoch = self._epoch
            if isinstance(executor, FencedExecutor):
                executor.fence(epoch)
            self._is_fenced = epoch == self._epoch
        while self._orders and not self._closing.is_set():
            # Taken off only once it is done: an engine that does not answer is asked again.
            try:
                self._orders[0](executor)
            except (TenfoldError, OSError):
                raise
            except Exception:
                _LOG.exception("an order for site `%s` failed, and is dropped", self.name)
            with self._lock:
                self._orders.popleft()
        if self._is_open:
            self._collect(executor.observations())
        if monotonic() >= self._ask_at_s:
            self._ask_at_s = monotonic() + min(ASK_S, self.settings.lost_after_s / 4)
            executor.ask()
            self._has_asked = True
        self._engine_since_s = executor.waits_since_s
        if self._is_open and self._has_asked and self._engine_since_s is None:
            self.answers = True

    def _collect(self, seen: Sequence[Observation]) -> None:
        if seen:
            with self._lock:
                self._seen.extend(seen)
            self._tell()


def _is_in(one: Observation, known: Mapping[tuple[JobId, int], AttemptState]) -> bool:
    """Return whether the state of its attempt already contains what was observed."""
    if not isinstance(one, AttemptStarted | AttemptEnded | AttemptLost):
        return False
    state = known.get((one.job_id, one.attempt))
    is_start = isinstance(one, AttemptStarted)
    return state is not None and (state.end is not None or is_start)
