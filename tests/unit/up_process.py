"""A real `tenfold up` for tests: a process of its own, on a port that is free."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from patience import HANG_S

LAST_LINE = "Ctrl-C stops the control plane"


class Up:
    """Starts, kills and stops control planes in one state folder."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.process: subprocess.Popen[str] | None = None

    def start(self, *options: str) -> list[str]:
        """Start one; return what it says once it answers."""
        words = [sys.executable, "-m", "tenfold", "up", "--listen", "127.0.0.1:0", *options]
        kept = {key: value for key, value in os.environ.items() if not key.startswith("TENFOLD_")}
        self.process = subprocess.Popen(
            words,
            env={**kept, "TENFOLD_HOME": str(self.home)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout is not None, "it was asked for"
        said: list[str] = []
        for line in self.process.stdout:
            said.append(line.rstrip())
            if line.startswith(LAST_LINE):
                return said
        raise AssertionError("\n".join(said))

    def kill(self) -> None:
        """Kill it as a machine would that runs out of memory."""
        self._signal(signal.SIGKILL)

    def interrupt(self) -> str:
        """Stop it as Ctrl-C does; return what it says."""
        return self._signal(signal.SIGINT)

    def _signal(self, number: signal.Signals) -> str:
        assert self.process is not None, "it was started"
        self.process.send_signal(number)
        said, _ = self.process.communicate(timeout=HANG_S)
        self.process = None
        return said


@contextmanager
def running(home: Path, *options: str) -> Generator[Up]:
    """Yield a control plane that runs until the end, for all tests of a module."""
    made = Up(home)
    made.start(*options)
    yield made
    made.interrupt()


def commands_find(up: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands of this process talk to a control plane, whatever the environment says."""
    for name in ("TENFOLD_URL", "TENFOLD_TOKEN", "TENFOLD_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TENFOLD_STATE_DIR", str(up.home))
