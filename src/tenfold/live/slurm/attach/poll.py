"""Read what a Slurm cluster says now, again and again, at a bounded cost.

A reading is three commands to the controller (nodes, partitions, queue) and, where jobs ended, one
to the accounting database. What seldom changes is read seldom. `sdiag` says how long the
controller worked for this user, from which the pause between readings follows.
"""

import os
import pwd
import re
from collections.abc import Callable, Sequence
from math import inf
from time import monotonic

from msgspec import Struct, field
from msgspec.structs import replace

from tenfold.files.slurm.accounting import read_accounting_text, sacct_command
from tenfold.files.slurm.queue import read_queue
from tenfold.files.slurm.settings import (
    ACCOUNT_COMMAND,
    PARTITION_COMMAND,
    QOS_COMMAND,
    RESERVATION_COMMAND,
)
from tenfold.live.slurm.attach.gather import AccountingLimits, SlurmOutput, read_back
from tenfold.live.slurm.commands import CommandFailed, SlurmCommands, has_no_json
from tenfold.model.errors import Unreachable
from tenfold.model.job.recorded import RecordedJob

OVERLAP_S = 120.0
"""Accounting is read again from so long before the last reading: it is written late."""
WINDOW_S = 86_400.0
"""One query of accounting covers at most this."""
SELDOM_S = 300.0
"""Configuration, reservations and limits are read this often."""
ACCOUNTING_S = 60.0
"""Accounting is read at least this often."""
COST_EVERY = 10
"""Readings between two looks at what they cost the controller."""
LOOKED_UP_MOST = 500
"""Jobs in one query."""
_USER = re.compile(
    r"^\s+(?P<user>\S+)\s+\(\s*\d+\)\s+count:(?P<count>\d+)\s.*total_time:(?P<us>\d+)"
)


class Printed(Struct, kw_only=True):
    """What the commands of one reading printed."""

    now_s: float
    nodes: str
    partitions: str
    queue: tuple[RecordedJob, ...]
    bookings: str = ""
    qos: str = ""
    accounts: str = ""
    config: str = ""
    accounting: tuple[RecordedJob, ...] = ()


class LookUp(Struct, frozen=True, kw_only=True):
    """What accounting says of single jobs."""

    jobs: tuple[RecordedJob, ...] = ()
    lag_s: float = 0.0
    """How long it may take to show a job that left the queue; infinite while it does not answer."""


class PollCost(Struct, kw_only=True):
    """What reading has cost so far."""

    readings: int = 0
    calls: int = 0
    seconds: float = 0.0
    bytes_read: int = 0
    rpcs: int = 0
    """Requests that the controller answered for this user, by `sdiag`."""
    rpc_s: float = 0.0
    """Time it spent on them; other commands of this user count as well."""
    rpc_readings: int = 0
    """The readings that these are of."""


class _Seldom(Struct):
    """Texts that seldom change, and when they were read."""

    texts: dict[str, str] = field(default_factory=dict)
    at_s: float = -SELDOM_S


