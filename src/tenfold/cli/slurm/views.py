"""`tenfold squeue`, `scancel` and `sinfo`: what Tenfold knows, as Slurm shows it.

They take the options that are typed most, and point to `tenfold job list` for the rest.
"""

import re
from collections.abc import Sequence
from time import sleep
from typing import Annotated

from cyclopts import App, Parameter, validators
from msgspec import UNSET, Struct
from msgspec.structs import replace

from tenfold.cli.job.columns import expected_start, second_of
from tenfold.cli.job.listing import (
    ListFilters,
    Listing,
    checked_states,
    collapsed,
    find_jobs,
    reasons_in,
    with_forecasts,
)
from tenfold.cli.job.names import with_job
from tenfold.cli.output import clear_screen, print_line, print_note
from tenfold.cli.slurm.aligned import print_columns
from tenfold.cli.slurm.formats import (
    CODES,
    FIELDS,
    LIMIT,
    LONG,
    Line,
    checked_format,
    elapsed_clock,
    formatted,
    heading,
    held_nodes,
    letters_of,
    node_count,
    nodes_or_reason,
    state_code,
)
from tenfold.cli.slurm.partitions import in_partition
from tenfold.client.client import Client
from tenfold.model.api.jobs import Job
from tenfold.model.errors import InputError
from tenfold.model.job.job import JobState
from tenfold.model.job.users import is_user

