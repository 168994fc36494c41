"""The gateway as a process: starts, listens, sweeps, and ends without cutting answers off."""

import asyncio
import contextlib
import gc
import logging
import resource
import signal
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from secrets import randbits, token_hex

from msgspec import Struct

from tenfold.clock.wall import now_ms
from tenfold.gateway.admit.refusals import RequestRefused
from tenfold.gateway.forward.spans import Spans
from tenfold.gateway.forward.upstream import Upstream
from tenfold.gateway.haproxy.front import HaproxyFront
from tenfold.gateway.pool.pool import ServicePool
from tenfold.gateway.pool.traffic import traffic_of
from tenfold.gateway.serve.admin import Admin
from tenfold.gateway.serve.body import Bodies
from tenfold.gateway.serve.connections import Connections
from tenfold.gateway.serve.front import Front
from tenfold.gateway.serve.sources import Source
from tenfold.model.errors import InputError
from tenfold.model.service.routing import RoutingState
from tenfold.model.service.traffic import GatewayTraffic

SWEEP_S = 0.1
STOPPED_S = 1.0
"""A turn later than this means that the process was stopped or starved."""
SLOW_SWEEP_S = 1.0
GC_OBJECTS = 20_000
BACKLOG = 4_096
DESCRIPTORS_SPARE = 100
ADMIN_CONNECTIONS_MAX = 200

_LOG = logging.getLogger("tenfold.gateway")


class GatewaySettings(Struct, frozen=True, kw_only=True):
    """How a gateway runs."""

    listen: tuple[str, int]
    admin: tuple[str, int]
    keys: Mapping[str, str] = {}
    drain_s: float = 60.0
    """How long answers may take after the signal to end."""
    body_bytes_max: int = 32 << 20
    tls_cert: Path | None = None
    tls_key: Path | None = None
    has_haproxy: bool = False
    """Whether HAProxy answers what needs no decision, in front of this process."""
    spans: Spans | None = None
    """Where the spans of requests go."""


def run_gateway(
    settings: GatewaySettings,
    source: Callable[[], Source],
    started: Callable[[str, str], None],
) -> None:
    """Run a gateway until it is signalled to end; `started` gets its two addresses."""
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_run(settings, source, started))
    finally:
        if settings.spans is not None:
            settings.spans.close()


async def _run(
    settings: GatewaySettings,
    source: Callable[[], Source],
    started: Callable[[str, str], None],
) -> None:
    # Its parts belong to the running loop.
    await _Gateway(settings).run(source, started)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return None
    return uvloop.new_event_loop


