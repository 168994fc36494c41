"""`tenfold job ... --bundle RUN`: the same commands on a recorded run instead of the live one."""

from pathlib import Path

from tenfold.cli.errors import Exit
from tenfold.cli.job.render import (
    list_json,
    show_answer,
    show_dry_run,
    show_jobs,
    show_waiting,
)
from tenfold.cli.output import print_json, print_note
from tenfold.cli.quantities import parse_duration
from tenfold.cli.replay.render import show_story
from tenfold.files.jobs.submission import job_of, read_job_file
from tenfold.model.errors import InputError
from tenfold.model.job.spec import run_only_keys
from tenfold.model.units import SECOND, Millis
from tenfold.study.replay.records import open_record
from tenfold.study.why.recorded import SavedState, ask, dry_run, saved_at
from tenfold.study.why.remedies import RemedySearch

EXIT_NO = 1


def why_saved(state: Path, at: str | None, job: str, seek: RemedySearch, *, as_json: bool) -> None:
    """Print why a job is pending at a time in a recorded run, or its history."""
    answer = ask(_saved(state, at), job, seek)
    print_json(answer) if as_json else show_answer(answer)


def show_saved(state: Path, at: str | None, job: str, *, as_json: bool) -> None:
    """Print the history of a job up to a time in a recorded run."""
    answer = ask(_saved(state, at), job, "none")
    if as_json:
        print_json(answer)
        return
    assert answer.story is not None, "a job that is known has a history"
    show_story(answer.story)
    if answer.why is not None:
        show_waiting(answer.why)


def list_saved(
    state: Path, at: str | None, *, team: str | None, state_of: str | None, as_json: bool
) -> None:
    """Print the pending and running jobs at a time in a recorded run."""
    if state_of not in (None, "pending", "running"):
        raise InputError(
            "unknown-state",
            f"a recorded run has no list of `{state_of}` jobs",
            "use --state pending or --state running with --bundle",
            field="--state",
        )
    rows = list_json(_saved(state, at), team=team, state=state_of)
    print_json(rows) if as_json else show_jobs(rows)


def dry_run_saved(
    file: Path, state: Path, at: str | None, seek: RemedySearch, *, as_json: bool
) -> None:
    """Print what would happen to a job submitted at a time in a recorded run."""
    row = read_job_file(file)
    found = dry_run(_saved(state, at), job_of(row), seek)
    if unused := run_only_keys(row):
        keys = ", ".join(f"`{key}`" for key in unused)
        print_note(f"ignored on a recorded run: {keys}")
    print_json(found) if as_json else show_dry_run(found)
    if found.state == "never":
        raise Exit(EXIT_NO)


def _saved(state: Path, at: str | None) -> SavedState:
    at_ms = None if at is None else Millis(round(parse_duration(at, "--at") * SECOND))
    bundle, notes = open_record(str(state))
    for note in notes:
        print_note(note)
    return saved_at(bundle, at_ms)
