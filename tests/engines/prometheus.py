"""A real Prometheus for tests: one target, its own folder, a port that is free."""

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

import pytest

from tests.patience import HANG_S, until

PAUSE_S = 0.1
CONFIG = """
global:
  scrape_interval: 1s
  scrape_timeout: 1s
scrape_configs:
  - job_name: tenfold
    authorization:
      credentials_file: {token}
    static_configs:
      - targets: ["{target}"]
"""


def require_prometheus() -> None:
    """Skip the test where Prometheus is missing; fail instead where engines are required."""
    missing = [name for name in ("prometheus", "promtool") if shutil.which(name) is None]
    if not missing:
        return
    reason = f"no {' and no '.join(missing)} here: apt-get install prometheus"
    if os.environ.get("TENFOLD_REQUIRE_ENGINES") == "1":
        pytest.fail(f"TENFOLD_REQUIRE_ENGINES=1, but {reason}")
    pytest.skip(reason)


def promtool(*words: str, given: str = "") -> tuple[int, str]:
    """Run promtool; return its status and all that it says."""
    require_prometheus()
    done = subprocess.run(
        ["promtool", *words],
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    return done.returncode, done.stdout + done.stderr


@contextmanager
def running_prometheus(folder: Path, url: str, token: str) -> Iterator["Prometheus"]:
    """Give a Prometheus that scrapes one control plane each second, and end it."""
    require_prometheus()
    folder.mkdir(mode=0o700)
    secret, config = folder / "token", folder / "prometheus.yml"
    secret.write_text(token)
    config.write_text(CONFIG.format(token=secret, target=urlsplit(url).netloc))
    status, said = promtool("check", "config", str(config))
    assert status == 0, said
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    words = [
        "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
    ]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, cwd=folder)
    try:
        yield Prometheus(f"http://{address}", process, folder / "log")
    finally:
        process.terminate()
        process.wait(30)


class Prometheus:
    """Asks a Prometheus that runs."""

    def __init__(self, url: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self._url, self._process, self._log = url, process, log

    def answers(self, query: str) -> int:
        """Return how many series a query gives; raise where it is none."""
        with urlopen(f"{self._url}/api/v1/query?{urlencode({'query': query})}") as answer:
            return len(json.load(answer)["data"]["result"])

    def value(self, query: str) -> float | None:
        """Return what a query gives, None where it gives nothing yet."""
        try:
            with urlopen(f"{self._url}/api/v1/query?{urlencode({'query': query})}") as answer:
                found = json.load(answer)["data"]["result"]
        except URLError:
            return None
        return float(found[0]["value"][1]) if found else None

    def until(self, query: str, value: float) -> None:
        """Return when a query gives this; fail when it does not come to."""
        told: list[float | None] = []

        def is_so() -> bool:
            assert self._process.poll() is None, self._log.read_text()
            told[:] = [self.value(query)]
            return told == [value]

        until(is_so, pause_s=PAUSE_S, explain=lambda: f"{query} is {told}, not {value}")
