"""`tenfold attach slurm` on a busy real Slurm: stories, reasons, cost and recommendations.

Jobs of two users come for some minutes, in arrays too; some are held, begin later, depend on
others or are cancelled; a node is drained for a while, slurmctld is restarted and so are we, with
SIGKILL. Readings pause in every second window (SIGSTOP), so that the CPU of slurmctld with and
without us is taken from the same run. `TENFOLD_ATTACH_JOBS` sets another number of jobs.
"""

import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median
from threading import Event
from time import monotonic

import psutil
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmarks.verdict import Verdict
from engines.slurm import RunningSlurm, running_slurm
from engines.slurm_attach import (
    Agreement,
    accounting,
    agree,
    ask_tenfold,
    attach,
    differences,
    own_stories,
    slurm_stories,
)
from engines.slurm_jobs import CONF, NODES, PARTITIONS, TimedJob, timed_jobs
from patience import until

JOBS = int(os.environ.get("TENFOLD_ATTACH_JOBS", "300"))
OVER_S = 0.6 * JOBS
MOMENTS = 10
WINDOW_S = 10.0
USERS = ("root", "nobody")
LAST_READINGS = 20
ARGUMENTS = ("--recommend", "--interval", "2", "--days", "1")


class _Run:
    """The cluster, our process, and what is measured meanwhile."""

    def __init__(self, slurm: RunningSlurm, state: Path) -> None:
        self.slurm, self.state = slurm, state
        self.own = attach(slurm, state, *ARGUMENTS)
        self.agreement = Agreement()
        self.moments = 0
        self.cpu: dict[bool, list[float]] = {True: [], False: []}
        """CPU seconds of slurmctld for each second of a window, with us and without."""
        self._window: tuple[bool, float, float] | None = None

    def begin_window(self, *, with_us: bool) -> None:
        """End the last window and begin another."""
        self.end_window()
        self.own.send_signal(signal.SIGCONT if with_us else signal.SIGSTOP)
        self._window = (with_us, monotonic(), self._cpu_s())

    def end_window(self) -> None:
        """Note what slurmctld used in the last window."""
        if self._window is not None:
            with_us, since_s, before_s = self._window
            used = (self._cpu_s() - before_s) / (monotonic() - since_s)
            self.cpu[with_us].append(used)
            self._window = None

    def look(self) -> None:
        """Compare reasons at this moment."""
        if self.moments < MOMENTS:
            before = self.agreement.jobs
            agree(self.slurm, self.state, self.agreement)
            self.moments += self.agreement.jobs > before

    def restart_slurmctld(self) -> None:
        """Restart the controller, which recovers its jobs."""
        self._window = None
        self.slurm.daemons.end("slurmctld")
        self.slurm.daemons.start("slurmctld", "slurmctld", "-D")
        until(self._answers, pause_s=0.3)

    def restart_own(self) -> None:
        """Kill our process, and start another."""
        self._window = None
        self.own.send_signal(signal.SIGCONT)
        self.own.kill()
        self.own.wait(30)
        self.own = attach(self.slurm, self.state, *ARGUMENTS)

    def _answers(self) -> bool:
        try:
            return "UP" in self.slurm.ask("scontrol", "ping")
        except AssertionError:  # `ask` says with it that a command failed
            return False

    def _cpu_s(self) -> float:
        times = psutil.Process(self.slurm.daemons.pid("slurmctld")).cpu_times()
        return times.user + times.system


def run(thresholds: dict[str, float]) -> list[Verdict]:
    try:
        with tempfile.TemporaryDirectory(prefix="tenfold-") as name:
            folder = Path(name)
            folder.chmod(0o711)
            conf = [line.replace("MinJobAge=3600", "MinJobAge=30") for line in CONF]
            with running_slurm(folder, NODES, conf, PARTITIONS, accounting=True) as slurm:
                return _measure(slurm, folder / "state", thresholds)
    except pytest.skip.Exception as skipped:
        print(f"not run: {skipped}")
        return []


