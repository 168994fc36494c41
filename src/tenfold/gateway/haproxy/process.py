"""The HAProxy process: started, reloaded without breaking an answer, and ended."""

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
from asyncio.subprocess import Process
from pathlib import Path

from tenfold.gateway.haproxy.control import ControlError, ask, order, pid_of
from tenfold.model.errors import InputError

START_S = 10.0
POLL_S = 0.02
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)
_LOG = logging.getLogger("tenfold.gateway")


class HaproxyProcess:
    """A master and its workers; after a reload the old worker finishes what it has."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program = program
        self.config = folder / "haproxy.cfg"
        self.master = folder / "master.sock"
        self.worker = folder / "worker.sock"
        self._process: Process | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the master runs."""
        return self._process is not None and self._process.returncode is None

    async def start(self, config: str) -> None:
        """Start with a configuration; raise if HAProxy does not accept it."""
        write_private(self.config, config)
        self._process = await asyncio.create_subprocess_exec(
            self._program,
            *("-W", "-S", f"{self.master},mode,600", "-f", str(self.config)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            preexec_fn=_before_start,
        )
        assert self._process.stdout is not None
        self._reading = asyncio.create_task(_log_lines(self._process.stdout))
        await self._until_worker_is_not(0)

    async def reload(self, config: str) -> None:
        """Use another configuration; raise, and keep the old one, if it is not accepted."""
        tried = self.config.with_suffix(".new")
        write_private(tried, config)
        check = await asyncio.create_subprocess_exec(
            self._program,
            *("-c", "-q", "-f", str(tried)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await check.communicate()
        if check.returncode:
            raise ControlError(f"configuration rejected: {said.decode(errors='replace')[-500:]}")
        tried.replace(self.config)
        before = pid_of(await ask(self.worker, "show info"))
        assert self._process is not None
        self._process.send_signal(signal.SIGUSR2)
        await self._until_worker_is_not(before)

    async def drain(self) -> None:
        """Take no further connections; answers under way go on."""
        if self.is_running and self._process is not None:
            self._process.send_signal(signal.SIGUSR1)

    async def ended(self, timeout_s: float) -> None:
        """Return when all workers have ended; end them when time is up."""
        if self._process is None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._process.wait()
        if self.is_running:
            self._process.terminate()
            await self._process.wait()
        if self._reading is not None:
            await self._reading

    async def command(self, text: str, *accepted: str) -> None:
        """Send a command to the current worker."""
        await order(self.worker, text, accepted)

    async def _until_worker_is_not(self, before: int) -> None:
        """Wait until another worker answers."""
        try:
            async with asyncio.timeout(START_S):
                while self.is_running:
                    with contextlib.suppress(ControlError):
                        if pid_of(await ask(self.worker, "show info")) != before:
                            return
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            pass
        raise InputError(
            "haproxy-failed",
            "HAProxy did not start, or rejected the new configuration",
            "see the gateway log for its output",
        )


def _before_start() -> None:
    # Ctrl-C is for the gateway, which lets answers finish. Not a session of its own: the kernel
    # shares processors among sessions, and HAProxy would wait for its turn with each request.
    os.setpgid(0, 0)
    # If the gateway is killed, nothing keeps the servers right.
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


async def _log_lines(stream: asyncio.StreamReader) -> None:
    while line := await stream.readline():
        text = line.decode(errors="replace").strip()
        level = logging.WARNING if "[ALERT]" in text or "[WARNING]" in text else logging.INFO
        _LOG.log(level, "haproxy: %s", text)


def write_private(path: Path, text: str) -> None:
    """Write a file that only this user can read."""
    new = path.with_name(f"{path.name}.tmp")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as stream:
        stream.write(text)
    new.replace(path)
