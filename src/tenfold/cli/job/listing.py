"""`tenfold job list` against the running control plane: filters, columns, totals, watching."""

import re
from collections.abc import Sequence
from shutil import get_terminal_size
from sys import stdout
from time import sleep
from typing import TYPE_CHECKING, get_args

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from tenfold.cli.job.columns import (
    COLUMNS,
    Column,
    columns_of,
    default_columns,
    nodes_of,
    second_of,
)
from tenfold.cli.job.names import id_of
from tenfold.cli.output import clear_screen, print_json, print_line, print_note, show, table
from tenfold.cli.timestamps import parse_timestamp
from tenfold.client.client import Client
from tenfold.model.api.jobs import PAGE_MAX, Job
from tenfold.model.errors import InputError, Unreachable
from tenfold.model.job.array_spec import fold_indexes
from tenfold.model.job.job import JobState
from tenfold.report.figures import count

if TYPE_CHECKING:
    from rich.table import Table

TIMEOUT, NO_MEMORY = ("timeout",), ("out-of-memory", "allocation-failed")
"""Without control groups only the program's output says that an allocation failed."""
SLURM_STATES: dict[str, tuple[JobState, tuple[str, ...]]] = {
    "pd": ("pending", ()),
    "cf": ("starting", ()),
    "configuring": ("starting", ()),
    "r": ("running", ()),
    "cg": ("stopping", ()),
    "completing": ("stopping", ()),
    "cd": ("succeeded", ()),
    "completed": ("succeeded", ()),
    "f": ("failed", ()),
    "ca": ("cancelled", ()),
    "to": ("failed", TIMEOUT),
    "timeout": ("failed", TIMEOUT),
    "oom": ("failed", NO_MEMORY),
    "out_of_memory": ("failed", NO_MEMORY),
    "out-of-memory": ("failed", NO_MEMORY),
}
"""Slurm's states: the state here, and the reasons if the state has others too."""
PAGES_MOST = 10
"""Pages that are read for jobs with a certain reason."""
STATES: tuple[JobState, ...] = get_args(JobState)
FRAME_LINES = 5
"""Lines around the table of a watched listing: its time, the headings, the count."""
INTERVAL_S = 2.0
FORECASTS_MOST = 10
"""Pending jobs, oldest first, whose start is forecast for the column `eta`."""
COUNTED_MOST = 1_000_000
"""The control plane counts no further."""


class ListFilters(Struct, frozen=True, kw_only=True):
    """Which jobs to list."""

    team: str | None = None
    user: str | None = None
    mine: bool = False
    """Only jobs submitted with this token's name."""
    state: str | None = None
    since: str | None = None
    """As the user wrote it."""
    array: str | None = None
    limit: int = 100
    idle: bool = False


class ListOptions(Struct, frozen=True, kw_only=True):
    """How to print the jobs."""

    columns: str | None = None
    """Names of columns, with commas."""
    watch: bool = False
    interval_s: float = INTERVAL_S
    as_json: bool = False


class Listing(Struct, frozen=True, kw_only=True):
    """Jobs, newest first, and how many there are in all."""

    jobs: tuple[Job, ...]
    total: int | None = None
    """None if the control plane does not count them."""
    at: str = ""
    whole: Job | None = None
    """The array they belong to, if it was named."""


def list_jobs(filters: ListFilters, options: ListOptions) -> None:
    """Print jobs, newest first; with `watch`, again and again."""
    columns = None if options.columns is None else columns_of(options.columns)
    if options.watch and options.as_json:
        raise InputError(
            "two-questions",
            "--watch and --json cannot be used together",
            "run `tenfold job list --json` as often as you need it",
        )
    states = checked_states(filters.state)
    since = None if filters.since is None else parse_timestamp(filters.since, "--since")
    with Client() as client:
        if filters.mine:
            filters = replace(filters, user=client.who_am_i().name)
        if filters.array is not None:
            filters = replace(filters, array=id_of(client, filters.array).partition("[")[0])
        if options.watch:
            _watch(client, filters, (states, since), columns, options.interval_s)
            return
        found = find_in_states(client, filters, states, since)
        if columns is not None and COLUMNS["eta"] in columns:
            found = replace(found, jobs=with_forecasts(client, found.jobs))
        if columns is not None and COLUMNS["gpu_hours"] in columns:
            found = replace(found, jobs=_with_gpu_hours(client, found.jobs))
    if options.as_json:
        print_json(found.jobs)
        _note_rest(found)
    elif columns is not None:
        print_columns(found, columns)
        _note_rest(found)
    else:
        show_jobs(found)


