"""A server of ours as a child process, started again when it ends.

It ends with the control plane, even if that is killed, so its port is free for the next one. While
it ends it finishes the answers under way.
"""

import logging
import os
import subprocess
import sys
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tenfold.fleet.retries import back_off_ms
from tenfold.model.units import SECOND
from tenfold.server.background.background import BackgroundTask

LOOK_S = 0.1
_START = (
    "from tenfold.live.local.processes import end_with_parent; end_with_parent();"
    " from tenfold.cli.main import main; raise SystemExit(main())"
)
_LOG = logging.getLogger("tenfold.server")


class ChildProcess(BackgroundTask):
    """Runs a command while it runs. `prefixes` begin the lines that say where it serves."""

    def __init__(
        self, name: str, prefixes: tuple[str, str], end_s: float, state_dir: Path, log: Path
    ) -> None:
        super().__init__(name, end_s)
        self._prefixes, self._end_s = prefixes, end_s
        self._state_dir, self._log = state_dir, log
        self.url = ""
        """Where it serves; empty while it does not."""
        self.admin = ""
        """Where it says its load."""

    @abstractmethod
    def words(self) -> Sequence[str]:
        """Return the command to run; empty while it cannot run yet."""

    def work(self) -> None:
        """Start it again and again."""
        failures = 0
        while not self.stopping.wait(back_off_ms(failures) / SECOND or LOOK_S):
            was_ready = False
            try:
                words = self.words() if self.may_run() else ()
                if not words:
                    continue
                was_ready = self._run(words)
            except OSError:
                _LOG.exception("the %s could not be started", self.name)
            failures = 1 if was_ready else failures + 1

    def _run(self, words: Sequence[str]) -> bool:
        """Run it until it ends, or is to end; return whether it has served."""
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-c", _START, *words],
                env={**os.environ, "TENFOLD_STATE_DIR": str(self._state_dir)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        with process:
            try:
                was_ready = self._follow(process)
            finally:
                self.url = self.admin = ""
                process.terminate()
        if not self.stopping.is_set():
            _LOG.error(
                "the %s ended with status %s and is started again; see %s",
                self.name,
                process.returncode,
                self._log,
            )
        return was_ready

    def _follow(self, process: subprocess.Popen[str]) -> bool:
        """Learn its addresses, and return when it has ended or is to end."""
        assert process.stdout is not None, "its output is a pipe"
        lines = (process.stdout.readline(), process.stdout.readline())
        if all(line.startswith(prefix) for line, prefix in zip(lines, self._prefixes, strict=True)):
            self.url, self.admin = (
                line.removeprefix(prefix).strip()
                for line, prefix in zip(lines, self._prefixes, strict=True)
            )
            _LOG.info("%s at %s, admin at %s", self.name, self.url, self.admin)
        was_ready = bool(self.url)
        while process.poll() is None and not self.stopping.wait(LOOK_S):
            pass
        if process.poll() is None:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(self._end_s)
        return was_ready
