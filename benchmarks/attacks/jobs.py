"""Jobs that are started for ever, what the control plane reads of theirs, and what they leave."""

import os
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from time import monotonic, perf_counter, sleep
from typing import Any

from benchmarks.attacks.target import API, Finding, Target, Tree, answered, wait

OWN_USER = ("--virtual-nodes", "2", "--team-users", "off")
"""Otherwise a job may send its supervisor no signal, where the tests run as root."""
WATCHED_S = 60.0
ATTEMPTS_MOST = 10
"""Waits of 1, 2, 4, 8, 16 and 32 seconds between attempts let 7 begin in a minute."""
NESTED_S = 20.0
FORGED = (
    "for n in 1 2 3 4 5 6 7 8 9 10 11 12; do "
    "d=ckpt/step-000000000$((n % 10))-save-0000$((n + 10)); mkdir -p $d; "
    "truncate -s 1G $d/manifest.json; done; exit 1"
)
READ_S, RSS_MIB = 5.0, 64.0
GROUPS_S = 20.0
ABANDONED_S = 62.0
"""Groups that are younger are left alone: a spawner may be about to use them."""
FORGED_S = 40.0


def retries(tree: Tree) -> Iterator[Finding]:
    """A job that kills its supervisor, and a start that can never work, are not tried for ever."""
    with Target(tree, *OWN_USER) as target:
        made = target.submit({"command": ["sh", "-c", "kill -9 $PPID; sleep 600"]})
        job_id = made.json()["id"]
        began_s, attempts = monotonic(), 0
        while monotonic() - began_s < WATCHED_S:
            sleep(1)
        shown = target.job(job_id)
        attempts = _attempts(shown)
        other = target.submit({"command": ["true"]}, team="blue").status
        yield Finding(
            "kill -9 $PPID",
            f"{made.status}; {attempts} attempts in {WATCHED_S:.0f} s, state {shown['state']};"
            f" readyz {target.readyz().status}, blue {other}",
            attempts <= ATTEMPTS_MOST and other == 201,
            f"at most {ATTEMPTS_MOST} attempts in {WATCHED_S:.0f} s, blue 201",
        )
    with Target(tree, *OWN_USER) as target:
        # Created where it does not exist, one folder in the other.
        made = target.submit({"command": ["true"], "workdir": "d/" * 1_900})
        attempts = 0
        if made.status == 201:
            sleep(NESTED_S)
            attempts = _attempts(target.job(made.json()["id"]))
        yield Finding(
            "a work folder 1,900 levels deep",
            f"{answered(made)}; {attempts} attempts in {NESTED_S:.0f} s;"
            f" readyz {target.readyz().status}",
            attempts <= ATTEMPTS_MOST and target.readyz().status == 200,
            f"at most {ATTEMPTS_MOST} attempts, readyz 200",
        )


def _attempts(shown: dict[str, Any]) -> int:
    return max((int(one["number"]) for one in shown["attempts"]), default=0)


def sparse_manifests(tree: Tree) -> Iterator[Finding]:
    """Fake checkpoint manifests of 1 GiB cost neither memory nor answers."""
    with Target(tree) as target:
        for team in ("red", "blue"):
            target.token("member", team)
        target.submit({"command": ["true"]}, team="blue")
        rss = target.rss_mib()
        target.forget_peak()
        ask = {"command": ["sh", "-c", FORGED], "checkpoint": {"dir": "ckpt"}}
        job_id = target.submit(ask).json()["id"]
        longest_s, failed, sent, ends_s = 0.0, 0, 0, monotonic() + FORGED_S
        with target.wire("blue") as blue:
            while monotonic() < ends_s and not target.stopped:
                began_s = perf_counter()
                failed += blue.post(f"{API}/jobs", {"command": ["true"]}).status != 201
                longest_s = max(longest_s, perf_counter() - began_s)
                sent += 1
                sleep(0.1)
            attempts = _attempts(target.job(job_id))
        peak = target.peak_mib()
        yield Finding(
            "12 sparse manifests of 1 GiB",
            f"{sent} submissions of blue, {failed} failed, longest {longest_s:.2f} s;"
            f" RSS {rss:,.0f} -> {peak:,.0f} MiB; {attempts} attempts",
            longest_s <= READ_S and not failed and peak - rss <= RSS_MIB,
            f"longest {READ_S:.0f} s, RSS +{RSS_MIB:.0f} MiB, none failed",
        )


def control_groups(tree: Tree) -> Iterator[Finding]:
    """A job has a limit of processes; killed supervisors leave no control group for ever."""
    if not os.access("/sys/fs/cgroup/pids", os.W_OK):
        yield Finding("control groups", "not tried: no pids controller of version 1", True, "")
        return
    with Target(tree) as target:
        ask = {"command": ["sleep", "600"], "cpus_per_node": 0.5, "memory_gib_per_node": 0.1}
        jobs = [target.submit(ask).json()["id"] for _ in range(3)]
        for job_id in jobs:
            wait(lambda: target.job(job_id)["state"] == "running", 30)  # noqa: B023
        name = target.control_group
        most = [(one / "pids.max").read_text().strip() for one in _groups(name, "pids")]
        yield Finding(
            "a job's limit of processes",
            f"pids.max {', '.join(most) or 'of no group'}",
            len(most) == len(jobs) and all(one.isdigit() for one in most),
            "a number for each job",
        )
        target.kill_all()
        left = len(_groups(name))
        target.start()
        for job_id in jobs:
            with target.wire() as red:
                red.delete(f"{API}/jobs/{job_id}")
            target.end_of(job_id)
        # A supervisor waits a moment for another job before it goes.
        wait(lambda: not _groups(name), GROUPS_S)
        after = len(_groups(name))
        yield Finding(
            "control groups of jobs whose supervisors and spawner were killed",
            f"{left} left by the kill, {after} after a restart and their end",
            not after,
            "none after a restart and their end",
        )


def abandoned_groups(tree: Tree) -> Iterator[Finding]:
    """The control groups of a state directory that is gone are removed by the next spawner."""
    if not os.access("/sys/fs/cgroup/pids", os.W_OK):
        yield Finding("control groups", "not tried: no pids controller of version 1", True, "")
        return
    limited = {"command": ["true"], "cpus_per_node": 0.5, "memory_gib_per_node": 0.1}
    with Target(tree) as gone:
        gone.end_of(gone.submit(limited).json()["id"])
        name = gone.control_group
        gone.kill_all()
        rmtree(gone.state)
        left = len(_bases(name))
        sleep(ABANDONED_S)
        with Target(tree) as other:
            other.end_of(other.submit(limited).json()["id"])
            wait(lambda: not _bases(name), GROUPS_S)
        after = len(_bases(name))
        for one in _bases(name):
            one.rmdir()
        yield Finding(
            "empty control groups of a state directory that is gone",
            f"{left} left by the kill, {after} once another control plane ran a job",
            not after,
            "none",
        )


def _bases(name: str, controller: str = "*") -> list[Path]:
    """Return the control groups of a state directory."""
    return [one for one in Path("/sys/fs/cgroup").glob(f"{controller}/**/{name}") if one.is_dir()]


def _groups(name: str, controller: str = "*") -> list[Path]:
    """Return the control groups of the jobs of a state directory."""
    return [one for base in _bases(name, controller) for one in base.iterdir() if one.is_dir()]
