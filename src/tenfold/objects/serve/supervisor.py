"""The supervisor: starts the workers on one port, restarts those that end, and stops them all."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import structs

from tenfold.model.errors import InputError
from tenfold.objects.catalog.catalog import Catalog
from tenfold.objects.catalog.schema import CATALOG_FILE
from tenfold.objects.serve.admin import admin_url, start_admin
from tenfold.objects.serve.counts import Counts
from tenfold.objects.serve.keys import KeyRing
from tenfold.objects.serve.settings import ServerSettings
from tenfold.objects.serve.worker import READY, WorkerOrder, listening_socket

RESTART_S = 1.0
KILL_S = 10.0
MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(128 << 20)}
"""Blocks of bodies are reused: by default glibc maps, zeroes and unmaps each of them."""


def run_server(settings: ServerSettings, started: Callable[[str, str], None]) -> None:
    """Serve until SIGTERM or Ctrl-C; `started` gets the URL once every worker is ready."""
    Path(settings.folder).mkdir(parents=True, exist_ok=True)
    # Errors in the keys are better shown now than in the log of a worker.
    KeyRing(Path(settings.keys))
    # Workers that all create the catalogue at once would find it locked.
    Catalog(Path(settings.folder) / CATALOG_FILE).close()
    reserved = _reserve(settings)
    settings = structs.replace(settings, port=reserved.getsockname()[1])
    try:
        with tempfile.TemporaryDirectory(prefix="tenfold-objects-") as folder:
            asyncio.run(_Supervisor(settings, Path(folder)).run(started))
    finally:
        reserved.close()


class _Supervisor:
    def __init__(self, settings: ServerSettings, folder: Path) -> None:
        self._settings = settings
        self._folder = folder
        self._stopping = asyncio.Event()
        self._workers: dict[int, asyncio.subprocess.Process] = {}
        self.counts = [Counts(folder / f"counts-{index}") for index in range(settings.processes)]

    async def run(self, started: Callable[[str, str], None]) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        indexes = range(self._settings.processes)
        await asyncio.gather(*(self._start(index) for index in indexes))
        admin = await self._listen_admin()
        started(_url(self._settings), "" if admin is None else admin_url(admin))
        watches = [asyncio.create_task(self._watch(index)) for index in indexes]
        await self._stopping.wait()
        if admin is not None:
            admin.close()
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)
        await asyncio.gather(*(self._stop(process) for process in self._workers.values()))

    async def _listen_admin(self) -> asyncio.Server | None:
        if self._settings.admin_port < 0:
            return None
        return await start_admin(self.counts, self._settings.admin_port)

    async def _start(self, index: int) -> None:
        order = WorkerOrder(
            index=index,
            settings=self._settings,
            counts=str(self._folder / f"counts-{index}"),
        )
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tenfold.objects.serve.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**MALLOC, **os.environ},
            # Ctrl-C goes to the supervisor alone, which stops the workers in order.
            start_new_session=True,
        )
        self._workers[index] = process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode(order) + b"\n")
        await process.stdin.drain()
        line = await process.stdout.readline()
        if line.decode().strip() != READY:
            await process.wait()
            raise InputError(
                "objects-not-started",
                f"a worker exited with status {process.returncode} before it was ready",
                "its error is above",
            )

    async def _watch(self, index: int) -> None:
        while True:
            await self._workers[index].wait()
            await asyncio.sleep(RESTART_S)
            # A worker may end while it is started: before it read its order, or before it served.
            with contextlib.suppress(InputError, OSError):
                await self._start(index)

    async def _stop(self, process: asyncio.subprocess.Process) -> None:
        if process.returncode is not None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(self._settings.drain_s + KILL_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def _reserve(settings: ServerSettings) -> socket.socket:
    """Bind the port without listening, so that it stays ours between workers."""
    try:
        return listening_socket(settings.host, settings.port)
    except OSError as error:
        raise InputError(
            "cannot-listen",
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror or error}",
            "choose another address or port; port 0 selects a free one",
        ) from None


def _url(settings: ServerSettings) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{'https' if settings.tls_cert else 'http'}://{host}:{settings.port}"
