"""`tenfold job`: run, submit, list, follow and cancel jobs, and explain why one is pending.

Without `--bundle` the commands talk to the running control plane; with it, they read a recorded
run. Each is imported where it is used, because neither needs what the other does.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter, Token

from tenfold.cli.arguments import AT_LEAST_ONE, NOT_NEGATIVE, Json
from tenfold.cli.job.options import NO_OPTIONS, JobOptions
from tenfold.cli.output import print_note
from tenfold.model.errors import InputError, Unreachable

app = App(
    name="job",
    help="Run, submit, list, follow and cancel jobs, and explain why one is pending",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)

RemedySearch = Literal["none", "cheapest", "every"]
JobName = Annotated[
    str,
    Parameter(
        help="Job, by id (train-12), number (12) or name (train); `7_3` is task 3 of array 7"
    ),
]
Bundle = Annotated[
    Path | None,
    Parameter(
        help="Recorded run to read instead of the live fleet, from `sim run --bundle`, or the "
        "state directory of `tenfold attach`",
    ),
]
OldBundle = Annotated[Path | None, Parameter(name="--state", show=False)]
"""The old name of `--bundle` where it is not a job state."""
At = Annotated[
    str | None,
    Parameter(
        help="Point in the recorded run, as time since its start: 90m, 12h, 3d (default: its end)"
    ),
]
Quick = Annotated[
    bool, Parameter(negative="", help="Show only the reason, without fixes or a forecast")
]
Every = Annotated[
    bool,
    Parameter(
        name="--all",
        negative="",
        help="With the policy `governed`, try every fix, not only the cheapest",
    ),
]


Wait = Annotated[
    bool, Parameter(negative="", help="Wait until the job ends, and exit with its exit code")
]
Follow = Annotated[
    bool,
    Parameter(
        name=("--follow", "-f"),
        negative="",
        help="Stream the job's log until the job ends; implies --wait",
    ),
]
Dry = Annotated[
    bool,
    Parameter(
        name="--dry-run",
        negative="",
        help="Show whether and where the job would start, without submitting it",
    ),
]
AllowPending = Annotated[
    bool,
    Parameter(
        negative="",
        help="Keep the job pending until nodes join if no node can run it, instead of rejecting it",
    ),
]
Options = Annotated[JobOptions, Parameter(name="*")]
"""The keys of a job file as options."""
IgnoreDirectives = Annotated[
    bool,
    Parameter(negative="", help="Ignore #SBATCH options that are not supported"),
]


def _array(_: object, tokens: Sequence[Token]) -> int | str:
    """Return the members of an array."""
    from tenfold.cli.job.options import array_of  # noqa: PLC0415

    return array_of(tokens[0].value)


@app.command(name="run")
def run_command(
    *command: Annotated[str, Parameter(help="Command and its arguments, after `--`")],
    options: Options = NO_OPTIONS,
    label: Annotated[
        bool,
        Parameter(
            name=("--label", "-l"), negative="", help="Prefix each line with the process rank"
        ),
    ] = False,
    allow_pending: AllowPending = False,
    ignore_directives: IgnoreDirectives = False,
) -> None:
    """Run a command as a job in the foreground: `tenfold job run --gpus 8 -- python train.py`.

    The output of all processes is streamed. Ctrl-C cancels the job; a second Ctrl-C
    exits immediately. Status messages, such as why the job is pending, go to standard error.

    On the machine of the control plane, the command runs in your current directory and with your
    PATH
    and Python environment. No other environment variables are passed except those given with --env.

    The exit status is the job's exit code, 128 plus the signal number if a signal ended the job,
    or 1 for other failures.
    """
    from tenfold.cli.job import live as job_live  # noqa: PLC0415
    from tenfold.cli.job.scripts import note_standard_input  # noqa: PLC0415
    from tenfold.cli.job.words import command_input  # noqa: PLC0415

    job = command_input(command, options, ignores=ignore_directives)
    note_standard_input(command, always=True)
    job_live.run(job, label=label, allow_pending=allow_pending)


@app.command(name="submit")
def submit_command(
    *job: Annotated[
        str,
        Parameter(help="Job file (TOML or YAML), `-` for standard input, or `--` and a command"),
    ],
    options: Options = NO_OPTIONS,
    array: Annotated[
        int | str | None,
        Parameter(
            name=("--array", "-a"),
            converter=_array,
            help="Number of identical jobs, or their indexes: 0-19, 1-9:2, 1,3,7, 0-19%4",
        ),
    ] = None,
    wait: Wait = False,
    follow: Follow = False,
    dry: Dry = False,
    allow_pending: AllowPending = False,
    ignore_directives: IgnoreDirectives = False,
    bundle: Annotated[
        Path | None, Parameter(help="With --dry-run: check the job against this recorded run")
    ] = None,
    state: OldBundle = None,
    at: At = None,
    quick: Quick = False,
    every: Every = False,
    as_json: Json = False,
    is_command: Annotated[
        bool, Parameter(name="--words-are-command", negative="", show=False)
    ] = False,
) -> None:
    """Submit a job, and print its name once it is stored durably.

    The job is a job file, standard input (`-`), or a command: `tenfold job submit --gpus 8 --
    python train.py`. Options override keys of the job file, and the #SBATCH lines of a script.

    With --dry-run, nothing is submitted: the job is checked against the live fleet, or against a
    recorded run with --bundle. The output shows where the job would start, or why it would wait
    and for how long. Exits with status 1 if the job could never start.

    A job that can never start on this fleet is rejected, and the error shows what would fit;
    --allow-pending submits it anyway.

    With --wait or --follow, the exit status is the job's exit code, 128 plus the signal number if
    a signal ended the job, or 1 for other failures and for failed arrays.
    """
    seek = _remedy_search(quick, every)
    bundle = _bundle(bundle, state)
    if dry and bundle is not None:
        _dry_run_saved(job, bundle, at, seek, as_json=as_json)
        return
    if bundle is not None:
        raise Unreachable(
            "no-control-plane",
            f"cannot submit to `{bundle}`: it is a recorded run",
            "add `--dry-run`, or leave out `--bundle` to submit to the control plane",
        )
    from tenfold.cli.job import live as job_live  # noqa: PLC0415
    from tenfold.cli.job.words import job_input  # noqa: PLC0415

    more = {} if array is None else {"array": array}
    what = job_input(job, options, more, is_command=is_command, ignores=ignore_directives)
    if dry:
        job_live.dry_run(what, seek, as_json=as_json, allow_pending=allow_pending)
        return
    after = job_live.SubmitOptions(
        wait=wait, follow=follow, as_json=as_json, allow_pending=allow_pending
    )
    job_live.submit(what, after)


@app.command(name="list")
def list_command(
    *,
    team: Annotated[str | None, Parameter(help="Only jobs of this team")] = None,
    user: Annotated[
        str | None, Parameter(name=("--user", "-u"), help="Only jobs of this user")
    ] = None,
    mine: Annotated[
        bool, Parameter(name="--me", negative="", help="Only jobs submitted with your token")
    ] = False,
    state: Annotated[
        str | None,
        Parameter(
            name=("--state", "-t"),
            help="Only jobs in these states, separated by commas: pending, starting, running,"
            " stopping, succeeded, failed, cancelled, timeout, oom; or Slurm's codes, such as PD",
        ),
    ] = None,
    state_of: Annotated[
        Literal["pending", "running"] | None, Parameter(name="--state-of", show=False)
    ] = None,
    bundle: Bundle = None,
    at: At = None,
    since: Annotated[
        str | None,
        Parameter(
            help="Only jobs submitted since: a duration such as 90m or 3d, today, yesterday, or an"
            " ISO 8601 time; days begin at 00:00 UTC"
        ),
    ] = None,
    array: Annotated[str | None, Parameter(help="Only tasks of this array")] = None,
    idle: Annotated[bool, Parameter(negative="", help="Only jobs whose GPUs are idle")] = False,
    limit: Annotated[
        int,
        Parameter(
            name=("--limit", "-n"),
            help="Maximum number of jobs to list (default: 100)",
            validator=AT_LEAST_ONE,
        ),
    ] = 100,
    columns: Annotated[
        str | None,
        Parameter(
            name=("--format", "-o"),
            help="Columns, separated by commas: job, name, team, user, state, gpus, age, elapsed,"
            " gpu_hours, attempts, nodes, node_count, reason, message, submitted, started, ended,"
            " exit_code, eta",
        ),
    ] = None,
    watch: Annotated[
        bool, Parameter(name=("--watch", "-w"), negative="", help="Repeat until Ctrl-C")
    ] = False,
    interval: Annotated[
        float, Parameter(help="Seconds between listings with --watch (default: 2)")
    ] = 2.0,
    as_json: Json = False,
) -> None:
    """List jobs, newest first, and why each pending job is waiting.

    The last line counts all jobs that match. With --format, each job is one line that is never
    wrapped.
    """
    bundle, state = _list_source(bundle, state, state_of)
    if bundle is not None:
        from tenfold.cli.job.recorded import list_saved  # noqa: PLC0415

        list_saved(bundle, at, team=team, state_of=state, as_json=as_json)
        return
    from tenfold.cli.job import listing  # noqa: PLC0415

    filters = listing.ListFilters(
        team=team,
        user=user,
        mine=mine,
        state=state,
        since=since,
        array=array,
        limit=limit,
        idle=idle,
    )
    options = listing.ListOptions(
        columns=columns, watch=watch, interval_s=max(0.1, interval), as_json=as_json
    )
    listing.list_jobs(filters, options)


@app.command(name="show")
def show_command(
    job: JobName,
    *,
    eta: Annotated[
        bool, Parameter(negative="", help="Also forecast the start time (takes a few seconds)")
    ] = False,
    attempts: Annotated[
        int,
        Parameter(
            help="Maximum number of attempts to show, latest first (default: 20)",
            validator=AT_LEAST_ONE,
        ),
    ] = 20,
    diff: Annotated[
        bool,
        Parameter(
            negative="", help="Print the uncommitted changes that were recorded at submission"
        ),
    ] = False,
    bundle: Bundle = None,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Show a job's state, reason and latest attempts; for an array, a summary."""
    if bundle is not None:
        from tenfold.cli.job.recorded import show_saved  # noqa: PLC0415

        show_saved(bundle, at, job, as_json=as_json)
        return
    from tenfold.cli.job import live as job_live  # noqa: PLC0415

    job_live.show_one(job, attempts=attempts, eta=eta, as_json=as_json, diff=diff)