class _Gateway:
    def __init__(self, settings: GatewaySettings) -> None:
        self._settings = settings
        self._pool = ServicePool(randbits(64))
        self._id = token_hex(8)
        self._started_ms = now_ms()
        self._confirmed_s = 0.0
        self._ending = asyncio.Event()
        self._ending_now = asyncio.Event()
        self._upstream = Upstream(settings.keys)
        self._front = Front(
            self._pool, self._upstream, Bodies(settings.body_bytes_max), settings.spans
        )
        descriptors = _raise_descriptor_limit()
        # Each request may need a connection to its client and one to its replica.
        self._clients = Connections(self._front.handle, (descriptors - DESCRIPTORS_SPARE) // 2)
        self._haproxy = _haproxy(settings, self._pool, descriptors)
        admin = Admin(self._traffic, self._gauges, self._why_not_ready)
        self._admins = Connections(admin.handle, ADMIN_CONNECTIONS_MAX)

    async def run(self, source: Callable[[], Source], started: Callable[[str, str], None]) -> None:
        loop = asyncio.get_running_loop()
        settings = self._settings
        tls = _tls(settings)
        haproxy = self._haproxy
        if haproxy is None:
            front = await _listen(self._clients, settings.listen, tls)
            url = _url(front, "https" if tls else "http")
        else:
            front, url = await haproxy.start(self._clients), haproxy.url
        admin = await _listen(self._admins, settings.admin, None)
        reading = source()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end)
        # Hanging up is no reason to end; a file is looked at every second anyway.
        loop.add_signal_handler(signal.SIGHUP, lambda: None)
        tasks = [
            asyncio.create_task(reading.run(self._apply, self._confirm)),
            asyncio.create_task(self._sweep()),
        ]
        if haproxy is not None:
            tasks.append(asyncio.create_task(haproxy.plane.run()))
        # What exists now lives as long as the process.
        gc.freeze()
        # Requests make many objects and hardly any cycles.
        gc.set_threshold(GC_OBJECTS, 20, 20)
        started(url, _url(admin, "http"))
        await self._ending.wait()
        if haproxy is not None:
            # Its clients may still send requests that are for this process.
            tasks.pop().cancel()
            await haproxy.stop(settings.drain_s)
        front.close()
        await self._drain()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        admin.close()
        await self._front.shadows.close()
        for connections in (self._clients, self._admins):
            await connections.shutdown(1.0)
        await self._upstream.close()
        if haproxy is not None:
            haproxy.close()

    def _end(self) -> None:
        if self._ending.is_set():
            self._ending_now.set()
        self._ending.set()

    async def _drain(self) -> None:
        """Let answers finish; refuse what still waits when time is up."""
        self._front.is_draining = True
        self._clients.pre_shutdown()
        _LOG.info("draining %d requests", self._front.in_progress)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.drain_s):
                while self._front.in_progress and not self._ending_now.is_set():
                    await asyncio.sleep(SWEEP_S)
        why = RequestRefused("shutting_down", "the gateway is shutting down", 1.0)
        for service in self._pool.services.values():
            for ticket in list(service.queue):
                service.drop(ticket, why)
        # One turn, so that those answers are written.
        await asyncio.sleep(0)
        _LOG.info("stopped with %d requests unfinished", self._front.in_progress)

    async def _sweep(self) -> None:
        """Do what is due, for as long as the gateway runs."""
        loop = asyncio.get_running_loop()
        slow_s, stall = 0.0, StallDetector(loop.time())
        while True:
            await asyncio.sleep(SWEEP_S)
            now_s = loop.time()
            self._pool.sweep(now_s)
            if stall.was_stopped(now_s):
                continue
            self._upstream.sweep(now_s)
            if now_s - slow_s < SLOW_SWEEP_S:
                continue
            slow_s = now_s
            self._front.streams.sweep(now_s)
            self._clients.sweep(now_s)
            self._admins.sweep(now_s)

    def _apply(self, state: RoutingState) -> None:
        named = [*(one.key for one in state.services)]
        named += [one.key for service in state.services for one in service.overflow]
        for key in dict.fromkeys(named):
            if key and key not in self._settings.keys:
                _LOG.error("no API key is named `%s`; its requests are sent without one", key)
        self._pool.apply(state, asyncio.get_running_loop().time())

    def _confirm(self) -> None:
        self._confirmed_s = asyncio.get_running_loop().time()

    def _traffic(self) -> GatewayTraffic:
        now_s = asyncio.get_running_loop().time()
        return traffic_of(self._pool, self._id, self._started_ms, now_ms(), now_s)

    def _gauges(self) -> dict[str, float]:
        now_s = asyncio.get_running_loop().time()
        return {
            "connections": float(len(self._clients.connections)),
            "streams": float(len(self._front.streams)),
            "routing_version": float(self._pool.version),
            "routing_age_seconds": now_s - self._confirmed_s if self._confirmed_s else -1.0,
        }

    def _why_not_ready(self) -> str:
        if self._front.is_draining:
            return "draining"
        return "" if self._pool.state is not None else "no routing state yet"


class StallDetector:
    """Notices when the process itself was stopped, or got no processor.

    What arrived meanwhile is read after the timers. Whoever sent it would be taken for slow.
    """

    def __init__(self, now_s: float) -> None:
        self._last_s = now_s

    def was_stopped(self, now_s: float) -> bool:
        """Return whether this turn is so late that others cannot be judged in it."""
        late_s, self._last_s = now_s - self._last_s - SWEEP_S, now_s
        return late_s > STOPPED_S


def _haproxy(settings: GatewaySettings, pool: ServicePool, descriptors: int) -> HaproxyFront | None:
    if not settings.has_haproxy:
        return None
    certificate = settings.tls_cert
    return HaproxyFront(
        pool,
        settings.listen,
        descriptors=descriptors,
        body_bytes_max=settings.body_bytes_max,
        drain_s=settings.drain_s,
        certificate=None if certificate is None else (certificate, settings.tls_key),
    )


async def _listen(
    connections: Connections, address: tuple[str, int], tls: ssl.SSLContext | None
) -> asyncio.Server:
    host, port = address
    try:
        return await asyncio.get_running_loop().create_server(
            connections, host, port, backlog=BACKLOG, ssl=tls
        )
    except OSError as error:
        raise InputError(
            "cannot-listen",
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            "choose another address or port; port 0 selects a free one",
        ) from None


def _url(server: asyncio.Server, scheme: str) -> str:
    host, port = server.sockets[0].getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _tls(settings: GatewaySettings) -> ssl.SSLContext | None:
    if settings.tls_cert is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(settings.tls_cert, settings.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise InputError(
            "tls-unusable",
            f"cannot use the TLS certificate `{settings.tls_cert}`: {error}",
            "give a PEM file with `--tls-cert`, and its private key with `--tls-key`",
        ) from None
    return context


def _raise_descriptor_limit() -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            return hard
    return soft
