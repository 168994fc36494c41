"""`tenfold job ... --state RUN`: questions about a recorded run instead of the one that runs."""

from pathlib import Path

from msgspec.structs import replace

from tenfold.cli.errors import Done
from tenfold.cli.job_show import list_json, show_answer, show_dry_run, show_jobs
from tenfold.cli.output import print_json
from tenfold.cli.quantities import seconds
from tenfold.files.document import read_document
from tenfold.files.job_file import read_job_file
from tenfold.files.replay_bundle import read_bundle
from tenfold.files.submission import read_submission, submission_of
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job import Job
from tenfold.model.submission import admitted
from tenfold.model.units import SECOND, Millis
from tenfold.study.why_remedies import Sought
from tenfold.study.why_saved import Saved, ask, dry_run, saved_at

EXIT_NO = 1


def why_saved(state: Path, at: str | None, job: str, sought: Sought, *, as_json: bool) -> None:
    """Print why a job waits at a moment of a recorded run, or what became of it."""
    answer = ask(_saved(state, at), job, sought)
    print_json(answer) if as_json else show_answer(answer)


def list_saved(
    state: Path, at: str | None, *, team: str | None, state_of: str | None, as_json: bool
) -> None:
    """Print the jobs that wait or run at a moment of a recorded run."""
    rows = list_json(_saved(state, at), team=team, state=state_of)
    print_json(rows) if as_json else show_jobs(rows)


def dry_run_saved(
    file: Path, state: Path, at: str | None, sought: Sought, *, as_json: bool
) -> None:
    """Print what would become of a submission at a moment of a recorded run."""
    job = job_in(file)
    found = dry_run(_saved(state, at), job, sought)
    print_json(found) if as_json else show_dry_run(found)
    if found.state == "never":
        raise Done(EXIT_NO)


def job_in(file: Path) -> Job:
    """Return the job of a file: one that says what it runs, or a row of a trace as a file."""
    if "command" not in read_document(file).values:
        return read_job_file(file)
    values = read_submission(file)
    submission = submission_of(values, TeamId(""), "", [])
    assert submission is not None, "faults were named before"
    job = admitted(submission, 0, Millis(0))[0].job
    return replace(job, id=JobId(submission.work.name))


def _saved(state: Path, at: str | None) -> Saved:
    at_ms = None if at is None else Millis(round(seconds(at, "--at") * SECOND))
    return saved_at(read_bundle(state), at_ms)