@app.command(name="logs")
def logs_command(
    job: JobName,
    *,
    follow: Annotated[
        bool,
        Parameter(name=("--follow", "-f"), negative="", help="Keep streaming until the job ends"),
    ] = False,
    member: Annotated[
        int | None,
        Parameter(
            name=("--member", "--rank"),
            help="Rank of the process whose log to print (default: rank 0, plus the last lines of "
            "the process that failed first)",
            validator=NOT_NEGATIVE,
        ),
    ] = None,
    attempt: Annotated[int | None, Parameter(help="Attempt to read (default: the latest)")] = None,
    lines: Annotated[
        int | None,
        Parameter(
            name=("--lines", "-n"),
            help="Print only this many lines from the end",
            validator=NOT_NEGATIVE,
        ),
    ] = None,
    tail: Annotated[
        int | None,
        Parameter(help="Print only this many bytes from the end", validator=NOT_NEGATIVE),
    ] = None,
    raw: Annotated[
        bool,
        Parameter(negative="", help="Do not escape control characters when printing to a terminal"),
    ] = False,
) -> None:
    """Print a job's log: its standard output and standard error.

    On a terminal, control characters in the log are escaped, such as \\u001b.
    Piped or redirected output is unchanged.
    """
    from tenfold.cli.job import live as job_live  # noqa: PLC0415

    job_live.logs(
        job, follow=follow, member=member, attempt=attempt, tail=tail, lines=lines, raw=raw
    )


