"""Checkpoints for a training loop: when to save, when to stop, and heartbeats.

    with Saver("checkpoints", every_s=600) as saver:
        begun = saver.load()
        for step in range(begun.step if begun else 0, steps):
            train(step)
            saver.beat(step + 1)
            if saver.due(step + 1):
                saver.save(step + 1, state())
            if saver.asked_to_stop:
                break

Works without Tenfold. Under Tenfold, the environment sets where and how often.
"""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from tenfold.checkpoint.errors import CheckpointError, cannot_write, warn
from tenfold.checkpoint.fence import attempt_here, only_writer
from tenfold.checkpoint.heartbeat import Heartbeat
from tenfold.checkpoint.loading import Checkpoint, load
from tenfold.checkpoint.saving import How, save

EVERY_S = 600.0
"""Default seconds between checkpoints: an assumption, not a measurement."""

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGUSR1)
_Handler = Callable[[int, FrameType | None], object] | int | None


class Saver:
    """Saves to one folder, from one process.

    The environment overrides arguments: `TENFOLD_CHECKPOINT_DIR` over `folder`, and
    `TENFOLD_CHECKPOINT_EVERY_S` over `every_s`, so the job file controls where and how often a job
    saves.
    """

    def __init__(
        self,
        folder: str | Path | None = None,
        *,
        every_s: float = EVERY_S,
        keep: int = 2,
        rank: int = 0,
        ranks: int = 1,
        how: How | None = None,
    ) -> None:
        folder_name = os.environ.get("TENFOLD_CHECKPOINT_DIR") or folder
        if not folder_name:
            raise CheckpointError(
                code="checkpoint-wrong-argument",
                message="no checkpoint folder is set",
                hint="pass `folder`, or set TENFOLD_CHECKPOINT_DIR",
            )
        self.folder = Path(folder_name)
        self.every_s = _every_s(every_s)
        self.asked_to_stop = False
        self._keep = keep
        self._rank, self._ranks = rank, ranks
        self._how = how or How()
        self._heartbeat = Heartbeat(os.environ.get("TENFOLD_HEARTBEAT", ""))
        self._saved_step: int | None = None
        self._since: float | None = None
        self._before: dict[signal.Signals, _Handler] = {}
        self._handle_signals()

    def load(self) -> Checkpoint | None:
        """Return the newest valid checkpoint, and fence off earlier attempts.

        From now on, earlier attempts of this job can no longer save.
        """
        if self._rank == 0:
            self._fence_earlier()
        found = load(self.folder, rank=self._rank, ranks=self._ranks, files=self._how.files)
        self._saved_step = found.step if found else None
        return found

    def due(self, step: int, now: float | None = None) -> bool:
        """Return whether to save now: the interval has passed, or a stop was requested.

        `now` is in seconds on any monotonic clock. The first call starts the interval. A step that
        is already saved is never due. Clocks differ between ranks: with several, call it on one and
        broadcast the answer.
        """
        now = time.monotonic() if now is None else now
        if self._since is None:
            self._since = now
        if step == self._saved_step:
            return False
        return self.asked_to_stop or now - self._since >= self.every_s

    def save(self, step: int, values: object, now: float | None = None) -> Path:
        """Write a checkpoint, and restart the interval at its end, so a slow disk does not save all
        day."""
        path = save(
            self.folder,
            step,
            values,
            keep=self._keep,
            rank=self._rank,
            ranks=self._ranks,
            how=self._how,
        )
        self._saved_step = step
        self._since = time.monotonic() if now is None else now
        self.beat(step)
        return path

    def beat(self, step: int | None = None) -> None:
        """Write a heartbeat with the current step; never fails.

        Writes to the file in `TENFOLD_HEARTBEAT`, if set.
        """
        self._heartbeat.beat(step)

    def close(self) -> None:
        """Restore the signal handlers."""
        for notice, handler in self._before.items():
            signal.signal(notice, signal.SIG_DFL if handler is None else handler)
        self._before = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _fence_earlier(self) -> None:
        attempt = attempt_here() if self._how.attempt is None else self._how.attempt
        try:
            with only_writer(self._how.files, self.folder, attempt, self._how.wait_s):
                pass
        except OSError as error:
            raise cannot_write(self.folder, error) from error

    def _handle_signals(self) -> None:
        try:
            for notice in _STOP_SIGNALS:
                self._before[notice] = signal.signal(notice, self._on_signal)
        except ValueError:
            # Python allows signal handlers only in the main thread.
            warn("not in the main thread: stop signals will not be noticed")

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.asked_to_stop = True
        before = self._before.get(signal.Signals(number))
        if callable(before) and before is not signal.default_int_handler:
            before(number, frame)


def _every_s(given: float) -> float:
    value = os.environ.get("TENFOLD_CHECKPOINT_EVERY_S")
    try:
        every_s = float(value) if value else float(given)
    except ValueError:
        every_s = -1.0
    if not every_s >= 0:
        raise CheckpointError(
            code="checkpoint-wrong-argument",
            message=f"`{value or given}` is not a number of seconds between checkpoints",
            hint="set seconds, such as 600, in TENFOLD_CHECKPOINT_EVERY_S",
        )
    return every_s
