"""A real control plane, `tenfold up`, that is killed and started again in one state folder.

Only processes that it started, or that carry its state folder, are ever killed, and each by a
descriptor: a number may have come to mean another process by then.
"""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

from tenfold.client.client import Client
from tenfold.client.endpoint import read_address
from tenfold.live.local.executor import LocalExecutor
from tenfold.model.units import Millis
from tenfold.server.runtime.state_dir import StateDir

LOOK_S = 0.01
READY_S_MOST = 300.0
STOP_S_MOST = 300.0
ANSWER_S = 120.0
_AT_ONCE = Millis(0)


class Plane:
    """One state folder and the control plane in it, if any."""

    def __init__(
        self,
        home: Path,
        nodes: int,
        *options: str,
        program: Sequence[str] = ("-m", "tenfold"),
        log: Path | None = None,
    ) -> None:
        self.folder = StateDir(home)
        self._options = ["--listen", "127.0.0.1:0", "--virtual-nodes", str(nodes), *options]
        self._program = program
        self._log = log or home.parent / "up.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self.wait_s = 0.0
        """How long the last start took until it answered."""

    def begin(self) -> None:
        """Start a control plane, and return before it answers."""
        assert self._process is None, "one at a time"
        kept = {key: value for key, value in os.environ.items() if not key.startswith("TENFOLD_")}
        words = [sys.executable, *self._program, "up", "--home", str(self.folder.path)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*words, *self._options], env=kept, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        self.starts += 1

    def wait(self) -> None:
        """Return once it answers; raise where it ends instead."""
        assert self._process is not None, "it was started"
        began_s = monotonic()
        while not self.answers():
            if self._process.poll() is not None or monotonic() - began_s > READY_S_MOST:
                raise RuntimeError(f"the control plane did not start:\n{self.said()}")
            sleep(LOOK_S)
        self.wait_s = monotonic() - began_s

    def answers(self) -> bool:
        """Tell whether the one that runs has left its address."""
        address = read_address(self.folder.path)
        return (
            self._process is not None
            and address is not None
            and address.pid == self._process.pid
            and self._process.poll() is None
        )

    @property
    def pid(self) -> int | None:
        """The process that runs now."""
        return None if self._process is None else self._process.pid

    def client(self) -> Client | None:
        """Return a client of whoever left an address last; it may be gone."""
        address = read_address(self.folder.path)
        return None if address is None else Client(address.url, address.token, timeout_s=ANSWER_S)

    def kill(self) -> bool:
        """Kill it at once; False where it had ended by itself, which it never should."""
        assert self._process is not None, "it was started"
        lived = self._process.poll() is None
        self._process.kill()
        self._process.wait()
        self._process = None
        return lived

    def stop(self) -> None:
        """Stop it as Ctrl-C does."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(STOP_S_MOST)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def leave(self) -> None:
        """Stop it, end what still runs, and let the spawner go: nothing is left behind."""
        self.stop()
        executor = LocalExecutor(str(self.folder.run))
        with suppress(OSError):
            ends_s = monotonic() + STOP_S_MOST
            while left := [one for one in executor.attempts() if one.end is None]:
                for one in left:
                    executor.stop(one.job_id, one.attempt, _AT_ONCE)
                select.select([executor], [], [], 1.0)
                executor.observations()
                if monotonic() > ends_s:
                    break
            gone = os.pidfd_open(executor.link.spawner)
            executor.stop_spawner()
            executor.observations()
            select.select([gone], [], [], STOP_S_MOST)
            os.close(gone)
        executor.close()

    def said(self) -> str:
        """Return the end of what it wrote."""
        return self._log.read_text(errors="replace")[-4_000:] if self._log.exists() else ""