@app.command(name="shell")
def shell_command(
    job: JobName,
    *command: Annotated[str, Parameter(help="Command to run instead of a shell, after `--`")],
    member: Annotated[
        int,
        Parameter(
            name=("--member", "--rank"),
            help="Rank of the process whose node and environment the shell uses (default: 0)",
            validator=NOT_NEGATIVE,
        ),
    ] = 0,
) -> None:
    """Open a shell in a running job: `tenfold job shell train-12`.

    The shell has the user, working directory, variables, GPUs, limits and container of the job. It
    ends with the job, and does not keep it alive. If standard input is a terminal, the shell gets
    one too; otherwise its input and output are pipes: `tenfold job shell train-12 -- nvidia-smi`.

    The exit status is that of the shell or command.
    """
    from tenfold.cli.job.shell import run_shell  # noqa: PLC0415

    run_shell(job, command, member=member)


@app.command(name="cancel")
def cancel_command(
    *jobs: Annotated[
        str,
        Parameter(
            help="Jobs, by id (train-12), number (12) or name (train); `7_3` is task 3 of array 7"
        ),
    ],
    mine: Annotated[
        bool,
        Parameter(
            name=("--all-mine", "--me"), negative="", help="All jobs submitted with your token"
        ),
    ] = False,
    user: Annotated[
        str | None, Parameter(name=("--user", "-u"), help="All jobs of this user")
    ] = None,
    team: Annotated[str | None, Parameter(help="All jobs of this team")] = None,
    name: Annotated[
        str | None, Parameter(name=("--name", "-n"), help="All jobs with this name")
    ] = None,
    state: Annotated[
        str | None,
        Parameter(name=("--state", "-t"), help="Only jobs in these states: pending, running"),
    ] = None,
    yes: Annotated[
        bool, Parameter(name=("--yes", "-y"), negative="", help="Do not ask for confirmation")
    ] = False,
    as_json: Json = False,
) -> None:
    """Cancel pending and running jobs.

    Running jobs receive SIGTERM, then SIGKILL after the grace period. Cancelling an array cancels
    all of its tasks that have not ended. If options select the jobs, the command
    shows how many match and asks for confirmation, unless --yes is given.
    """
    from tenfold.cli.job import cancel  # noqa: PLC0415

    selection = cancel.Selection(mine=mine, user=user, team=team, name=name, state=state)
    if selection != cancel.Selection():
        cancel.cancel_selected(jobs, selection, yes=yes, as_json=as_json)
        return
    if not jobs:
        raise InputError(
            "no-job",
            "no job given",
            "pass one or more jobs, or --all-mine; `tenfold job list` lists them",
        )
    from tenfold.cli.job import live as job_live  # noqa: PLC0415

    job_live.cancel(jobs, as_json=as_json)


