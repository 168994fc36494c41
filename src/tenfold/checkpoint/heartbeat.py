"""Heartbeat file: shows that a run is alive, and its progress."""

import json
import os
import time
from pathlib import Path

from tenfold.checkpoint.errors import warn

_WIDTH = 79


class Heartbeat:
    """Writes `{"step", "at_ms"}` to a file; its modification time is the heartbeat.

    Not synced: it is irrelevant after a machine crash. A failed write is logged once and does not
    stop the run: the watcher will notice.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path) if path else None
        self._failed = False
        self._step: int | None = None

    def beat(self, step: int | None = None) -> None:
        """Write a heartbeat; without a step, the last known one is used."""
        if self._path is None:
            return
        self._step = self._step if step is None else step
        line = json.dumps({"step": self._step, "at_ms": time.time_ns() // 1_000_000})
        try:
            # In place and with a fixed length: readers never see a partial line, and the folder
            # need not be writable.
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o644)
            try:
                os.pwrite(file, f"{line:<{_WIDTH}}\n".encode(), 0)
            finally:
                os.close(file)
        except OSError as error:
            if not self._failed:
                warn(f"cannot write heartbeat to `{self._path}`: {error}")
            self._failed = True
