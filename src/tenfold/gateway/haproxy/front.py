"""HAProxy as the address that clients use, with the gateway behind it on a socket of its own."""

import asyncio
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

from tenfold.gateway.haproxy.config import HaproxySettings
from tenfold.gateway.haproxy.data_plane import HaproxyDataPlane
from tenfold.gateway.pool.pool import ServicePool
from tenfold.model.errors import InputError

BACKLOG = 4_096
CONNECTIONS_MAX = 50_000
DESCRIPTORS_SPARE = 200


def find_haproxy() -> str:
    """Return the program; raise if it is not installed."""
    found = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise InputError(
            "haproxy-not-installed",
            "--data-plane haproxy needs the program `haproxy`, which is not installed",
            "install HAProxy 2.6 or newer, as with `apt-get install haproxy`",
        )
    return found


class HaproxyFront:
    """Runs HAProxy for a gateway; its folder is removed in the end."""

    def __init__(
        self,
        pool: ServicePool,
        listen: tuple[str, int],
        *,
        descriptors: int,
        body_bytes_max: int,
        drain_s: float,
        certificate: tuple[Path, Path | None] | None,
    ) -> None:
        self._folder = Path(mkdtemp(prefix="tenfold-haproxy-"))
        self._reserved, port = _reserve(listen)
        self.url = _url(listen[0], port, is_secure=certificate is not None)
        self.socket = self._folder / "gateway.sock"
        settings = HaproxySettings(
            folder=self._folder,
            listen=(listen[0], port),
            python=self.socket,
            connections_max=min(CONNECTIONS_MAX, (descriptors - DESCRIPTORS_SPARE) // 2),
            body_bytes_max=body_bytes_max,
            drain_s=drain_s,
            certificate=None if certificate is None else self._with_key(*certificate),
        )
        self.plane = HaproxyDataPlane(pool, settings, find_haproxy())

    async def start(self, clients: Callable[[], asyncio.Protocol]) -> asyncio.Server:
        """Start both; return the gateway's own server, behind HAProxy."""
        loop = asyncio.get_running_loop()
        server = await loop.create_unix_server(clients, self.socket, backlog=BACKLOG)
        self.socket.chmod(0o600)
        await self.plane.start()
        return server

    async def stop(self, timeout_s: float) -> None:
        """Let answers finish, then end HAProxy."""
        await self.plane.process.drain()
        await self.plane.process.ended(timeout_s)

    def close(self) -> None:
        """Remove the folder."""
        self._reserved.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _with_key(self, certificate: Path, key: Path | None) -> Path:
        """Return one file with certificate and key, as HAProxy reads them."""
        both = self._folder / "certificate.pem"
        both.touch(mode=0o600)
        parts = [one.read_text() for one in (certificate, key) if one is not None]
        both.write_text("\n".join(parts))
        return both


def _reserve(listen: tuple[str, int]) -> tuple[socket.socket, int]:
    """Return a port that stays free for HAProxy, and the socket that holds it without listening."""
    host, port = listen
    held = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        held.bind((host, port))
    except OSError as error:
        held.close()
        raise InputError(
            "cannot-listen",
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            "choose another address or port; port 0 selects a free one",
        ) from None
    return held, held.getsockname()[1]


def _url(host: str, port: int, *, is_secure: bool) -> str:
    scheme = "https" if is_secure else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
