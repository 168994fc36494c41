"""Compare what `tenfold attach slurm` recorded with what `sacct` says, job by job."""

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import UNSET, Struct

from tenfold.engine.recording import events_of
from tenfold.files.slurm.accounting import read_accounting_text, sacct_command
from tenfold.model.actions import StartJob
from tenfold.model.events import (
    ActionOrdered,
    Event,
    JobCancelled,
    JobEnded,
    JobStarted,
    JobStopped,
    JobSubmitted,
)
from tenfold.model.job.recorded import RecordedJob
from tenfold.study.attach.records import STATUSES, members_of
from tenfold.study.replay.records import open_record

from .slurm import RunningSlurm

QUEUE = ("Priority", "Resources", "None", "Nodes required for job are DOWN, DRAINED")
"""The last is how `squeue` prints `Resources` where nodes that would do are drained."""
ALIKE = {
    "too-few-free": QUEUE,
    "room-scattered": QUEUE,
    "cpus-or-memory-short": QUEUE,
    "others-first": QUEUE,
    "jobs-ahead": QUEUE,
    "fragmented": QUEUE,
    "starts-now": QUEUE,
    "next-pass": QUEUE,
    "next-scheduling-pass": QUEUE,
    "held-back": QUEUE,
    "held-in-slurm": ("JobHeldUser", "JobHeldAdmin"),
    "dependency-open": ("Dependency",),
    "dependency-never-met": ("DependencyNeverSatisfied",),
    "begin-time": ("BeginTime",),
    "partition-down": ("PartitionDown", "PartitionInactive"),
    "beyond-partition": ("PartitionTimeLimit", "PartitionNodeLimit"),
    "array-full": ("JobArrayTaskLimit",),
    "required-node-unavailable": ("ReqNodeNotAvail",),
    "reserved-before-its-end": ("ReqNodeNotAvail",),
    "reservation-not-active": ("Reservation",),
    "slurm-limit": ("QOS", "Assoc"),
}
"""Slurm's reasons for each of ours; those of limits begin with these words."""


class Story(Struct, frozen=True, kw_only=True):
    """One run of a job, to the second."""

    job: str
    user: str
    state: str
    started_s: int | None
    ended_s: int | None
    nodes: tuple[str, ...]
    exit_code: int | None


def attach(
    slurm: RunningSlurm, state: Path, *arguments: str, user: str = ""
) -> subprocess.Popen[bytes]:
    """Start `tenfold attach slurm` in the background, as another user if one is named."""
    command = [sys.executable, "-m", "tenfold", "attach", "slurm", "--state-dir", str(state)]
    with (state.parent / "attach.log").open("ab") as log:
        return subprocess.Popen(
            [*command, *arguments],
            env={**slurm.environment, "HOME": str(state.parent)},
            stdout=log,
            stderr=log,
            user=user or None,
            group=None,
        )


