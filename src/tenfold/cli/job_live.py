"""`tenfold job` against the control plane that runs: hand in, look, follow, take back."""

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Literal, get_args

from msgspec import Struct

from tenfold.cli.errors import Done
from tenfold.cli.live_show import show_job, show_jobs, show_submitted, show_why
from tenfold.cli.output import print_json, show
from tenfold.client.answers import Job, JobState, Submitted
from tenfold.client.client import Client
from tenfold.client.place import find_place
from tenfold.files.document import read_document
from tenfold.files.submission import read_submission
from tenfold.model.errors import InputError, TenfoldError

EXIT_NO = 1
STATES: tuple[JobState, ...] = get_args(JobState)


class SubmitOptions(Struct, frozen=True, kw_only=True):
    """What is done after a job was handed in."""

    wait: bool = False
    follow: bool = False
    as_json: bool = False


def submit(file: Path, options: SubmitOptions) -> None:
    """Hand in a job file; print its name once it will not be lost."""
    if options.follow and options.as_json:
        raise InputError(
            "two-questions",
            "--follow prints what the job writes, and --json would print beside it",
            "hand it in with --json, then `tenfold job logs ID --follow`",
        )
    find_place()
    values = read_submission(file)
    if options.follow and "array" in values:
        raise InputError(
            "follow-array",
            "an array has many logs, and --follow shows one",
            "use --wait, or follow a member: `tenfold job logs 'ID[0]' --follow`",
        )
    with Client() as client:
        made = client.submit_file(file)
        if options.as_json and not options.wait:
            print_json(made)
            return
        if not options.as_json:
            show_submitted(made)
        try:
            if options.follow:
                _write(client.logs(made.id, follow=True))
            if options.wait or options.follow:
                _wait(client, made, as_json=options.as_json)
        except KeyboardInterrupt:
            sys.stderr.write(f"`{made.id}` goes on; `tenfold job cancel {made.id}` ends it\n")
            raise


def check_file(file: Path, *, as_json: bool) -> None:
    """Say that a job file can be handed in, or name every fault of it."""
    if "command" not in read_document(file).values:
        from tenfold.files.job_file import read_job_file  # noqa: PLC0415

        # A row of a trace: it can be tried on a recorded run, and says nothing to run.
        read_job_file(file)
    values = read_submission(file)
    if as_json:
        print_json({"file": str(file), "faults": [], "job": values})
    else:
        show(f"`{file}` has no fault and can be handed in")
        show("whether it would start now is told of a recorded run: --state run.jsonl.gz")


def list_jobs(*, team: str | None, state: str | None, limit: int, as_json: bool) -> None:
    """Print jobs, the newest first."""
    if state is not None and state not in STATES:
        raise InputError(
            "unknown-state",
            f"`{state}` is neither a state of jobs nor a recorded run",
            f"states: {', '.join(STATES)}",
            field="--state",
        )
    with Client() as client:
        found = list(islice(_jobs(client, team, state, limit), limit))
    print_json(found) if as_json else show_jobs(found)


def show_one(job_id: str, *, eta: bool, as_json: bool) -> None:
    """Print one job with its attempts."""
    with Client() as client:
        job = client.job(job_id, eta=eta)
    print_json(job) if as_json else show_job(job)


def logs(job_id: str, *, follow: bool, member: int, attempt: int | None, tail: int | None) -> None:
    """Print what a job wrote, as it is."""
    with Client() as client:
        if follow:
            _write(client.logs(job_id, follow=True, member=member, attempt=attempt, tail=tail))
        else:
            _write(iter([client.logs(job_id, member=member, attempt=attempt, tail=tail)]))


def cancel(job_ids: tuple[str, ...], *, as_json: bool) -> None:
    """Take back jobs; what cannot be is said at the end, and does not keep the others."""
    taken: list[object] = []
    wrong: TenfoldError | None = None
    with Client() as client:
        for job_id in job_ids:
            try:
                one = client.cancel(job_id)
            except TenfoldError as error:
                if len(job_ids) > 1 and not as_json:
                    show(f"`{job_id}`: {error.message}")
                wrong = error
                continue
            taken.append(one)
            if not as_json:
                show(f"`{one.id}` is {one.state}")
    if as_json:
        print_json(taken)
    if wrong is not None:
        raise wrong


def why(job_id: str, sought: Literal["none", "cheapest", "every"], *, as_json: bool) -> None:
    """Print why a job waits, and what would let it start."""
    with Client() as client:
        answer = client.why(job_id, seek=sought, eta=sought != "none")
    print_json(answer) if as_json else show_why(answer)


def _wait(client: Client, made: Submitted, *, as_json: bool) -> None:
    ended = [client.wait(job_id) for job_id in made.ids]
    if as_json:
        print_json(ended if made.count else ended[0])
    else:
        for state in dict.fromkeys(job.state for job in ended):
            count = sum(job.state == state for job in ended)
            _show_end(ended[0]) if not made.count else show(f"{count:,} {state}")
    if any(job.state != "succeeded" for job in ended):
        raise Done(EXIT_NO)


def _show_end(job: Job) -> None:
    code = "" if job.exit_code is None else f", exit code {job.exit_code}"
    show(f"`{job.id}` {job.state}{code}: {job.reason.sentence}")


def _jobs(client: Client, team: str | None, state: JobState | None, limit: int) -> Iterator[Job]:
    """Yield as many jobs as are wanted, and ask for no more than those."""
    before, left = None, limit
    while left > 0:
        page = client.page(team=team, state=state, before=before, limit=min(left, 1_000))
        yield from page.jobs
        left -= len(page.jobs)
        before = page.next
        if before is None:
            return


def _write(chunks: Iterator[str]) -> None:
    """Write what a job wrote as it comes; it is data, and not touched."""
    last = "\n"
    for chunk in chunks:
        sys.stdout.write(chunk)
        sys.stdout.flush()
        last = chunk or last
    if not last.endswith("\n"):
        sys.stdout.write("\n")