def _measure(slurm: RunningSlurm, state: Path, thresholds: dict[str, float]) -> list[Verdict]:
    state.mkdir()
    ask_tenfold(slurm, "attach", "slurm", "--once", "--state-dir", str(state))
    one = _Run(slurm, state)
    try:
        _load(one)
        while slurm.ask("squeue", "--noheader", "--states=R,PD,CG"):
            one.look()
            Event().wait(5.0)
        theirs = slurm_stories(accounting(slurm))
        # The last ends are there after the next readings; what is missing then stays missing.
        for _ in range(LAST_READINGS):
            if not differences(own_stories(state), theirs):
                break
            Event().wait(2.0)
    finally:
        one.own.send_signal(signal.SIGCONT)
        one.own.terminate()
        one.own.wait(60)
    theirs = slurm_stories(accounting(slurm))
    apart = differences(own_stories(state), theirs)
    print(f"{len(theirs)} runs in sacct, {len(apart)} differences, load {os.getloadavg()[0]:.1f}")
    print("\n".join(apart[:20]))
    found = one.agreement
    share = found.alike / max(1, found.jobs)
    print(f"reasons: {found.alike} of {found.jobs} alike ({share:.1%}) at {one.moments} moments")
    for (ours, slurms), count in sorted(found.apart.items(), key=lambda item: -item[1]):
        print(f"  {count:4} x ours {ours}, Slurm's {slurms}")
    cpu = {on: 1e3 * median(values) for on, values in one.cpu.items() if values}
    print(
        f"slurmctld: {cpu.get(False, 0):.1f} ms of CPU a second without us "
        f"({len(one.cpu[False])} windows), {cpu.get(True, 0):.1f} with us "
        f"({len(one.cpu[True])} windows; medians)"
    )
    for command in ("status", "report"):
        print(ask_tenfold(slurm, "attach", command, "--state-dir", str(state)))
    print(ask_tenfold(slurm, "replay", str(state)))
    more = cpu.get(True, 0.0) - cpu.get(False, 0.0)
    return [
        Verdict("runs that differ from sacct", len(apart), thresholds["differences"]),
        Verdict("reasons alike", share, at_least=thresholds["alike"]),
        Verdict("moments compared", one.moments, at_least=thresholds["moments"]),
        Verdict("slurmctld CPU for us, ms a second", more, thresholds["ctld_cpu_ms"]),
    ]


def _load(one: _Run) -> None:
    """Submit the jobs at their times, with everything else in between."""
    slurm, chance, pause = one.slurm, Random(7), Event()
    jobs = timed_jobs(JOBS, over_s=OVER_S, seed=7, seconds_max=20.0)
    events: list[tuple[float, Callable[[], object]]] = [
        (0.50 * OVER_S, lambda: _update(slurm, "NodeName=n2", "State=DRAIN", "Reason=fan")),
        (0.30 * OVER_S, one.restart_slurmctld),
        (0.70 * OVER_S, lambda: _update(slurm, "NodeName=n2", "State=RESUME")),
        (0.80 * OVER_S, one.restart_own),
    ]
    for number in range(int(OVER_S / WINDOW_S)):
        with_us = number % 2 == 0
        at_s = number * WINDOW_S
        events.append((at_s, lambda with_us=with_us: one.begin_window(with_us=with_us)))
        if with_us and at_s > 0.1 * OVER_S:
            events.append((at_s + 0.6 * WINDOW_S, one.look))
    numbers: list[str] = []
    for place, job in enumerate(jobs):
        extra = _extra(place, numbers)
        events.append(
            (job.at_s, lambda job=job, extra=extra: numbers.append(_submit(slurm, job, extra())))
        )
        if place % 15 == 14:
            at_s = job.at_s + chance.uniform(1.0, 10.0)
            events.append((at_s, lambda: _cancel(slurm, chance.choice(numbers[-12:]))))
    begin = monotonic()
    for at_s, act in sorted(events, key=lambda event: event[0]):
        pause.wait(max(0.0, begin + at_s - monotonic()))
        act()
    one.begin_window(with_us=True)
    one.end_window()
    # Held jobs end the run as cancelled.
    for line in slurm.ask("squeue", "--noheader", "--states=PD", "--format=%A|%r").splitlines():
        if "JobHeld" in line:
            _cancel(slurm, line.partition("|")[0])


def _extra(place: int, numbers: list[str]) -> Callable[[], list[str]]:
    """Return the options of a job beyond its size."""
    if place % 17 == 16:
        return lambda: ["--hold"]
    if place % 13 == 12:
        return lambda: ["--begin=now+20"]
    if place % 11 == 10:
        return lambda: [f"--dependency=afterany:{numbers[-1]}"] if numbers else []
    return list


def _submit(slurm: RunningSlurm, job: TimedJob, extra: list[str]) -> str:
    user = USERS[hash(job.at_s) % 2]
    words = ["sbatch", "--parsable", "--output=/dev/null", "--chdir=/", f"--uid={user}"]
    words += ["--ntasks-per-node=1", f"--partition={job.partition}", f"--nice={job.nice}"]
    words += [f"--nodes={job.nodes}", f"--gpus-per-node=h100:{job.gpus_per_node}"]
    words += [f"--time={job.limit_minutes}", f"--account={user}"]
    if job.tasks > 1:
        words.append(f"--array=0-{job.tasks - 1}%{max(1, job.tasks // 2)}")
    code = 3 if job.seconds < 2 else 0
    wrapped = f"--wrap=sleep {job.seconds}; exit {code}"
    return slurm.ask(*words, *extra, wrapped).strip()


def _update(slurm: RunningSlurm, *words: str) -> None:
    slurm.ask("scontrol", "update", *words)


def _cancel(slurm: RunningSlurm, number: str) -> None:
    slurm.ask("scancel", number)
