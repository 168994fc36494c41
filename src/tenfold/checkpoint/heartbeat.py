"""A file that shows that a run is alive, and how far it has come."""

import json
import os
import time
from pathlib import Path

from tenfold.checkpoint.errors import warn

_WIDTH = 79


class Heartbeat:
    """Writes `{"step", "at_ms"}` to a file; its time of change is the sign of life.

    Not synced: after a crash of the machine nobody asks. A beat that fails is logged once
    and does not stop the run: whoever waits for it will notice.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path) if path else None
        self._failed = False
        self._step: int | None = None

    def beat(self, step: int | None = None) -> None:
        """Write a beat; without a step, the last one known stands."""
        if self._path is None:
            return
        self._step = self._step if step is None else step
        line = json.dumps({"step": self._step, "at_ms": time.time_ns() // 1_000_000})
        try:
            # In place and always as long: no reader sees half, and a folder that only its
            # owner may write to is no obstacle.
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o644)
            try:
                os.pwrite(file, f"{line:<{_WIDTH}}\n".encode(), 0)
            finally:
                os.close(file)
        except OSError as error:
            if not self._failed:
                warn(f"no heartbeat to `{self._path}`: {error}")
            self._failed = True