def with_forecasts(client: Client, jobs: Sequence[Job]) -> tuple[Job, ...]:
    """Return jobs with the expected starts of the oldest pending ones: each is simulated.

    Members of an array in one line have the expected start of the first of them.
    """
    waiting = [job.id for job in jobs if job.state == "pending" and job.eta is None]
    chosen = set(waiting[-FORECASTS_MOST:])
    if len(waiting) > len(chosen):
        print_note(
            f"expected starts of the {FORECASTS_MOST} oldest of {len(waiting):,} pending jobs; "
            "`tenfold job why JOB` forecasts one"
        )
    return tuple(_with_forecast(client, job) if job.id in chosen else job for job in jobs)


def _with_forecast(client: Client, job: Job) -> Job:
    first = re.sub(r"\[([0-9]+).*", r"[\1]", job.id)
    found = client.job(first, eta=True)
    if found.state != "pending":
        return job
    if found.eta is None and found.eta_unknown is not UNSET:
        print_note(f"`{job.id}`: expected start unknown ({found.eta_unknown})")
    return replace(job, eta=found.eta)


def _with_gpu_hours(client: Client, jobs: Sequence[Job]) -> tuple[Job, ...]:
    """Return jobs with the GPU-hours of all their attempts, which a page does not have."""
    return tuple(
        replace(job, gpu_hours=client.job(job.id).gpu_hours if job.gpus and job.attempts else 0.0)
        for job in jobs
    )


def checked_states(text: str | None) -> tuple[JobState, ...]:
    """Return job states that are separated by commas; none for all of them."""
    names = () if text is None else tuple(text.split(","))
    return tuple(dict.fromkeys(checked_state(name.strip().lower()) for name in names))


def reasons_in(text: str | None) -> tuple[str, ...]:
    """Return the reasons of failed jobs that states such as `timeout` stand for; none for all."""
    names = () if text is None else tuple(name.strip().lower() for name in text.split(","))
    found = [SLURM_STATES.get(name, (name, ())) for name in names]
    if ("failed", ()) in found:
        return ()
    return tuple(dict.fromkeys(reason for _, reasons in found for reason in reasons))


def checked_state(text: str) -> JobState:
    """Return a job state, also by Slurm's name for it; raise if there is no such state."""
    for state in STATES:
        if text == state:
            return state
    if text in SLURM_STATES:
        return SLURM_STATES[text][0]
    raise InputError(
        "unknown-state",
        f"`{text}` is not a job state",
        f"valid states: {', '.join(STATES)}, timeout, oom; Slurm's codes such as PD also work",
        field="--state",
    )


def find_in_states(
    client: Client, filters: ListFilters, states: tuple[JobState, ...], since: str | None
) -> Listing:
    """Return jobs in any of these states, newest first; in all states if there are none."""
    if len(states) < 2:
        return find_jobs(client, filters, states[0] if states else None, since)
    found = [find_jobs(client, filters, state, since) for state in states]
    jobs = {job.id: job for one in found for job in one.jobs}
    newest = sorted(jobs.values(), key=lambda job: job.submitted_at or "", reverse=True)
    totals = [one.total for one in found if one.total is not None]
    return replace(
        found[0],
        jobs=tuple(newest[: filters.limit]),
        total=sum(totals) if len(totals) == len(found) else None,
    )


def find_jobs(
    client: Client, filters: ListFilters, state: JobState | None, since: str | None
) -> Listing:
    """Return jobs up to the limit, fetching no more pages than needed."""
    found: list[Job] = []
    before, total, at = None, UNSET, ""
    reasons = reasons_in(filters.state) if state == "failed" else ()
    pages = 0
    while (left := filters.limit - len(found)) > 0 and pages < PAGES_MOST:
        pages += bool(reasons)
        page = client.page(
            team=filters.team,
            user=filters.user,
            state=state,
            since=since,
            array=filters.array,
            before=before,
            limit=PAGE_MAX if reasons else min(left, PAGE_MAX),
            idle=filters.idle,
            count=before is None,
        )
        found += [job for job in page.jobs if not reasons or job.reason.code in reasons]
        if before is None:
            total, at = page.total, page.at or ""
        before = page.next
        if before is None:
            break
    whole = client.job(filters.array) if filters.array is not None else None
    if reasons:
        found, total = found[: filters.limit], UNSET
    return Listing(jobs=tuple(found), total=_known(total), at=at, whole=whole)