ACTIVE: tuple[JobState, ...] = ("pending", "starting", "running", "stopping")
LINES_MOST = 1_000
"""Jobs in each state: a long queue must not hide what runs."""
ENDED_MOST = 100
"""Ended jobs in each state with `-t all`."""
PENDING: tuple[JobState, ...] = ("pending",)
TITLES = ("JOBID", "PARTITION", "NAME", "USER", "ST", "TIME", "NODES", "NODELIST(REASON)")
squeue_app = App(
    name="squeue",
    help="List pending and running jobs as Slurm does.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)
scancel_app = App(
    name="scancel",
    help="Cancel jobs as Slurm does.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)
NoHeader = Annotated[
    bool, Parameter(name=("--noheader", "-h"), negative="", help="Do not print the header")
]
User = Annotated[str | None, Parameter(name=("--user", "-u"), help="Only jobs of this user")]
Team = Annotated[str | None, Parameter(name=("--account", "-A"), help="Only jobs of this team")]
JobName = Annotated[str | None, Parameter(name=("--name", "-n"), help="Only jobs with this name")]
States = Annotated[
    str | None,
    Parameter(
        name=("--states", "--state", "-t"),
        help="Only jobs in these states, such as PD,R; all: also recently ended jobs",
    ),
]


@squeue_app.default
def squeue_command(
    *,
    mine: Annotated[
        bool, Parameter(name="--me", negative="", help="Only jobs submitted with your token")
    ] = False,
    user: User = None,
    team: Team = None,
    states: States = None,
    name: JobName = None,
    jobs: Annotated[
        str | None,
        Parameter(
            name=("--jobs", "-j"),
            help="Only these jobs, by id, number or name, separated by commas",
        ),
    ] = None,
    start: Annotated[
        bool, Parameter(negative="", help="List pending jobs with their expected start, in UTC")
    ] = False,
    partition: Annotated[
        str | None,
        Parameter(
            name=("--partition", "-p"),
            help="Only pending jobs, and jobs on nodes in these pools or with these tags, "
            "separated by commas",
        ),
    ] = None,
    letters: Annotated[
        str | None, Parameter(name=("--format", "-o"), help='Columns, such as "%i %j %T %.10M %R"')
    ] = None,
    long: Annotated[
        bool, Parameter(name=("--long", "-l"), negative="", help="Also print the time limit")
    ] = False,
    iterate: Annotated[
        float | None,
        Parameter(
            name=("--iterate", "-i"),
            validator=validators.Number(gt=0),
            help="Repeat every this many seconds, until Ctrl-C",
        ),
    ] = None,
    no_header: NoHeader = False,
) -> None:
    """List pending and running jobs with Slurm's columns; the partition is the pool of the nodes.

    `tenfold job list` has more columns, and `tenfold job why JOB` says why a job is pending.
    """
    if start and (letters or long):
        raise InputError(
            "two-questions", "`--start` prints its own columns", "leave out --format and --long"
        )
    template = _checked(letters) if letters is not None else LONG if long else None
    filters = ListFilters(team=team, user=user, mine=mine, limit=LINES_MOST, state=states)
    wanted = _Wanted(filters, PENDING if start else _states(states), name, jobs, partition, iterate)
    with Client() as client:
        if mine:
            filters = replace(filters, user=client.who_am_i().name)
            wanted = replace(wanted, filters=filters)
        if iterate is None:
            _print_jobs(client, wanted, template, is_start=start, has_header=not no_header)
            return
        try:
            while True:
                _print_jobs(client, wanted, template, is_start=start, has_header=not no_header)
                sleep(iterate)
        except KeyboardInterrupt:
            return


def _checked(letters: str) -> str:
    return checked_format(letters, FIELDS, "tenfold job list -o")


class _Wanted(Struct, frozen=True):
    """Which jobs to print."""

    filters: ListFilters
    states: tuple[JobState, ...]
    name: str | None
    jobs: str | None
    partition: str | None
    every_s: float | None
    """How often they are printed; None for once."""


def _print_jobs(
    client: Client, wanted: _Wanted, template: str | None, *, is_start: bool, has_header: bool
) -> None:
    """Print the jobs once."""
    filters, chosen = wanted.filters, wanted.states
    by_id = wanted.jobs
    found = _named(client, by_id) if by_id is not None else _found(client, filters, chosen)
    nodes = client.nodes()
    pools = {node.id: node.pool for node in nodes}
    inside = {node.id for node in in_partition(nodes, wanted.partition)}
    shown = collapsed(
        [
            job
            for job in found.jobs
            if _fits(job, filters, chosen)
            and wanted.name in (None, job.name)
            and (wanted.partition is None or inside.issuperset(held_nodes(job)))
        ]
    )
    if is_start:
        shown = with_forecasts(client, shown)
    if wanted.every_s is not None:
        clear_screen()
        print_line(f"{second_of(found.at)}, every {wanted.every_s:g} s; Ctrl-C to stop")
    if is_start:
        times = [[*_row(job, pools)[:5], expected_start(job, found.at)] for job in shown]
        print_columns([*TITLES[:5], "START_TIME"], times, right=(0,), has_header=has_header)
    elif template is not None:
        lines = [heading(template, FIELDS)] if has_header else []
        has_limit = LIMIT in letters_of(template)
        for job in shown:
            limit_s = _limit_of(client, job) if has_limit else None
            lines.append(formatted(template, Line(job, _pool(job, pools), limit_s), FIELDS))
        for line in lines:
            print_line(line)
    else:
        rows = [_row(job, pools) for job in shown]
        print_columns(TITLES, rows, right=(0, 5, 6), has_header=has_header)
    total = found.total or 0
    if total > len(found.jobs):
        print_note(
            f"{len(found.jobs):,} of {total:,} jobs; `tenfold job list -n {total}` lists all"
        )


def _limit_of(client: Client, job: Job) -> float | None:
    """Return the time limit of a job, or of the first member in a line of several."""
    first = re.sub(r"\[([0-9]+).*", r"[\1]", job.id)
    requested = client.job(first, attempts=1).requested
    return None if requested is UNSET else requested.time_limit_s


def _found(client: Client, filters: ListFilters, states: Sequence[JobState]) -> Listing:
    """Return the newest jobs in each of these states: a long queue must not hide what runs."""
    # With all states, those that have ended are only the latest, as Slurm forgets the others.
    most = ENDED_MOST if len(states) == len(CODES) else LINES_MOST
    limits = [LINES_MOST if state in ACTIVE else most for state in states]
    found = [
        find_jobs(client, replace(filters, limit=limit), state, None)
        for state, limit in zip(states, limits, strict=True)
    ]
    # A job whose state changed between two of these requests is in both answers.
    jobs = {job.id: job for one in found for job in one.jobs}
    total = sum(one.total or len(one.jobs) for one in found)
    return Listing(jobs=tuple(jobs.values()), total=total, at=found[0].at)


def _named(client: Client, names: str) -> Listing:
    """Return the jobs that are named, with commas; all members of an array."""
    found: list[Job] = []
    for name in dict.fromkeys(one.strip() for one in names.split(",") if one.strip()):
        one = with_job(client, name, lambda job_id: client.job(job_id, attempts=1))
        if one.array:
            members = ListFilters(array=one.id, limit=LINES_MOST)
            found += find_jobs(client, members, None, None).jobs
        else:
            found.append(one)
    at = client.page(limit=1, count=True).at or ""
    return Listing(jobs=tuple({job.id: job for job in found}.values()), at=at)


def _fits(job: Job, filters: ListFilters, states: Sequence[JobState]) -> bool:
    """Return whether a job that was named passes the other options too."""
    reasons = reasons_in(filters.state) if job.state == "failed" else ()
    return (
        job.state in states
        and (not reasons or job.reason.code in reasons)
        and filters.team in (None, job.team)
        and (filters.user is None or is_user(filters.user, job.user or ""))
    )


@scancel_app.default
def scancel_command(
    *jobs: Annotated[
        str, Parameter(help="Jobs, by id, number or name; `7_3` is task 3 of array 7")
    ],
    mine: Annotated[
        bool, Parameter(name="--me", negative="", help="All jobs submitted with your token")
    ] = False,
    user: User = None,
    team: Team = None,
    name: JobName = None,
    states: Annotated[
        str | None,
        Parameter(
            name=("--states", "--state", "-t"), help="Only jobs in these states, such as PD,R"
        ),
    ] = None,
    yes: Annotated[
        bool, Parameter(name=("--yes", "-y"), negative="", help="Do not ask for confirmation")
    ] = False,
) -> None:
    """Cancel jobs: `tenfold scancel 12 train-13`, or `tenfold scancel -u ann --yes`."""
    # The other commands of this module need no prompt.
    from tenfold.cli.job import cancel  # noqa: PLC0415
    from tenfold.cli.job import live as job_live  # noqa: PLC0415

    chosen = cancel.Selection(mine=mine, user=user, team=team, name=name, state=states)
    if chosen != cancel.Selection():
        cancel.cancel_selected(jobs, chosen, yes=yes, as_json=False)
    elif jobs:
        job_live.cancel(jobs, as_json=False)
    else:
        raise InputError("no-job", "no job given", "pass one or more jobs, or -u USER")


def _states(text: str | None) -> tuple[JobState, ...]:
    if text is None:
        return ACTIVE
    return tuple(CODES) if text.strip().lower() == "all" else checked_states(text)


def _row(job: Job, pools: dict[str, str]) -> list[str]:
    cells = [job.id, _pool(job, pools), job.name, job.user or "", state_code(job)]
    return [*cells, elapsed_clock(job), node_count(job), nodes_or_reason(job)]


def _pool(job: Job, pools: dict[str, str]) -> str:
    nodes = held_nodes(job)
    return pools.get(nodes[0], "") if nodes else "-"
