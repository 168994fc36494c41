"""`tenfold job`: why a job waits, who waits and runs, and what a submission would come to."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from tenfold.cli.errors import Done
from tenfold.cli.job_show import list_json, show_answer, show_dry_run, show_jobs
from tenfold.cli.output import print_json
from tenfold.cli.quantities import seconds
from tenfold.files.job_file import read_job_file
from tenfold.files.replay_bundle import read_bundle
from tenfold.model.errors import InputError, Unreachable
from tenfold.model.units import SECOND, Millis
from tenfold.study.why_remedies import Sought
from tenfold.study.why_saved import Saved, ask, dry_run, saved_at

app = App(
    name="job",
    help="Ask why a job waits, list jobs, try a submission.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)

EXIT_NO = 1
State = Annotated[Path, Parameter(name="--state", help="A run that `sim run --bundle` wrote.")]
At = Annotated[
    str | None,
    Parameter(help="The moment to ask about, from the start of the run: 90m, 12h, 3d. Its end."),
]
Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON.")]
Quick = Annotated[
    bool, Parameter(negative="", help="Give the reason alone: no remedies, no forecast.")
]
Every = Annotated[
    bool, Parameter(name="--all", negative="", help="Try every remedy, not only the cheapest.")
]


@app.command(name="why")
def why_command(
    job: Annotated[str, Parameter(help="The job's name.")],
    *,
    state: State,
    at: At = None,
    quick: Quick = False,
    every: Every = False,
    as_json: Json = False,
) -> None:
    """Say why a job waits, and the cheapest change that would let it start now.

    A job that runs or is over gets its story: why it waited, was stopped or refused.
    """
    answer = ask(_saved(state, at), job, _sought(quick, every))
    print_json(answer) if as_json else show_answer(answer)


@app.command(name="list")
def list_command(
    *,
    state: State,
    at: At = None,
    team: Annotated[str | None, Parameter(help="Only this team's jobs.")] = None,
    state_of: Annotated[
        Literal["pending", "running"] | None, Parameter(help="Only jobs that wait, or run.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the jobs that wait or run at a moment of a recorded run, with the reasons of waits."""
    rows = list_json(_saved(state, at), team=team, state=state_of)
    print_json(rows) if as_json else show_jobs(rows)


@app.command(name="submit")
def submit_command(
    file: Annotated[Path, Parameter(help="A job file, TOML or YAML.")],
    *,
    dry: Annotated[
        bool, Parameter(name="--dry-run", negative="", help="Only say what would become of it.")
    ] = False,
    state: Annotated[
        Path | None, Parameter(name="--state", help="With --dry-run, a run to try it on.")
    ] = None,
    at: At = None,
    quick: Quick = False,
    every: Every = False,
    as_json: Json = False,
) -> None:
    """Try a submission: would the job start now and where, or why not, and when.

    Ends with status 1 where the job would never start.
    """
    job = read_job_file(file)
    if not dry or state is None:
        raise Unreachable(
            "no-control-plane",
            f"job `{job.id}` cannot be submitted: no control plane is running",
            "`--dry-run --state run.jsonl.gz` tries it on a recorded run",
        )
    found = dry_run(_saved(state, at), job, _sought(quick, every))
    print_json(found) if as_json else show_dry_run(found)
    if found.state == "never":
        raise Done(EXIT_NO)


def _sought(quick: bool, every: bool) -> Sought:
    if quick and every:
        raise InputError(
            "two-questions",
            "--quick and --all ask for no remedies and for all of them",
            "ask one after the other",
        )
    return "none" if quick else "every" if every else "cheapest"


def _saved(state: Path, at: str | None) -> Saved:
    at_ms = None if at is None else Millis(round(seconds(at, "--at") * SECOND))
    return saved_at(read_bundle(state), at_ms)
