"""A real Prometheus with part of a core, and more and more targets to scrape.

What a target costs is read from the control group at four sizes, each without the limit ever
being met: past it, throughput falls off a cliff, and cost there tells nothing about before.

The factor has been said up to 78% too high here, for three reasons. On a busy machine Prometheus
did not get its quarter of a core: at a load of 28 it lost samples at 600 targets with 0.11 core
used, and never had to stop at its quota. With shares of its own, at a load of 20, it lost them at
980. A break at which it was not held back does not count now. Second, samples are lost before the
quota is used up: at 1,000 targets 7% of them, with 0.20 of 0.25 core used, because a scrape that
has to wait for the next period may miss its second. Third, few targets wake it up apart and cost
more for each sample (1.8 us at 60 targets, 1.0 at 275), so that the line through four small sizes
rises more slowly than the cost does later (0.13 against 0.19 millicores a target). With shares
of its own it broke at 3.65 times a quarter; the line said 6.6, and a curve through the same four
sizes 15.4, which is why curves that bend down are no longer followed.
"""

import os
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from benchmarks.grow.rigs import machine
from benchmarks.grow.rigs.harness import Attained, Rig, Settings
from tenfold.model.growth.measured import UsagePoint

PORT, TARGETS_PORT = 19_090, 19_100
CPU = "prometheus cpu"
COUNTER = "prometheus_tsdb_head_samples_appended_total"
OWN_SERIES = 5
"""What Prometheus itself adds to every scrape."""
SETTINGS: Settings = {
    "law": "usage",
    "series": 200,
    "interval_s": 1,
    "cores": 0.25,
    "full": 1_100,
    "loads": [60, 130, 200, 275],
    "share_least": 0.95,
    "warm_s": 10.0,
    "measure_s": 60.0,
    "seconds": 25.0,
}


HELD_LEAST = 0.25
"""Share of scheduling periods in which a Prometheus that lacks processor time was held back."""
PERIODS_PER_S = 1_000_000 / machine.PERIOD_US


class Scraped(NamedTuple):
    """What came of one number of targets."""

    share: float
    cores: float
    held: float
    """Share of scheduling periods in which the control group had used up its quota."""


class Scraping:
    """Prometheus, started anew for every number of targets."""

    def __init__(self, settings: Settings, folder: Path, program: str) -> None:
        self._settings = settings
        self._folder = folder
        self._program = program

    def measure(self, loads: Sequence[float]) -> list[UsagePoint]:
        return [
            UsagePoint(
                layer="monitoring",
                resource=CPU,
                factor=load / (self._settings["full"] / 4),
                usage=self._scrape(int(load), self._settings["measure_s"]).cores,
                limit=self._settings["cores"],
                unit="core",
            )
            for load in loads
        ]

    def attain(self, load: float) -> Attained:
        found = self._scrape(int(load), self._settings["seconds"])
        busy = found.held < HELD_LEAST
        void = f"the machine was busy: {found.cores:.2f} core used, and not held back"
        return Attained(found.share, CPU, void if busy else "")

    def _scrape(self, targets: int, seconds: float) -> Scraped:
        own = self._settings
        with ExitStack() as stack:
            data = stack.enter_context(tempfile.TemporaryDirectory(dir=self._folder))
            config = Path(data) / "prometheus.yml"
            config.write_text(_config(targets, own["interval_s"]))
            words = machine.python("scrape_targets.py", TARGETS_PORT, own["series"])
            stack.enter_context(machine.child(["nice", "-n", "-10", *words]))
            group = stack.enter_context(machine.group("cpu", "cpuacct"))
            group.set_cores(own["cores"])
            process = stack.enter_context(self._prometheus(config, data))
            group.take(process.pid)
            machine.pause(process, own["warm_s"])
            before, used_s, began = _appended(), group.used_s(), monotonic()
            held = group.throttled()
            machine.pause(process, seconds)
            # Time is taken when the answer is there: an overloaded one takes seconds for it.
            after, took_s = _appended(), monotonic() - began
            used = (group.used_s() - used_s) / took_s
            held = group.throttled() - held
        asked = targets * (own["series"] + OWN_SERIES) / own["interval_s"]
        return Scraped((after - before) / took_s / asked, used, held / took_s / PERIODS_PER_S)

    @contextmanager
    def _prometheus(self, config: Path, data: str) -> Iterator[subprocess.Popen[bytes]]:
        command = [
            self._program,
            f"--config.file={config}",
            f"--storage.tsdb.path={data}/tsdb",
            f"--web.listen-address=127.0.0.1:{PORT}",
            "--log.level=error",
        ]
        environment = {**os.environ, "GOMAXPROCS": "1"}
        with machine.child(command, env=environment) as process:
            yield process


def _config(targets: int, interval_s: int) -> str:
    head = f"""\
global:
  scrape_interval: {interval_s}s
  scrape_timeout: {interval_s}s
scrape_configs:
- job_name: rig
  static_configs:
"""
    each = "".join(
        f"  - targets: ['127.0.0.1:{TARGETS_PORT}']\n"
        f"    labels: {{__metrics_path__: '/m/{number}', node: 'n{number}'}}\n"
        for number in range(targets)
    )
    return head + each


def _appended() -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=60) as page:
        lines = page.read().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(COUNTER))


@contextmanager
def stage(settings: Settings, folder: Path) -> Iterator[Scraping]:
    """Find Prometheus, or unpack it from its package into the folder."""
    program = installed() or unpacked(folder)
    assert program is not None, "checked by why_not"
    yield Scraping(settings, folder, program)


def installed() -> str | None:
    """Return the Prometheus of this machine, or the one that TENFOLD_PROMETHEUS names."""
    return os.environ.get("TENFOLD_PROMETHEUS") or machine.program("prometheus")


def unpacked(folder: Path) -> str | None:
    """Return a Prometheus from the system's packages, which is unpacked and not installed."""
    if machine.lacks_commands("apt-get", "dpkg"):
        return None
    try:
        done = subprocess.run(
            ["apt-get", "download", "prometheus"],
            cwd=folder,
            capture_output=True,
            timeout=120,
            check=True,
        )
        assert done.returncode == 0
        [package] = folder.glob("prometheus_*.deb")
        subprocess.run(
            ["dpkg", "-x", str(package), str(folder / "unpacked")],
            capture_output=True,
            timeout=120,
            check=True,
        )
    except (subprocess.SubprocessError, OSError, ValueError):
        return None
    package.unlink()
    return shutil.which("prometheus", path=str(folder / "unpacked" / "usr" / "bin"))


def why_not() -> str:
    lacking = machine.lacks_root() or machine.lacks_group("cpu", "cpuacct")
    if lacking or installed():
        return lacking
    with tempfile.TemporaryDirectory(prefix="tenfold-") as folder:
        found = unpacked(Path(folder))
    return "" if found else "no prometheus here, and its package cannot be had"


RIG = Rig("Prometheus targets", SETTINGS, why_not, stage)