class SlurmPoller:
    """The commands of one cluster."""

    def __init__(self, commands: SlurmCommands, since_s: float | None = None) -> None:
        """`since_s` is the time of the last reading that is recorded, if there is one."""
        self._commands = commands
        self._since_s = since_s
        self._seldom = _Seldom()
        self._accounting_s = -ACCOUNTING_S
        self._has_accounting = True
        self._has_json = True
        self._spent: tuple[int, float] | None = None
        self._user = user_name(os.geteuid())
        self.cost = PollCost()
        self.controller_s = 0.0
        """How long the controller's three commands of the last reading took."""

    def read(
        self,
        now_s: float,
        limits: AccountingLimits,
        progress: Callable[[str], None] = lambda text: None,
    ) -> Printed:
        """Return one reading; raise `Unreachable` if the controller does not answer."""
        run, began_s = self._commands.run, monotonic()
        nodes = run("scontrol", "show", "nodes")
        partitions = run(*PARTITION_COMMAND)
        queued = self._queue()
        self.controller_s = monotonic() - began_s
        queue = read_queue(queued, "the queue")
        self._read_seldom()
        printed = Printed(
            now_s=now_s,
            nodes=nodes,
            partitions=partitions,
            queue=tuple(queue),
            bookings=self._seldom.texts.get("bookings", ""),
            qos=self._seldom.texts.get("qos", ""),
            accounts=self._seldom.texts.get("accounts", ""),
            config=self._seldom.texts.get("config", ""),
        )
        if self._since_s is None:
            printed.accounting = self._history(now_s, limits, progress)
        elif self._is_due(queue):
            printed.accounting = self._accounting(self._since_s - OVERLAP_S, now_s)
        self._since_s = now_s
        self.cost.readings += 1
        if self.cost.readings % COST_EVERY == 1:
            self._read_cost()
        self._count()
        return printed

    def look_up(self, jobs: Sequence[str]) -> LookUp:
        """Return what accounting says of single jobs."""
        if not jobs or not self._has_accounting:
            return LookUp()
        first, *rest = sacct_command("uts0")
        words = [word for word in rest if not word.startswith(("--starttime", "--endtime"))]
        found: list[RecordedJob] = []
        for start in range(0, len(jobs), LOOKED_UP_MOST):
            numbers = ",".join(jobs[start : start + LOOKED_UP_MOST])
            rows = self._sacct((first, *words, "--starttime=uts0", f"--jobs={numbers}"))
            if rows is None:
                return LookUp(jobs=tuple(found), lag_s=inf)
            found += rows
        self._count()
        return LookUp(jobs=tuple(found), lag_s=OVERLAP_S)

    @property
    def rpc_s_per_reading(self) -> float:
        """How long the controller works for a reading, by `sdiag`."""
        return self.cost.rpc_s / max(1, self.cost.rpc_readings)

    def _queue(self) -> str:
        """Return the queue as JSON, or as text where this Slurm has no JSON."""
        if self._has_json:
            try:
                return self._commands.run("squeue", "--json")
            except CommandFailed as failure:
                if not has_no_json(failure.stderr):
                    raise
                self._has_json = False
        return self._commands.run("scontrol", "show", "jobs", "--details")

    def _is_due(self, queue: Sequence[RecordedJob]) -> bool:
        since_s = self._since_s or 0.0
        ended = any(job.ended_s is not None and job.ended_s >= since_s - 5 for job in queue)
        return ended or monotonic() - self._accounting_s >= ACCOUNTING_S

    def _history(
        self, now_s: float, limits: AccountingLimits, progress: Callable[[str], None]
    ) -> tuple[RecordedJob, ...]:
        found = SlurmOutput(now_s=now_s, from_s=now_s, unseen=[], jobs=[])
        read_back(self._commands, found, limits, progress)
        self._has_accounting = bool(found.jobs) or not found.unseen
        self._accounting_s = monotonic()
        return tuple(_named(job) for job in found.jobs)

    def _accounting(self, from_s: float, now_s: float) -> tuple[RecordedJob, ...]:
        if not self._has_accounting:
            return ()
        jobs: list[RecordedJob] = []
        while from_s < now_s + 1:
            until_s = min(from_s + WINDOW_S, now_s + 1)
            jobs += self._sacct(sacct_command(f"uts{from_s:.0f}", f"uts{until_s:.0f}")) or ()
            from_s = until_s
        self._accounting_s = monotonic()
        return tuple(jobs)

    def _sacct(self, command: Sequence[str]) -> tuple[RecordedJob, ...] | None:
        """Return the rows of a query; None while the accounting database is away."""
        try:
            text = self._commands.run(*command)
        except Unreachable:
            # The next reading covers this time again; the queue has recent ends as well.
            return None
        return tuple(_named(job) for job in read_accounting_text(text, "sacct"))

    def _read_seldom(self) -> None:
        if monotonic() - self._seldom.at_s < SELDOM_S:
            return
        texts = self._seldom.texts
        texts["config"] = self._commands.run("scontrol", "show", "config")
        texts["bookings"] = self._optional(RESERVATION_COMMAND)
        if self._has_accounting:
            texts["qos"] = self._optional(QOS_COMMAND)
            texts["accounts"] = self._optional(ACCOUNT_COMMAND)
        self._seldom.at_s = monotonic()

    def _optional(self, command: Sequence[str]) -> str:
        try:
            return self._commands.run(*command)
        except Unreachable:
            return ""

    def _read_cost(self) -> None:
        """Add what `sdiag` counts for this user since the last look."""
        text = self._optional(("sdiag",))
        rows = [found for line in text.splitlines() if (found := _USER.match(line))]
        own = next((found for found in rows if found["user"] == self._user), None)
        if own is None:
            return
        now = int(own["count"]), int(own["us"]) / 1e6
        if self._spent is not None and now[0] >= self._spent[0]:
            self.cost.rpcs += now[0] - self._spent[0]
            self.cost.rpc_s += now[1] - self._spent[1]
            self.cost.rpc_readings += COST_EVERY
        self._spent = now

    def _count(self) -> None:
        cost = self._commands.cost
        self.cost.calls, self.cost.seconds = cost.calls, cost.seconds
        self.cost.bytes_read = cost.bytes_read


def user_name(uid: int) -> str:
    """Return the name of a user, or the number where there is none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _named(job: RecordedJob) -> RecordedJob:
    """Return a record whose canceller has a name; accounting keeps a number."""
    by = job.cancelled_by
    return replace(job, cancelled_by=user_name(int(by))) if by.isdecimal() else job