@app.command(name="rerun")
def rerun_command(job: JobName, *, as_json: Json = False) -> None:
    """Submit a job again: same command, resources and variables, without its dependencies.

    An array is submitted again as a whole. An array task, such as 'sweep-3[7]' (or `3_7`), is
    submitted alone, as a single job with the same index.
    """
    from tenfold.cli.job import live as job_live  # noqa: PLC0415

    job_live.rerun(job, as_json=as_json)


@app.command(name="release")
def release_command(job: JobName, *, as_json: Json = False) -> None:
    """Release a job that is held after an internal error of the control plane.

    The job returns to pending; it is held again if the error recurs. Requires the operator role.
    Releasing an array releases all of its held tasks.
    """
    from tenfold.cli.job import live as job_live  # noqa: PLC0415

    job_live.release(job, as_json=as_json)


@app.command(name="why")
def why_command(
    job: JobName,
    *,
    bundle: Bundle = None,
    state: OldBundle = None,
    at: At = None,
    quick: Quick = False,
    every: Every = False,
    as_json: Json = False,
) -> None:
    """Explain why a job is pending.

    With the policy `governed`, also find the cheapest change that would start it now. For a running
    or finished job, show its history: why it waited, was stopped or was rejected.
    """
    seek = _remedy_search(quick, every)
    bundle = _bundle(bundle, state)
    if bundle is not None:
        from tenfold.cli.job.recorded import why_saved  # noqa: PLC0415

        why_saved(bundle, at, job, seek, as_json=as_json)
        return
    from tenfold.cli.job import live as job_live  # noqa: PLC0415

    job_live.why(job, seek, as_json=as_json)


def _dry_run_saved(
    words: tuple[str, ...], bundle: Path, at: str | None, seek: RemedySearch, *, as_json: bool
) -> None:
    from tenfold.cli.job.recorded import dry_run_saved  # noqa: PLC0415

    if len(words) != 1:
        raise InputError(
            "no-job", "a recorded run needs a job file", "pass one job file before `--bundle`"
        )
    dry_run_saved(Path(words[0]), bundle, at, seek, as_json=as_json)


def _list_source(
    bundle: Path | None, state: str | None, state_of: str | None
) -> tuple[Path | None, str | None]:
    """Return the recorded run and the job state, also from the old options."""
    if state_of is not None:
        print_note("--state-of will be removed; use --state")
    if bundle is None and state is not None and _is_record(state):
        return _bundle(None, Path(state)), state_of
    return bundle, state or state_of


def _bundle(bundle: Path | None, state: Path | None) -> Path | None:
    """Return the recorded run; `--state` is the old name."""
    if bundle is None and state is not None:
        print_note(f"--state {state} will be removed; use --bundle {state}")
    return bundle or state


def _is_record(state: str) -> bool:
    """Return whether `--state` names a file; job states are plain words."""
    return "." in state or "/" in state or Path(state).exists()


def _remedy_search(quick: bool, every: bool) -> RemedySearch:
    if quick and every:
        raise InputError(
            "two-questions",
            "`--quick` and `--all` cannot be used together: one skips fixes, the other tries all",
            "use one of them",
        )
    return "none" if quick else "every" if every else "cheapest"
