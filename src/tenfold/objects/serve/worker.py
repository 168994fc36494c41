"""One process that serves objects: `python -m tenfold.objects.serve.worker`, by its supervisor.

Its settings come on standard input, which then stays open: its end means that the supervisor is
gone, and the worker with it.
"""

import asyncio
import contextlib
import gc
import logging
import resource
import signal
import socket
import ssl
import sys
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex

import msgspec
from msgspec import Struct

from tenfold.clock.wall import now_ms
from tenfold.objects.blobs.store import BlobStore
from tenfold.objects.catalog.catalog import Catalog
from tenfold.objects.catalog.moves import Moves
from tenfold.objects.catalog.schema import CATALOG_FILE
from tenfold.objects.s3.application import Application
from tenfold.objects.s3.call import Dependencies, S3Settings
from tenfold.objects.s3.http.connection import connection_factory
from tenfold.objects.serve.counts import Counts
from tenfold.objects.serve.keys import KeyRing
from tenfold.objects.serve.service import ObjectService
from tenfold.objects.serve.settings import UPKEEP_LOCK, ServerSettings
from tenfold.objects.serve.storage_classes import ARCHIVED, storage_classes
from tenfold.objects.serve.upkeep import Upkeep, UpkeepSettings
from tenfold.objects.tiers.mover import Mover
from tenfold.objects.tiers.opened import open_blob_store, open_folder
from tenfold.objects.tiers.pace import Pace

BACKLOG = 4_096
DESCRIPTORS_SPARE = 200
TICK_S = 1.0
GC_OBJECTS = 50_000
READY = "ready"

_LOG = logging.getLogger("tenfold.objects")


class WorkerOrder(Struct, frozen=True, kw_only=True):
    """What a supervisor tells a worker."""

    index: int
    settings: ServerSettings
    counts: str
    """The file of counts."""


def main() -> None:
    """Serve until told to stop."""
    order = msgspec.json.decode(sys.stdin.readline(), type=WorkerOrder)
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s"
    )
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_Worker(order).run())


class _Worker:
    def __init__(self, order: WorkerOrder) -> None:
        settings = order.settings
        self._settings = settings
        self._keys = KeyRing(Path(settings.keys))
        self._counts = Counts(Path(order.counts))
        self._catalog = Catalog(Path(settings.folder) / CATALOG_FILE)
        self._stopping: asyncio.Event | None = None
        store = open_store(settings)
        deps = Dependencies(
            self._catalog,
            store,
            self._keys,
            S3Settings(
                region=settings.region,
                domains=settings.domains,
                has_acls=settings.has_acls,
                tiers=storage_classes(store.tiers),
                archived=ARCHIVED,
            ),
            now_ms,
            lambda: token_hex(16),
        )
        self._upkeep = Upkeep(
            deps,
            Mover(store, Moves(self._catalog), Pace(), now_ms),
            self._counts,
            UpkeepSettings(settings.sweep_s, settings.day_s, Path(settings.folder) / UPKEEP_LOCK),
        )
        descriptors = _raise_descriptor_limit()
        self._service = ObjectService(
            Application(deps),
            self._counts,
            # A connection may need a duplicate of its socket and a file.
            max(1, (descriptors - DESCRIPTORS_SPARE) // 3),
            settings.requests_max,
        )

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        stopping = self._stopping = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopping.set)
        settings = self._settings
        listener = listening_socket(settings.host, settings.port)
        listener.listen(BACKLOG)
        server = await loop.create_server(
            connection_factory(self._service), sock=listener, backlog=BACKLOG, ssl=_tls(settings)
        )
        loop.add_reader(sys.stdin.fileno(), self._read_end, stopping.set)
        tasks = [
            asyncio.create_task(self._tick()),
            asyncio.create_task(self._upkeep.run()),
        ]
        gc.freeze()
        gc.set_threshold(GC_OBJECTS, 20, 20)
        sys.stdout.write(f"{READY}\n")
        sys.stdout.flush()
        await stopping.wait()
        server.close()
        await self._drain()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._catalog.close()

    def _read_end(self, stop: Callable[[], None]) -> None:
        if not sys.stdin.buffer.raw.read(1):  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            stop()

    async def _drain(self) -> None:
        service = self._service
        service.is_stopping = True
        for connection in list(service.connections):
            connection.finish()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.drain_s):
                while service.connections:
                    await asyncio.sleep(0.02)
        for connection in list(service.connections):
            connection.abort()
        # One turn, so that requests under way see that their clients are gone.
        await asyncio.sleep(0)

    async def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(TICK_S)
            try:
                self._service.sweep(loop.time())
                self._keys.refresh()
                self._counts.set("commits", self._catalog.writer.commits)
                self._counts.set("changes", self._catalog.writer.changes)
            except Exception:
                # Keys that cannot be read now leave those that are known.
                _LOG.exception("upkeep failed")


def open_store(settings: ServerSettings) -> BlobStore:
    """Return the blobs of a server, in the tiers of its tier file."""
    if settings.tiers:
        return open_blob_store(Path(settings.tiers), Path(settings.folder))
    return open_folder(Path(settings.folder))


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that shares its port with other processes."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind((host, port))
    return made


def _tls(settings: ServerSettings) -> ssl.SSLContext | None:
    if not settings.tls_cert:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(settings.tls_cert, settings.tls_key or None)
    return context


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return None
    return uvloop.new_event_loop


def _raise_descriptor_limit() -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            return hard
    return soft


if __name__ == "__main__":
    main()