def show_jobs(found: Listing) -> None:
    """Print jobs as a table with their number, and their array in one line."""
    lines = found.jobs if found.whole is not None else collapsed(found.jobs)
    if lines:
        show(job_table(lines, found.at), "")
    if found.whole is not None and not found.jobs:
        show("no task matches" if found.whole.array else f"`{found.whole.id}` is not an array")
    else:
        rest = _rest(found)
        more = "" if len(lines) == len(found.jobs) else "; `--array NAME` lists tasks of an array"
        show(f"{rest if rest else count(len(found.jobs), 'job')}{more}")
    if (whole := found.whole) is not None:
        show(f"`{whole.id}` is {whole.state}: {whole.reason.sentence}")


def collapsed(jobs: Sequence[Job]) -> tuple[Job, ...]:
    """Return jobs with the members of an array in one line for each state and reason."""
    groups: dict[tuple[str, ...], list[Job]] = {}
    # Pages that were fetched one after the other may both have a job.
    for job in {job.id: job for job in jobs}.values():
        base, bracket, _ = job.id.rpartition("[")
        key = (base, job.state, job.reason.code) if bracket else (job.id,)
        groups.setdefault(key, []).append(job)
    return tuple(_line(group) for group in groups.values())


def _line(group: Sequence[Job]) -> Job:
    """Return one line for members of an array in the same state."""
    first = group[0]
    if len(group) == 1:
        return first
    base = first.id.rpartition("[")[0]
    indexes = sorted(int(job.id.rpartition("[")[2][:-1]) for job in group)
    nodes = dict.fromkeys(node for job in group for node in nodes_of(job))
    latest = first.attempts[-1:] if nodes else ()
    elapsed = [job.elapsed_s for job in group if job.elapsed_s is not UNSET]
    return replace(
        first,
        id=f"{base}[{fold_indexes(indexes)}]",
        gpus=sum(job.gpus for job in group if job.gpus is not UNSET),
        attempts=tuple(replace(one, nodes=tuple(nodes)) for one in latest),
        elapsed_s=max(elapsed) if elapsed else UNSET,
    )


def job_table(jobs: Sequence[Job], at: str) -> "Table":
    """Return jobs as a table with the default columns."""
    columns = default_columns(jobs)
    rows = [[column.text(job, at) for column in columns] for job in jobs]
    return table("", [column.heading for column in columns], rows)


def print_columns(found: Listing, columns: Sequence[Column]) -> None:
    """Print chosen columns for people and scripts: a line for each job, never wrapped."""
    lines = [
        [column.heading.lstrip(">") for column in columns],
        *([column.text(job, found.at) for column in columns] for job in found.jobs),
    ]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    for line in lines:
        cells = [
            cell.rjust(width) if column.heading.startswith(">") else cell.ljust(width)
            for cell, width, column in zip(line, widths, columns, strict=True)
        ]
        print_line("  ".join(cells).rstrip())


def _watch(
    client: Client,
    filters: ListFilters,
    bounds: tuple[tuple[JobState, ...], str | None],
    columns: Sequence[Column] | None,
    interval_s: float,
) -> None:
    """Print the listing until Ctrl-C; a control plane that is away is retried."""
    try:
        while True:
            fitting = filters
            if stdout.isatty():
                lines = max(1, get_terminal_size().lines - FRAME_LINES)
                fitting = replace(filters, limit=min(filters.limit, lines))
            try:
                found = find_in_states(client, fitting, *bounds)
            except Unreachable as problem:
                print_note(f"{problem.message}; retrying")
            else:
                clear_screen()
                print_line(f"{second_of(found.at)}, every {interval_s:g} s; Ctrl-C to stop")
                show_jobs(found) if columns is None else print_columns(found, columns)
            sleep(interval_s)
    except KeyboardInterrupt:
        return


def _rest(found: Listing) -> str:
    """Return how many jobs match if not all are listed."""
    if found.total is None or found.total <= len(found.jobs):
        return ""
    more = "over " if found.total >= COUNTED_MOST else ""
    return f"{len(found.jobs):,} of {more}{count(found.total, 'job')}; -n lists more"


def _note_rest(found: Listing) -> None:
    if rest := _rest(found):
        print_note(rest)


def _known(total: int | UnsetType) -> int | None:
    return None if total is UNSET else total
