"""`tenfold job`: hand in jobs, look at them and take them back, and ask why one waits.

Without `--state` the verbs ask the control plane that runs; with it, a recorded run. The two
are imported where they are used: neither needs what the other does.
"""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from tenfold.model.errors import InputError, Unreachable

app = App(
    name="job",
    help="Hand in, list, follow and cancel jobs; ask why one waits.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)

RemedySearch = Literal["none", "cheapest", "every"]
JobName = Annotated[str, Parameter(help="The job's name.")]
State = Annotated[
    Path | None,
    Parameter(
        name="--state", help="Ask about a run that `sim run --bundle` wrote, not the live one."
    ),
]
At = Annotated[
    str | None,
    Parameter(help="With a recorded run, the moment from its start: 90m, 12h, 3d. Its end."),
]
Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON.")]
Quick = Annotated[
    bool, Parameter(negative="", help="Give the reason alone: no remedies, no forecast.")
]
Every = Annotated[
    bool, Parameter(name="--all", negative="", help="Try every remedy, not only the cheapest.")
]


@app.command(name="submit")
def submit_command(
    file: Annotated[Path, Parameter(help="A job file, TOML or YAML.")],
    *,
    wait: Annotated[
        bool, Parameter(negative="", help="Wait for its end, and end with its exit code.")
    ] = False,
    follow: Annotated[
        bool, Parameter(negative="", help="Print what it writes until it is over, then as --wait.")
    ] = False,
    dry: Annotated[
        bool, Parameter(name="--dry-run", negative="", help="Only say what would become of it.")
    ] = False,
    state: Annotated[
        Path | None, Parameter(name="--state", help="With --dry-run, a recorded run to try it on.")
    ] = None,
    at: At = None,
    quick: Quick = False,
    every: Every = False,
    as_json: Json = False,
) -> None:
    """Hand in a job, and print its name once it will not be lost.

    With --dry-run nothing is handed in: the file is checked and tried on the fleet that runs, or
    with --state on a recorded run: would it start and where, or why not, and when. Status 1 where
    it would never start. With --wait or --follow the status is the job's own exit code, 128 and
    its signal for one that a signal ended, and 1 for other failures and for arrays.
    """
    seek = _remedy_search(quick, every)
    if dry and state is not None:
        from tenfold.cli.job.recorded import dry_run_saved  # noqa: PLC0415

        dry_run_saved(file, state, at, seek, as_json=as_json)
        return
    from tenfold.cli.job import live as job_live  # noqa: PLC0415

    if dry:
        job_live.dry_run(file, seek, as_json=as_json)
        return
    if state is not None:
        raise Unreachable(
            "no-control-plane",
            f"nothing can be handed in to `{state}`: no control plane is running in a record",
            "add --dry-run, or leave out --state",
        )
    job_live.submit(file, job_live.SubmitOptions(wait=wait, follow=follow, as_json=as_json))


@app.command(name="list")
def list_command(
    *,
    team: Annotated[str | None, Parameter(help="Only this team's jobs.")] = None,
    state: Annotated[
        str | None,
        Parameter(help="Only jobs in this state; or a recorded run to list instead."),
    ] = None,
    state_of: Annotated[
        Literal["pending", "running"] | None,
        Parameter(help="With a recorded run, only jobs that wait, or run."),
    ] = None,
    at: At = None,
    since: Annotated[
        str | None,
        Parameter(help="Only jobs handed in since: 90m, 12h, 3d ago, or a moment in ISO 8601."),
    ] = None,
    array: Annotated[str | None, Parameter(help="Only the members of this array.")] = None,
    idle: Annotated[
        bool, Parameter(negative="", help="Only jobs that hold GPUs and do not use them.")
    ] = False,
    limit: Annotated[int, Parameter(help="As many at most. 100.")] = 100,
    as_json: Json = False,
) -> None:
    """List jobs, the newest first, with what those that wait are waiting for."""
    if state is not None and _is_record(state):
        from tenfold.cli.job.recorded import list_saved  # noqa: PLC0415

        list_saved(Path(state), at, team=team, state_of=state_of, as_json=as_json)
        return
    from tenfold.cli.job import live as job_live  # noqa: PLC0415

    bounds = job_live.ListBounds(
        team=team, state=state or state_of, since=since, array=array, limit=limit, idle=idle
    )
    job_live.list_jobs(bounds, as_json=as_json)


@app.command(name="show")
def show_command(
    job: JobName,
    *,
    eta: Annotated[
        bool, Parameter(negative="", help="Forecast its start, which may take seconds.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show a job: how it stands and why, and every attempt to run it; an array in a summary."""
    from tenfold.cli.job import live as job_live  # noqa: PLC0415

    job_live.show_one(job, eta=eta, as_json=as_json)


@app.command(name="logs")
def logs_command(
    job: JobName,
    *,
    follow: Annotated[bool, Parameter(negative="", help="Go on until the job is over.")] = False,
    member: Annotated[int, Parameter(help="Which process of the gang. The first, 0.")] = 0,
    attempt: Annotated[int | None, Parameter(help="Which attempt. The latest.")] = None,
    tail: Annotated[int | None, Parameter(help="As many bytes from the end.")] = None,
) -> None:
    """Print what a job wrote, to its standard output and error."""
    from tenfold.cli.job import live as job_live  # noqa: PLC0415

    job_live.logs(job, follow=follow, member=member, attempt=attempt, tail=tail)


@app.command(name="cancel")
def cancel_command(
    *jobs: Annotated[str, Parameter(help="The jobs' names.")], as_json: Json = False
) -> None:
    """Take back jobs that wait, and end those that run: SIGTERM, and SIGKILL after their grace.

    The name of an array stands for all its members that are not over.
    """
    if not jobs:
        raise InputError("no-job", "no job was named", "`tenfold job list` names them")
    from tenfold.cli.job import live as job_live  # noqa: PLC0415

    job_live.cancel(jobs, as_json=as_json)


@app.command(name="why")
def why_command(
    job: JobName,
    *,
    state: State = None,
    at: At = None,
    quick: Quick = False,
    every: Every = False,
    as_json: Json = False,
) -> None:
    """Say why a job waits, and the cheapest change that would let it start now.

    A job that runs or is over gets its story: why it waited, was stopped or refused.
    """
    seek = _remedy_search(quick, every)
    if state is not None:
        from tenfold.cli.job.recorded import why_saved  # noqa: PLC0415

        why_saved(state, at, job, seek, as_json=as_json)
        return
    from tenfold.cli.job import live as job_live  # noqa: PLC0415

    job_live.why(job, seek, as_json=as_json)


def _is_record(state: str) -> bool:
    """Tell whether `--state` names a file; states are plain words."""
    return "." in state or "/" in state or Path(state).exists()


def _remedy_search(quick: bool, every: bool) -> RemedySearch:
    if quick and every:
        raise InputError(
            "two-questions",
            "--quick and --all ask for no remedies and for all of them",
            "ask one after the other",
        )
    return "none" if quick else "every" if every else "cheapest"
