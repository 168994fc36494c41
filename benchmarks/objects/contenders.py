"""The servers that are compared: each with its address, its processor time and signed requests."""

import hashlib
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psutil
import pytest

from tests.rigs.object_stores.radosgw import running_radosgw
from tests.rigs.object_stores.running import ObjectStore
from tests.rigs.object_stores.seaweedfs import running_seaweedfs
from tests.rigs.objects import KEYS, object_server
from tests.rigs.signed_requests import Signer, exchange, statuses

BUCKET = "bench"
CLOSE = {"connection": "close"}


class Contender:
    """A running server; `signer` is None where anyone may read, and nobody write."""

    def __init__(
        self, name: str, address: tuple[str, int], pids: Sequence[int], signer: Signer | None
    ) -> None:
        self.name = name
        self.address = address
        self._processes = [psutil.Process(pid) for pid in pids]
        self._signer = signer

    @property
    def can_write(self) -> bool:
        """Return whether objects can be put."""
        return self._signer is not None

    def cpu_s(self) -> float:
        """Return the processor time of the server and its processes so far."""
        family = {process.pid: process for process in self._processes}
        for process in self._processes:
            family |= {child.pid: child for child in process.children(recursive=True)}
        times = [process.cpu_times() for process in family.values()]
        return sum(one.user + one.system for one in times)

    def get(self, name: str) -> bytes:
        """Return a request for an object."""
        if self._signer is None:
            return f"GET /{BUCKET}/{name} HTTP/1.1\r\nhost: x\r\n\r\n".encode()
        empty = hashlib.sha256(b"").hexdigest()
        return f"{self._signer.head('GET', f'/{BUCKET}/{name}', empty)[0]}\r\n".encode()

    def put(self, name: str, body: bytes, extra: Mapping[str, str] | None = None) -> bytes:
        """Return a request that stores an object, with its body signed."""
        assert self._signer is not None
        hashed = hashlib.sha256(body).hexdigest()
        head, _ = self._signer.head("PUT", f"/{BUCKET}/{name}", hashed, extra)
        return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body

    def store(self, name: str, body: bytes) -> None:
        """Store an object to read later."""
        answer = exchange(self.address, self.put(name, body, CLOSE))
        assert statuses(answer) == [200], answer[:500]

    def create_bucket(self) -> None:
        """Create the bucket."""
        assert self._signer is not None
        empty = hashlib.sha256(b"").hexdigest()
        head, _ = self._signer.head("PUT", f"/{BUCKET}", empty, CLOSE)
        answer = exchange(self.address, f"{head}content-length: 0\r\n\r\n".encode())
        assert statuses(answer) == [200], answer[:500]


class _Files(Contender):
    """A server of files, which are put where it reads them."""

    def __init__(self, address: tuple[str, int], pid: int, folder: Path) -> None:
        super().__init__("nginx", address, [pid], None)
        self._folder = folder

    def store(self, name: str, body: bytes) -> None:
        (self._folder / BUCKET).mkdir(exist_ok=True)
        (self._folder / BUCKET / name).write_bytes(body)


@contextmanager
def ours(folder: Path, redundancy: str = "", disks: int = 1) -> Iterator[Contender]:
    """Run our server with one process, on directories: one replica, or what is asked for."""
    name = f"tenfold, {redundancy}" if redundancy else "tenfold"
    home = folder / f"tenfold-{disks}"
    home.mkdir()
    if redundancy:
        lines = [f"[tiers.hot]\n{redundancy}\n"]
        for number in range(disks):
            disk = f"disk{number}"
            lines.append(f'[[tiers.hot.backends]]\nname = "{disk}"\ndirectory = "{home / disk}"\n')
            (home / disk).mkdir()
        (home / "tiers.toml").write_text("\n".join(lines))
    with object_server(home) as server:
        host, port = server.address
        signer = Signer(KEYS[0].id, KEYS[0].secret, f"{host}:{port}")
        made = Contender(name, server.address, [server.process.pid], signer)
        made.create_bucket()
        yield made


@contextmanager
def nginx(folder: Path) -> Iterator[Contender | None]:
    """Run nginx on static files, with one worker."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        yield None
        return
    home = folder / "nginx"
    home.mkdir()
    home.chmod(0o755)
    folder.chmod(0o755)
    port = _free_port()
    config = home / "nginx.conf"
    config.write_text(
        f"user root;\ndaemon off;\nmaster_process off;\nworker_processes 1;\n"
        f"pid {home}/pid;\nerror_log {home}/error.log;\n"
        "events { worker_connections 10000; }\n"
        "http { sendfile on; tcp_nopush on; keepalive_requests 1000000; access_log off;\n"
        f"client_body_temp_path {home}/body; proxy_temp_path {home}/proxy;\n"
        f"fastcgi_temp_path {home}/f; uwsgi_temp_path {home}/u; scgi_temp_path {home}/s;\n"
        f"server {{ listen 127.0.0.1:{port} backlog=4096; root {home}; }} }}\n"
    )
    process = subprocess.Popen([program, "-c", config, "-e", home / "error.log"])
    try:
        _wait_for(port)
        yield _Files(("127.0.0.1", port), process.pid, home)
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def radosgw(folder: Path) -> Iterator[Contender | None]:
    """Run a Ceph in memory with its S3 gateway; all its processes count."""
    del folder
    with _store("radosgw 16.2", running_radosgw) as made:
        yield made


@contextmanager
def seaweedfs(folder: Path) -> Iterator[Contender | None]:
    """Run a SeaweedFS with its S3 gateway."""
    del folder
    with _store("seaweedfs", running_seaweedfs) as made:
        yield made


@contextmanager
def _store(
    name: str, running: Callable[[], AbstractContextManager[ObjectStore]]
) -> Iterator[Contender | None]:
    myself = psutil.Process()
    before = {child.pid for child in myself.children(recursive=True)}
    try:
        started = running()
        store = started.__enter__()
    except pytest.skip.Exception:
        yield None
        return
    try:
        pids = [child.pid for child in myself.children() if child.pid not in before]
        host, _, port = store.endpoint.removeprefix("http://").rpartition(":")
        signer = Signer(store.access_key, store.secret_key, f"{host}:{port}")
        made = Contender(name, (host, int(port)), pids, signer)
        made.create_bucket()
        yield made
    finally:
        started.__exit__(None, None, None)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for(port: int) -> None:
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError(f"nothing listens on port {port}")
