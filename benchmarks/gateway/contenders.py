"""Proxies as processes: how each is started, and the processor time that it has used.

LiteLLM and Ray Serve are used if they are installed in environments of their own, whose paths are
in `TENFOLD_BENCH_LITELLM` and `TENFOLD_BENCH_RAY` (folders with `bin/`). They are no dependencies.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from urllib.error import URLError
from urllib.request import Request, urlopen

import msgspec
import psutil

from benchmarks.gateway.load import BODY, HEADERS, PATH
from tenfold.model.service.routing import Replica, Revision, RoutingState, Service, TokenDigest
from tests.rigs.gateway import digest_of

ROOT = Path(__file__).parents[2]
START_S = 120.0
LITELLM, RAY = "TENFOLD_BENCH_LITELLM", "TENFOLD_BENCH_RAY"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Contender:
    """One proxy, and all processes that it is made of."""

    def __init__(self, name: str, command: list[str], port: int) -> None:
        self.name = name
        self.port = port
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        for name_of in [one for one in environment if one.lower().endswith("_proxy")]:
            del environment[name_of]
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=self._log, stderr=self._log
        )
        self._wait()

    def _wait(self) -> None:
        ends, url = monotonic() + START_S, f"http://127.0.0.1:{self.port}{PATH}"
        while True:
            try:
                with urlopen(Request(url, BODY, HEADERS, method="POST"), timeout=5) as answer:
                    if b"word word" in answer.read():
                        return
            except (URLError, OSError):
                pass
            if monotonic() > ends or self._process.poll() is not None:
                self._log.seek(0)
                tail = self._log.read()[-300:].decode(errors="replace")
                self.close()
                raise RuntimeError(f"{self.name} did not start: {tail}")
            sleep(0.2)

    def cpu_s(self) -> float:
        """Return the processor time of its processes."""
        own = psutil.Process(self._process.pid)
        return sum(_cpu_s(one.pid) for one in (own, *own.children(recursive=True)))

    def close(self) -> None:
        """End it."""
        try:
            children = psutil.Process(self._process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            children = []
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for child in children:
            try:
                child.kill()
            except psutil.NoSuchProcess:
                continue


def _cpu_s(pid: int) -> float:
    """Return the time that the threads of a process ran, to the nanosecond."""
    total = 0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            total += int(task.read_text().split()[0])
        except OSError:
            continue
    return total / 1e9


def direct(backend: int) -> "Direct":
    return Direct(backend)


class Direct:
    """No proxy."""

    name = "no proxy"

    def __init__(self, port: int) -> None:
        self.port = port

    def cpu_s(self) -> float:
        return 0.0

    def close(self) -> None:
        """Nothing to end."""


def bare(backend: int) -> Contender:
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.gateway.bare", f"http://127.0.0.1:{backend}"]
    return Contender("bare aiohttp proxy", [*command, str(port)], port)


def ours(backend: int) -> Contender:
    return _gateway("tenfold", backend)


def ours_with_haproxy(backend: int) -> Contender:
    _program("haproxy")
    return _gateway("tenfold with HAProxy", backend, "--data-plane", "haproxy")


def _gateway(name: str, backend: int, *options: str) -> Contender:
    port, folder = free_port(), Path(tempfile.mkdtemp())
    # Two replicas, tokens and slots: nothing that a real gateway does is left out.
    replicas = tuple(Replica(id=one, url=f"http://127.0.0.1:{backend}") for one in ("one", "two"))
    service = Service(
        name="stub",
        slots_per_replica=256,
        ttft_objective_s=2,
        revisions=(Revision(name="v1", replicas=replicas),),
    )
    token = TokenDigest(digest=digest_of("bench"), team="bench")
    routing = folder / "routing.yaml"
    routing.write_bytes(msgspec.json.encode(RoutingState(services=(service,), tokens=(token,))))
    command = [sys.executable, "-m", "tenfold", "gateway", "run", "--routing", str(routing)]
    listen = ["--listen", f"127.0.0.1:{port}", "--admin", "127.0.0.1:0"]
    return Contender(name, [*command, *listen, *options], port)


def haproxy(backend: int) -> Contender:
    port, folder = free_port(), Path(tempfile.mkdtemp())
    (folder / "haproxy.cfg").write_text(
        "global\n nbthread 1\n maxconn 4000\ndefaults\n mode http\n timeout connect 5s\n"
        " timeout client 600s\n timeout server 600s\n"
        " option http-keep-alive\n option http-no-delay\n"
        f"frontend in\n bind 127.0.0.1:{port}\n default_backend out\n"
        "backend out\n balance leastconn\n http-reuse always\n"
        f" server one 127.0.0.1:{backend}\n server two 127.0.0.1:{backend}\n"
    )
    return Contender("HAProxy", [_program("haproxy"), "-db", "-f", f"{folder}/haproxy.cfg"], port)


def nginx(backend: int) -> Contender:
    port, folder = free_port(), Path(tempfile.mkdtemp())
    (folder / "nginx.conf").write_text(
        f"worker_processes 1; daemon off; pid {folder}/pid; error_log {folder}/log;\n"
        "events { worker_connections 4000; }\n"
        "http { access_log off; keepalive_requests 1000000;\n"
        f" client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;\n"
        f" fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n"
        f" upstream out {{ least_conn; server 127.0.0.1:{backend}; keepalive 256; }}\n"
        f" server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://out;\n"
        '  proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; } } }\n'
    )
    return Contender("nginx", [_program("nginx"), "-c", f"{folder}/nginx.conf"], port)


def litellm(backend: int) -> Contender:
    port, folder = free_port(), Path(tempfile.mkdtemp())
    (folder / "config.yaml").write_text(
        "model_list:\n- model_name: stub\n  litellm_params:\n    model: openai/stub\n"
        f"    api_base: http://127.0.0.1:{backend}/v1\n    api_key: none\n"
        "litellm_settings:\n  telemetry: false\n"
        "general_settings:\n  dangerously_permit_weak_or_unset_master_key: true\n"
    )
    program = str(_environment(LITELLM) / "litellm")
    command = [program, "--config", f"{folder}/config.yaml", "--host", "127.0.0.1"]
    return Contender("LiteLLM", [*command, "--port", str(port), "--num_workers", "1"], port)


def ray_serve(backend: int) -> Contender:
    port = free_port()
    program = str(_environment(RAY) / "python")
    script = str(Path(__file__).parent / "ray_proxy.py")
    return Contender("Ray Serve", [program, script, f"http://127.0.0.1:{backend}", str(port)], port)


def _environment(variable: str) -> Path:
    folder = os.environ.get(variable, "")
    if not folder:
        raise RuntimeError(f"{variable} is not set")
    return Path(folder) / "bin"


def _program(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise RuntimeError(f"{name} is not installed")
    return found


CONTENDERS: dict[str, Callable[[int], Contender | Direct]] = {
    "no proxy": direct,
    "bare aiohttp proxy": bare,
    "tenfold": ours,
    "tenfold with HAProxy": ours_with_haproxy,
    "HAProxy": haproxy,
    "nginx": nginx,
    "LiteLLM": litellm,
    "Ray Serve": ray_serve,
}
