"""What `tenfold top` shows, read from the control plane; it changes nothing.

Jobs are read in pages, active ones first, up to a limit. If no event was recorded since the last
reading, the jobs are not read again: ages and run times are moved on by the time that passed.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from time import monotonic

from msgspec import UNSET, Struct
from msgspec.structs import replace

from tenfold.cli.job.columns import COLUMNS, nodes_of, short_nodes
from tenfold.cli.job.endings import failed_line
from tenfold.cli.job.listing import ListFilters, find_jobs
from tenfold.cli.status import ACTIVE, node_alarms, queue_alarms
from tenfold.client.client import Client
from tenfold.model.api.fleet import FleetStatus
from tenfold.model.api.jobs import Job
from tenfold.model.errors import TenfoldError
from tenfold.model.job.users import is_user
from tenfold.report.visible import visible, visible_line

LOG_LINES = 15
STALE_READS = 15
"""Readings after which jobs are read again although nothing was recorded: their usage changes."""
RUNNING = ("starting", "running", "stopping")
"""States in which the run time of a job grows."""
HEADINGS = ("job", "team", "user", "state", "GPUs", "age", "elapsed", "nodes", "reason")
NUMERIC = ("GPUs", "age", "elapsed")

Row = tuple[str, ...]


class TopFilter(Struct, frozen=True, kw_only=True):
    """Which jobs are shown; empty means any."""

    team: str = ""
    user: str = ""
    state: str = ""

    @property
    def text(self) -> str:
        """The filter as it is typed: `team=red state=pending`."""
        parts = {"team": self.team, "user": self.user, "state": self.state}
        return " ".join(f"{name}={value}" for name, value in parts.items() if value)

    def matches(self, job: Job) -> bool:
        """Return whether a job is shown."""
        if self.user and not is_user(self.user, "" if job.user is UNSET else job.user):
            return False
        wanted = ((self.team, job.team), (self.state, job.state))
        return all(not one or one == other for one, other in wanted)


def parse_filter(text: str) -> TopFilter | str:
    """Return the filter that was typed, or what is wrong with it."""
    found: dict[str, str] = {}
    for part in text.split():
        name, _, value = part.partition("=")
        if name not in ("team", "user", "state") or not value:
            return f"cannot read `{part}`: write team=NAME, user=NAME or state=STATE"
        found[name] = value
    return TopFilter(**found)


class Reading(Struct, frozen=True, kw_only=True):
    """The control plane at one time."""

    fleet: FleetStatus
    jobs: tuple[Job, ...]
    at: str
    alarms: tuple[str, ...]


class TopReader:
    """Reads the control plane; called from a thread, one call at a time."""

    def __init__(self, limit: int = 1_000) -> None:
        self._limit = limit
        self._client: Client | None = None
        self._last: Reading | None = None
        self._unread = 0
        self._read_s = 0.0
        """When the jobs were read, on the clock that only moves forward."""

    def read(self) -> Reading:
        """Return the fleet, jobs and alarms now."""
        if self._client is None:
            self._client = Client()
        client = self._client
        fleet, last = client.fleet(), self._last
        self._unread += 1
        is_same = last is not None and last.fleet.event == fleet.event
        if last is not None and is_same and self._unread < STALE_READS:
            return moved_on(last, fleet, monotonic() - self._read_s)
        self._unread, self._read_s = 0, monotonic()
        jobs: dict[str, Job] = {}
        at = fleet.at or ""
        for state in (*ACTIVE, None):
            left = self._limit - len(jobs)
            if left <= 0:
                break
            listing = find_jobs(client, ListFilters(limit=left), state, None)
            jobs.update((job.id, job) for job in listing.jobs)
            at = listing.at or at
        alarms = tuple(visible_line(one) for one in self._alarms(client, fleet))
        self._last = Reading(fleet=fleet, jobs=tuple(jobs.values()), at=at, alarms=alarms)
        return self._last

    def details(self, job_id: str) -> str:
        """Return a job's state, why it waits or its history, and the end of its log.

        It has a connection of its own, because it may take long and runs beside `read`.
        """
        with Client() as client:
            return visible("\n".join(self._details(client, job_id)))

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()

    def _alarms(self, client: Client, fleet: FleetStatus) -> Iterator[str]:
        yield from node_alarms(client, fleet)
        yield from queue_alarms(client, fleet)

    def _details(self, client: Client, job_id: str) -> Iterator[str]:
        job = client.job(job_id)
        yield visible_line(f"{job.id} (team {job.team}): {job.state}")
        why = client.why(job_id, seek="none")
        yield visible_line(f"reason: {why.reason.sentence} [{why.reason.code}]")
        for rule in (why.why or {}).get("rules", ()):
            yield visible_line(f"rule: {rule['reason'].get('sentence', '')}")
        for one in () if why.history is UNSET else why.history:
            yield visible_line(f"{one.at[11:19]} {one.event}: {one.reason.sentence}")
        if job.attempts:
            failed = job.attempts[-1].failed_member
            if failed_line(job):
                yield visible_line(failed_line(job))
            yield from self._log(client, job_id, 0 if failed is UNSET else failed)

    def _log(self, client: Client, job_id: str, member: int) -> Iterator[str]:
        try:
            lines = client.logs(job_id, member=member, lines=LOG_LINES).splitlines()
        except TenfoldError as problem:
            lines = [problem.message]
        yield ""
        yield from (visible_line(line) for line in lines or ["(the log is empty)"])


def moved_on(last: Reading, fleet: FleetStatus, passed_s: float) -> Reading:
    """Return the last reading as it is this much later: only the clock and durations move."""
    jobs = tuple(
        replace(job, elapsed_s=job.elapsed_s + passed_s)
        if job.state in RUNNING and job.elapsed_s is not UNSET
        else job
        for job in last.jobs
    )
    at = last.at
    if at:
        later = datetime.fromisoformat(at) + timedelta(seconds=passed_s)
        at = later.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Reading(fleet=fleet, jobs=jobs, at=at, alarms=last.alarms)


def row_of(job: Job, at: str) -> Row:
    """Return the cells of a job, escaped for a terminal."""
    cells = {name: COLUMNS[name].text(job, at) for name in ("gpus", "age", "elapsed", "reason")}
    user = "" if job.user is UNSET else job.user
    nodes = short_nodes(nodes_of(job))
    row = (job.id, job.team, user, job.state, cells["gpus"], cells["age"], cells["elapsed"])
    return tuple(visible_line(cell) for cell in (*row, nodes, cells["reason"]))


def sort_value(job: Job, heading: str) -> tuple[float, str]:
    """Return what a job is sorted by in a column."""
    if heading == "GPUs":
        return (0.0 if job.gpus is UNSET else job.gpus), job.id
    if heading == "elapsed":
        return (0.0 if job.elapsed_s is UNSET else job.elapsed_s), job.id
    if heading == "age":
        # The oldest submission has the greatest age; times in ISO 8601 sort as text.
        submitted = job.submitted_at
        return 0.0, submitted if isinstance(submitted, str) else ""
    texts = {"job": job.id, "team": job.team, "state": job.state, "reason": job.reason.code}
    texts |= {"user": "" if job.user is UNSET else job.user, "nodes": " ".join(nodes_of(job))}
    return 0.0, texts[heading]


def gauge(fleet: FleetStatus, width: int) -> str:
    """Return the GPUs of the fleet as a bar with numbers."""
    total = sum(fleet.gpus.values())
    held = fleet.gpus.get("held", 0)
    filled = round(width * held / total) if total else 0
    away = {name: fleet.gpus.get(name, 0) for name in ("free", "cordoned", "down")}
    rest = ", ".join(f"{number:,} {name}" for name, number in away.items() if number)
    bar = "\u2588" * filled + "\u2591" * (width - filled)
    return f"GPUs {bar} {held:,} of {total:,} allocated{f' ({rest})' if rest else ''}"


def queue_line(fleet: FleetStatus) -> str:
    """Return the jobs by state in one line."""
    parts = [f"{fleet.jobs[state]:,} {state}" for state in ACTIVE if fleet.jobs.get(state)]
    nodes = ", ".join(f"{number:,} {state}" for state, number in fleet.nodes.items() if number)
    return f"jobs {', '.join(parts) or 'none active'}; nodes {nodes or 'none'}"
