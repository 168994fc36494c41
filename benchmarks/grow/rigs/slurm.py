"""A real Slurm that starts so many jobs a pass: jobs that end at once come faster and faster.

What it starts a second stands in its `slurm.conf`; what a job costs its daemons is measured in
a control group of theirs. Broken is a line that grows: its slope over half a minute, and not
its length, which rises and falls with every pass.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep

import pytest

from benchmarks.grow.rigs import machine
from benchmarks.grow.rigs.harness import Attained, Rig, Settings
from tenfold.model.growth.measured import UsagePoint
from tests.engines.slurm import COMMANDS, RunningSlurm, SlurmNode, running_slurm

NODES = [SlurmNode(name=f"n{number}", cpus=64, memory_mib=256_000) for number in (1, 2)]
WARM_S = 6.0
SAMPLE_S = 1.0
EMPTY_TIMEOUT_S = 60.0
SETTINGS: Settings = {
    "law": "admission",
    "parameters": "defer,sched_interval=2,sched_max_job_start=4,sched_min_interval=2000000",
    "cores": 2,
    "full": 6.0,
    "loads": [0.75, 1.5],
    "whole": False,
    "share_least": 0.95,
    "seconds": 30.0,
}


class Arrivals:
    """Jobs that come to a running Slurm at a rate."""

    def __init__(self, settings: Settings, slurm: RunningSlurm, daemons: machine.Group) -> None:
        self._settings = settings
        self._slurm = slurm
        self._group = daemons

    def measure(self, loads: Sequence[float]) -> list[UsagePoint]:
        points: list[UsagePoint] = []
        for load in loads:
            used_s, began = self._group.used_s(), monotonic()
            self._come(load)
            used = (self._group.used_s() - used_s) / (monotonic() - began)
            points.append(
                UsagePoint(
                    layer="admission",
                    resource="slurm cpu",
                    factor=load / (self._settings["full"] / 4),
                    usage=used,
                    limit=self._settings["cores"],
                    unit="core",
                )
            )
        return points

    def attain(self, load: float) -> Attained:
        grows = max(0.0, _slope(self._come(load)))
        return Attained(1.0 - min(1.0, grows / load), "configured starts")

    def _come(self, rate: float) -> list[tuple[float, int]]:
        """Submit at a rate and return how many waited, by time, once it had settled."""
        self._empty()
        done = Event()
        began = monotonic()
        submitting = Thread(target=self._submit, args=(rate, began, done))
        submitting.start()
        samples: list[tuple[float, int]] = []
        try:
            while (now := monotonic()) < began + self._settings["seconds"]:
                if now > began + WARM_S:
                    samples.append((now - began, self._waiting()))
                sleep(SAMPLE_S)
        finally:
            done.set()
            submitting.join()
        return samples

    def _submit(self, rate: float, began: float, done: Event) -> None:
        words = ("sbatch", "--quiet", "--output=/dev/null", "--ntasks=1", "--wrap=true")
        count = 0
        while not done.is_set():
            subprocess.run(
                words,
                env=self._slurm.environment,
                cwd=self._slurm.folder,
                capture_output=True,
                check=True,
            )
            count += 1
            done.wait(max(0.0, began + count / rate - monotonic()))

    def _waiting(self) -> int:
        return len(self._slurm.ask("squeue", "-h", "-r", "-t", "PD", "-o", "%i").split())

    def _empty(self) -> None:
        """Take back what waits, and let what runs end."""
        self._slurm.ask("scancel", "--state=PENDING", "--user=root")
        deadline = monotonic() + EMPTY_TIMEOUT_S
        while self._slurm.ask("squeue", "-h", "-o", "%i").split():
            assert monotonic() < deadline, "the line did not empty"
            sleep(0.5)


def _slope(samples: Sequence[tuple[float, int]]) -> float:
    """Return by how many jobs a second the line grew."""
    middle = sum(at for at, _ in samples) / len(samples)
    wide = sum((at - middle) ** 2 for at, _ in samples)
    return sum((at - middle) * waiting for at, waiting in samples) / wide


@contextmanager
def stage(settings: Settings, folder: Path) -> Iterator[Arrivals]:
    """Start a Slurm in a control group of its own; its configuration stays in the folder."""
    conf = (
        "SchedulerType=sched/builtin",
        f"SchedulerParameters={settings['parameters']}",
        "SelectTypeParameters=CR_CPU",
        "MinJobAge=2",
    )
    home = folder / "slurm"
    home.mkdir()
    with machine.group("cpu", "cpuacct") as daemons:
        # Its daemons are this process's children: they are born into the group it is in.
        daemons.take(os.getpid())
        try:
            with running_slurm(home, NODES, conf) as slurm:
                daemons.release(os.getpid())
                daemons.set_cores(settings["cores"])
                shutil.copy(home / "slurm.conf", folder / "slurm.conf")
                yield Arrivals(settings, slurm, daemons)
        except pytest.fail.Exception as failed:
            raise RuntimeError(str(failed)) from None
        finally:
            daemons.release(os.getpid())


def why_not() -> str:
    return (
        machine.lacks_root()
        or machine.lacks_commands(*COMMANDS, "sbatch", "squeue", "scancel")
        or machine.lacks_group("cpu", "cpuacct")
    )


RIG = Rig("Slurm arrivals", SETTINGS, why_not, stage)
