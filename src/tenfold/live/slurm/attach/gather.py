"""Read everything that an ordinary user may see of a Slurm cluster, once.

Accounting is read backwards in windows, so that no single query is large: each window is sized by
how long the last one took, and reading stops when its time is up.
"""

import os
from collections.abc import Callable, Mapping
from time import monotonic

from msgspec import Struct, field

from tenfold.files.slurm.accounting import read_accounting_text, sacct_command
from tenfold.live.slurm.commands import CommandCost, CommandFailed, SlurmCommands
from tenfold.model.errors import Unreachable
from tenfold.model.job.recorded import RecordedJob

WINDOW_S = 86_400.0
"""The first window of accounting that is asked for."""
WINDOW_MOST_S = 14 * 86_400.0
WINDOW_LEAST_S = 3_600.0
QUERY_S = 3.0
"""A query should take about this long."""
ROWS_MOST = 500_000
_OWN_SETTINGS = ("SQUEUE_", "SCONTROL_", "SACCT_")
EMPTY_DAYS = 45.0
"""After so long without a job, the history is taken to begin."""


class SlurmOutput(Struct, kw_only=True):
    """What Slurm's commands printed."""

    nodes: str = ""
    partitions: str = ""
    config: str = ""
    queue: str = ""
    jobs: list[RecordedJob] = []
    """From accounting, newest window first."""
    now_s: float = 0.0
    from_s: float = 0.0
    """The beginning of the accounting that was read."""
    unseen: list[tuple[str, str]] = []
    """What could not be read, and what would let it."""
    cost: CommandCost = field(default_factory=CommandCost)


class AccountingLimits(Struct, frozen=True, kw_only=True):
    """How far back to read accounting, and how long that may take."""

    days: float = 90.0
    seconds: float = 40.0


def slurm_environment(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment in which Slurm prints everything, with times as seconds since 1970.

    Without `*_ALL`, partitions that are hidden from this user are left out, with their nodes and
    jobs. What a user's shell sets for these commands (`SQUEUE_STATES`) would leave out more.
    """
    given = os.environ if environment is None else environment
    kept = {name: value for name, value in given.items() if not name.startswith(_OWN_SETTINGS)}
    return {**kept, "SLURM_TIME_FORMAT": "%s", "SQUEUE_ALL": "1", "SCONTROL_ALL": "1"}


def gather(
    commands: SlurmCommands,
    now_s: float,
    limits: AccountingLimits,
    progress: Callable[[str], None],
) -> SlurmOutput:
    """Return what the commands print; what cannot be read is named, the rest is still used."""
    found = SlurmOutput(now_s=now_s, from_s=now_s, cost=commands.cost, unseen=[], jobs=[])
    progress("reading nodes, partitions and settings")
    # Without its nodes there is nothing to say about a cluster: this one may raise.
    found.nodes = commands.run("scontrol", "show", "nodes")
    found.partitions = commands.run("scontrol", "show", "partitions", "--oneliner")
    found.config = commands.run("scontrol", "show", "config")
    progress("reading the queue")
    try:
        found.queue = commands.run("squeue", "--json")
    except CommandFailed:
        found.unseen.append(
            ("the queue", "`squeue --json` (Slurm 21.08 or newer, built with JSON)")
        )
    read_back(commands, found, limits, progress)
    return found


def read_back(
    commands: SlurmCommands,
    found: SlurmOutput,
    limits: AccountingLimits,
    progress: Callable[[str], None],
) -> None:
    """Read accounting backwards, window by window, until its days, rows or time are used up."""
    began_s, oldest_s = monotonic(), found.now_s - limits.days * 86_400
    until_s, window_s, empty_s = found.now_s + 1, WINDOW_S, 0.0
    seen: dict[tuple[str, float, float | None], RecordedJob] = {}
    while until_s > oldest_s and empty_s < EMPTY_DAYS * 86_400:
        since_s = max(oldest_s, until_s - window_s)
        query_s = monotonic()
        try:
            text = commands.run(*sacct_command(_moment(since_s), _moment(until_s)))
        except Unreachable as failure:
            found.unseen.append(("jobs that ended", _accounting_hint(found.config, failure)))
            return
        for job in read_accounting_text(text, "sacct"):
            # A job that ran on reaches into several windows; the newest says most.
            seen.setdefault((job.id, job.submitted_s, job.started_s), job)
        found.jobs = list(seen.values())
        found.from_s, until_s = since_s, since_s
        empty_s = 0.0 if text.count("\n") > 1 else empty_s + window_s
        days = (found.now_s - since_s) / 86_400
        progress(f"reading accounting: {len(found.jobs):,} jobs of {days:.1f} days")
        took_s = monotonic() - query_s
        if len(found.jobs) >= ROWS_MOST or monotonic() - began_s > limits.seconds:
            found.unseen.append(
                (
                    f"jobs older than {days:.0f} days",
                    "a larger `--seconds`: reading accounting stopped when its time was up",
                )
            )
            return
        window_s = min(WINDOW_MOST_S, max(WINDOW_LEAST_S, window_s * min(4, QUERY_S / took_s)))


def _moment(seconds: float) -> str:
    """Return a moment as `sacct` takes it in any time zone."""
    return f"uts{seconds:.0f}"


def _accounting_hint(config: str, failure: Unreachable) -> str:
    kind = next(
        (line.partition("=")[2].strip() for line in config.splitlines() if _is_storage(line)), ""
    )
    if "slurmdbd" not in kind:
        return f"slurmdbd: accounting here is `{kind or 'off'}`, which keeps no history"
    return f"access to slurmdbd: {failure.message}"


def _is_storage(line: str) -> bool:
    return line.startswith("AccountingStorageType")