def ask_tenfold(slurm: RunningSlurm, *arguments: str) -> str:
    """Run a command of Tenfold and return what it prints."""
    answer = subprocess.run(
        [sys.executable, "-m", "tenfold", *arguments],
        env=slurm.environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert answer.returncode in (0, 1), answer.stderr
    return answer.stdout


def accounting(slurm: RunningSlurm) -> list[RecordedJob]:
    """Return every run that Slurm recorded."""
    command = sacct_command("now-1days", "now+1days")
    answer = subprocess.run(
        command,
        env={**slurm.environment, "SLURM_TIME_FORMAT": "%s"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return read_accounting_text(answer.stdout, "sacct")


def slurm_stories(records: Iterable[RecordedJob]) -> list[Story]:
    """Return the runs of accounting that are over, as stories."""
    found: list[Story] = []
    for one in (member for record in records for member in members_of(record)):
        if one.ended_s is None or one.state in ("pending", "running", "suspended"):
            continue
        ran = one.started_s is not None
        found.append(
            Story(
                job=one.id,
                user=one.user,
                state=STATUSES.get(one.state, "failed") if ran else "cancelled",
                started_s=round(one.started_s) if one.started_s is not None else None,
                ended_s=round(one.ended_s),
                nodes=tuple(sorted(one.node_names)),
                exit_code=one.exit_code if ran else None,
            )
        )
    return sorted(found, key=_order)


def own_stories(state: Path) -> list[Story]:
    """Return the runs of the journal that are over, as stories; a requeued run counts."""
    bundle, _ = open_record(str(state))
    users: dict[str, str] = {}
    nodes: dict[str, tuple[str, ...]] = {}
    started: dict[str, int] = {}
    found: list[Story] = []
    for event in events_of(bundle.lines):
        _follow(event, users, nodes, started, found)
    return sorted(found, key=_order)


def _follow(
    event: Event,
    users: dict[str, str],
    nodes: dict[str, tuple[str, ...]],
    started: dict[str, int],
    found: list[Story],
) -> None:
    if isinstance(event, JobSubmitted):
        users[event.job.id] = event.job.user
    elif isinstance(event, ActionOrdered) and isinstance(event.action, StartJob):
        names = (str(slot.node) for slot in event.action.slots)
        nodes[event.action.job_id] = tuple(sorted(names))
    elif isinstance(event, JobStarted):
        started[event.job_id] = event.at_ms // 1_000
    elif isinstance(event, JobEnded | JobStopped | JobCancelled):
        job = str(event.job_id)
        ran = not isinstance(event, JobCancelled)
        state = "stopped" if isinstance(event, JobStopped) else "cancelled"
        code = None
        if isinstance(event, JobEnded):
            state = event.status
        if not isinstance(event, JobCancelled) and event.exit_code is not UNSET:
            code = event.exit_code
        found.append(
            Story(
                job=job,
                user=users[job],
                state=state,
                started_s=started.pop(job, None) if ran else None,
                ended_s=event.at_ms // 1_000,
                nodes=nodes.get(job, ()) if ran else (),
                exit_code=code,
            )
        )


def differences(own: Sequence[Story], theirs: Sequence[Story]) -> list[str]:
    """Return where stories differ; a run that Slurm queued again may have any state.

    Accounting has no jobs that were cancelled before they were ever eligible.
    """
    recorded = {one.job for one in theirs}
    mine = {(one.job, one.started_s, one.ended_s): one for one in own}
    problems: list[str] = []
    for one in theirs:
        key = (one.job, one.started_s, one.ended_s)
        known = mine.pop(key, None)
        if known is None:
            problems.append(f"only in sacct: {one}")
            continue
        for field in ("user", "state", "nodes", "exit_code"):
            if field == "state" and known.state == "stopped":
                continue
            if getattr(known, field) != getattr(one, field):
                problems.append(
                    f"job {one.job}: {field} is {getattr(known, field)!r}, "
                    f"sacct says {getattr(one, field)!r}"
                )
    problems += [
        f"only in the journal: {one}"
        for one in mine.values()
        if one.started_s is not None or one.job in recorded
    ]
    return problems


class Agreement(Struct):
    """Reasons of pending jobs, ours beside Slurm's."""

    jobs: int = 0
    alike: int = 0
    apart: dict[tuple[str, str], int] = {}


def agree(slurm: RunningSlurm, state: Path, into: Agreement) -> None:
    """Compare the reason of each pending job at this moment, by one command of each."""
    said = slurm.ask("squeue", "--noheader", "--array", "--states=PD", "--format=%i|%r")
    theirs = dict(line.split("|", 1) for line in said.splitlines() if "|" in line)
    listing = ask_tenfold(slurm, "job", "list", "--bundle", str(state), "--state", "pending",
                          "--json")  # fmt: skip
    ours = {row["job_id"]: row["reason"] for row in json.loads(listing)}
    for job, reason in theirs.items():
        if job not in ours:
            continue
        into.jobs += 1
        wanted = ALIKE.get(ours[job], ())
        if any(reason == one or reason.startswith(one) for one in wanted):
            into.alike += 1
        else:
            key = (ours[job], reason)
            into.apart[key] = into.apart.get(key, 0) + 1


def _order(one: Story) -> tuple[str, int, int]:
    return one.job, one.ended_s or 0, one.started_s or 0
