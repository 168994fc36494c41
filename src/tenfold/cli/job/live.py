"""`tenfold job` against the running control plane: submit, list, follow, cancel."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, cast

from msgspec import UNSET, Struct
from msgspec.structs import replace

from tenfold.cli.errors import Exit
from tenfold.cli.job.batch_output import (
    LINES_BYTES,
    TAIL_BYTES,
    OutputFiles,
    Reading,
    awaited_files,
    follow_output,
    output_files,
    print_output_files,
)
from tenfold.cli.job.details import show_job
from tenfold.cli.job.endings import EXIT_NO, exit_status, failed_line, print_other_logs
from tenfold.cli.job.foreground import run_in_foreground
from tenfold.cli.job.live_render import (
    dropped,
    show_dry_run,
    show_history,
    show_submitted,
    show_why,
)
from tenfold.cli.job.names import with_job
from tenfold.cli.job.origin import origin_here
from tenfold.cli.output import complain, print_file, print_json, print_log, print_note, show
from tenfold.client.calls import JobKeys
from tenfold.client.client import Client
from tenfold.client.endpoint import find_endpoint
from tenfold.client.problems import FaultyRequest
from tenfold.files.jobs.submission import JobSource, body_of, faults_in, with_options
from tenfold.model.api.jobs import PAGE_MAX, Job, Submitted
from tenfold.model.errors import InputError, InvalidFile, NoAnswer, TenfoldError, Unreachable
from tenfold.model.job.array_spec import read_array
from tenfold.model.job.submission import ARRAY_MOST
from tenfold.model.units import SECOND
from tenfold.report.figures import count
from tenfold.report.reasons.render import duration_text

ATTEMPTS_IN_HISTORY = 20
NAMED_MOST = 10
"""Members of an array that are named after `--wait`; `job list --array` has all of them."""
RemedySearch = Literal["none", "cheapest", "every"]


class SubmitOptions(Struct, frozen=True, kw_only=True):
    """What to do after a job is submitted."""

    wait: bool = False
    follow: bool = False
    as_json: bool = False
    allow_pending: bool = False
    style: Literal["text", "slurm", "id"] = "text"
    """How the job is named: in words, as sbatch does, or alone."""


class JobInput(NamedTuple):
    """What a command submits: a job file, standard input or a command, with options."""

    source: JobSource
    snapshot: bool = True
    wording: Callable[[str], str] = str
    """Names keys in notes as the submitter wrote them."""

    @property
    def file(self) -> str:
        """The job file; empty for a command."""
        return self.source.document.file


def submit(job: JobInput, options: SubmitOptions) -> None:
    """Submit a job; print its name once it is stored durably."""
    if options.follow and options.as_json:
        raise InputError(
            "two-questions",
            "`--follow` and `--json` cannot be used together: both write to standard output",
            "submit with `--json`, then run `tenfold job logs ID --follow`",
        )
    values = _read_for_submit(job.source, as_json=options.as_json)
    if options.follow and "array" in values:
        raise InputError(
            "follow-array",
            "`--follow` shows one log, but an array has many",
            "use `--wait`, or follow one task: `tenfold job logs 'ID[0]' --follow`",
        )
    with Client() as client:
        made = _submitted(client, job, values, allow_pending=options.allow_pending)
        if options.as_json and not options.wait:
            print_json(made)
            return
        if not options.as_json:
            show_submitted(made, options.style)
        try:
            if options.follow:
                print_log(client.logs(made.id, follow=True))
                print_other_logs(client, client.wait(made.id))
            if options.wait or options.follow:
                _wait(client, made, as_json=options.as_json)
        except KeyboardInterrupt:
            _note_still_running(made.id)
            raise


def run(job: JobInput, *, label: bool, allow_pending: bool) -> None:
    """Submit a job and stay in the foreground until it ends; exit with its exit status."""
    values = _read_for_submit(job.source, as_json=False)
    if "array" in values:
        raise InputError(
            "follow-array",
            "`job run` runs one job in the foreground, but an array has many",
            "submit it with `tenfold job submit`",
        )
    with Client() as client:
        made = _submitted(client, job, values, allow_pending=allow_pending)
        run_in_foreground(client, made, label=label)


def _submitted(
    client: Client, job: JobInput, values: dict[str, object], *, allow_pending: bool
) -> Submitted:
    more: dict[str, object] = {"allow_pending": True} if allow_pending else {}
    members = values.get("array")
    if "origin" not in values:
        count = 1 if members is None else read_array(str(members), ARRAY_MOST).count
        more["origin"] = origin_here(count, snapshot=job.snapshot)
    try:
        return client.submit(**cast("JobKeys", values | more))
    except FaultyRequest as error:
        if not error.faults:
            raise
        raise faults_in(job.source, error.faults) from None


def _read_for_submit(source: JobSource, *, as_json: bool) -> dict[str, object]:
    """Return the keys of a job; without a control plane, its errors are reported too."""
    try:
        find_endpoint()
    except Unreachable as unreachable:
        try:
            body_of(source)
        except InvalidFile:
            if not as_json:
                print_note(unreachable.message)
            raise
        raise
    return body_of(source)


def dry_run(
    job: JobInput, seek: RemedySearch, *, as_json: bool, allow_pending: bool = False
) -> None:
    """Print what would happen to a job; exit with status 1 if it could never start.

    Without a control plane the job is only checked.
    """
    if not _is_up():
        check_job(job, as_json=as_json)
        return
    values = body_of(job.source) | ({"allow_pending": True} if allow_pending else {})
    values.setdefault("origin", origin_here(snapshot=False))
    with Client() as client:
        try:
            found = client.dry_run(seek=seek, eta=seek != "none", **cast("JobKeys", values))
        except FaultyRequest as error:
            if not error.faults:
                raise
            raise faults_in(job.source, error.faults) from None
    if not as_json and not job.source.document.file:
        notes = tuple(job.wording(with_options(note)) for note in found.notes)
        found = replace(found, notes=notes)
    print_json(found) if as_json else show_dry_run(found)
    if found.outcome == "never":
        raise Exit(EXIT_NO)


def _is_up() -> bool:
    """Return whether a control plane address is known."""
    try:
        find_endpoint()
    except Unreachable:
        return False
    return True


def check_job(job: JobInput, *, as_json: bool) -> None:
    """Print that a job is valid, or raise with all its errors."""
    values = body_of(job.source)
    if as_json:
        print_json({"file": job.file, "faults": [], "job": values})
    else:
        show(f"`{job.file}` is valid" if job.file else "the job is valid")
        show("no control plane is running; use --bundle run.jsonl.gz to try it on a recorded run")


def show_one(job_id: str, *, attempts: int, eta: bool, as_json: bool, diff: bool = False) -> None:
    """Print one job with its latest attempts, or the recorded diff of its code."""
    with Client() as client:
        job = with_job(
            client, job_id, lambda name: _job_with_attempts(client, name, attempts, eta=eta)
        )
        if diff:
            _print_diff(job)
        elif as_json:
            print_json(job)
        else:
            show_job(job, output_files(client, job))


def _print_diff(job: Job) -> None:
    requested = job.requested
    code = None if requested is UNSET or requested.origin is None else requested.origin.code
    if code is None or not code.diff:
        raise NoAnswer(
            "no-diff",
            f"no diff was recorded with `{job.id}`",
            "the code had no uncommitted changes, was not in git, or was not to be recorded",
        )
    print_file(code.diff)
    recorded = len(code.diff.encode())
    if recorded < code.diff_bytes:
        print_note(f"{recorded:,} of {code.diff_bytes:,} bytes: the rest was not recorded")


def _job_with_attempts(client: Client, job_id: str, attempts: int, *, eta: bool = False) -> Job:
    job: Job = client.job(job_id, eta=eta, attempts=max(1, min(attempts, PAGE_MAX)))
    while len(job.attempts) < attempts and job.attempts_next is not UNSET:
        left = min(attempts - len(job.attempts), PAGE_MAX)
        page: Job = client.job(job_id, attempts=left, attempts_before=job.attempts_next)
        if not page.attempts:
            break
        shown = (*page.attempts, *job.attempts)
        job = replace(job, attempts=shown, attempts_next=page.attempts_next)
    return job


def logs(
    job_id: str,
    *,
    follow: bool,
    member: int | None,
    attempt: int | None,
    tail: int | None,
    lines: int | None,
    raw: bool,
) -> None:
    """Print a job's log; on a terminal with control characters escaped, unless `raw`."""
    if tail is not None and lines is not None:
        raise InputError(
            "two-questions",
            "`--tail` and `--lines` cannot be used together: one counts bytes, the other lines",
            "use one of them",
        )
    if lines is not None and lines < 0:
        raise InputError(
            "wrong-value",
            f"`--lines` must be at least 0, got {lines}",
            "use a larger number",
            field="--lines",
        )
    with Client() as client:
        whole = with_job(client, job_id, lambda name: client.job(name, attempts=1))
        job_id = whole.id
        if whole.array:
            raise _is_array(whole)
        how = Reading(member=member or 0, attempt=attempt, tail=tail, lines=lines, raw=raw)
        files = _follow(client, whole, how) if follow else _print_log(client, whole, how)
        before = None if attempt is None else attempt + 1
        job = client.job(job_id, attempts=1, attempts_before=before)
        if member is None and not files.output:
            print_other_logs(client, job, raw=raw)
        _note_missing(job, attempt)
        if attempt is None and job.state == "failed" and job.reason.code == "timeout":
            print_note(f"`{job.id}` was stopped at its time limit{_limit_of(job)}")


def _follow(client: Client, job: Job, how: Reading) -> OutputFiles:
    """Print the output of a job until it ends; return the files that have it, if any."""
    try:
        files = awaited_files(client, job, how)
        if files.output:
            follow_output(client, job.id, files, how)
        else:
            print_log(
                client.logs(
                    job.id,
                    follow=True,
                    member=how.member,
                    attempt=how.attempt,
                    tail=how.tail,
                    lines=how.lines,
                ),
                raw=how.raw,
            )
    except KeyboardInterrupt:
        _note_still_running(job.id)
        raise
    return files


def _print_log(client: Client, job: Job, how: Reading) -> OutputFiles:
    """Print the end of the output of a job; return the files that have it, if any."""
    files = output_files(client, job, how)
    if files.output:
        print_output_files(files, how)
        return files
    tail, lines = how.tail, how.lines
    text = client.logs(job.id, member=how.member, attempt=how.attempt, tail=tail, lines=lines)
    print_log([text], raw=how.raw)
    if lines is not None and text.count("\n") < lines and len(text.encode()) >= LINES_BYTES:
        print_note(f"showing the last {LINES_BYTES >> 20} MiB, which has fewer lines")
    elif tail is None and lines is None and len(text.encode()) >= TAIL_BYTES:
        print_note(f"showing the last {TAIL_BYTES >> 10} KiB; use --tail for up to 4 MiB")
    return files


def _limit_of(job: Job) -> str:
    asked_s = None if job.requested is UNSET else job.requested.time_limit_s
    return "" if asked_s is None else f" of {duration_text(asked_s * SECOND)}"


def _is_array(whole: Job) -> InputError:
    """Return the error for the log of an array: each member has its own."""
    assert whole.array, "the job is an array"
    message = f"`{whole.id}` is an array of {count(whole.array.count, 'job')}"
    failed = whole.array.failed
    if not failed:
        first = f"{whole.id}[0]"
        return InputError("is-array", message, f"name one of its jobs, such as `{first}`")
    more = whole.array.states.get("failed", 0) - len(failed)
    rest = f" and {more:,} more" if more > 0 else ""
    hint = f"failed: {', '.join(failed)}{rest}; print one: `tenfold job logs '{failed[0]}'`"
    return InputError("is-array", message, hint)


def _note_missing(job: Job, attempt: int | None) -> None:
    """Say what is not in a log that was printed."""
    if not job.attempts:
        never = "it never ran" if job.is_over else f"it has not started ({job.state})"
        print_note(f"`{job.id}` has no log: {never}")
    for one in job.attempts:
        if one.log_bytes_dropped and attempt in (None, one.number):
            print_note(dropped(one.number, one.log_bytes_dropped))


def cancel(job_ids: tuple[str, ...], *, as_json: bool) -> None:
    """Cancel jobs; a job that cannot be cancelled does not stop the others."""
    with Client() as client:
        cancel_each(client, job_ids, as_json=as_json)


def cancel_each(client: Client, job_ids: Sequence[str], *, as_json: bool) -> None:
    """Cancel jobs by their ids, numbers or names."""
    cancelled: list[object] = []
    last_error: TenfoldError | None = None
    if job_ids:
        for job_id in job_ids:
            try:
                one = with_job(client, job_id, client.cancel, active=True)
            except TenfoldError as error:
                # The last error is printed by the caller, with its hint.
                if last_error is not None and not as_json:
                    complain(f"error: {last_error.message}")
                last_error = error
                continue
            cancelled.append(one)
            if not as_json:
                which = f" ({one.count:,} tasks)" if one.count else ""
                show(f"`{one.id}` is {one.state}{which}")
    if as_json:
        print_json(cancelled)
    if last_error is not None:
        raise last_error


def rerun(job_id: str, *, as_json: bool) -> None:
    """Submit a recorded job again, and print its name."""
    with Client() as client:
        made = with_job(client, job_id, client.rerun)
    print_json(made) if as_json else show_submitted(made)


def release(job_id: str, *, as_json: bool) -> None:
    """Release a held job."""
    with Client() as client:
        one = with_job(client, job_id, client.release)
    if as_json:
        print_json(one)
        return
    which = f" ({one.count:,} tasks)" if one.count else ""
    show(f"`{one.id}` is {one.state}{which}")


def why(job_id: str, seek: RemedySearch, *, as_json: bool) -> None:
    """Print why a job is pending, and what would let it start; otherwise its history."""
    with Client() as client:
        answer = with_job(
            client, job_id, lambda name: client.why(name, seek=seek, eta=seek != "none")
        )
        job_id = answer.id
        is_pending = answer.why is not None or answer.state == "pending"
        job = None
        if not as_json and not is_pending:
            job = _job_with_attempts(client, job_id, ATTEMPTS_IN_HISTORY)
            show_job(job, output_files(client, job))
    if job is not None:
        if answer.history:
            show_history(answer.history)
    else:
        print_json(answer) if as_json else show_why(answer)


def _wait(client: Client, made: Submitted, *, as_json: bool) -> None:
    ended = [client.wait(job_id) for job_id in made.ids]
    if as_json:
        print_json(ended if made.count else ended[0])
    else:
        for state in dict.fromkeys(job.state for job in ended):
            count = sum(job.state == state for job in ended)
            named = f": {_first([job.id for job in ended if job.state == state])}"
            named = "" if state == "succeeded" else named
            _show_end(ended[0]) if not made.count else show(f"{count:,} {state}{named}")
    if any(job.state != "succeeded" for job in ended):
        raise Exit(EXIT_NO if made.count else exit_status(ended[0]))


def _first(names: list[str]) -> str:
    """Return names in a line: the first ones, and how many more there are."""
    rest = f" and {len(names) - NAMED_MOST:,} more" if len(names) > NAMED_MOST else ""
    return ", ".join(names[:NAMED_MOST]) + rest


def _show_end(job: Job) -> None:
    code = "" if job.exit_code is None else f", exit code {job.exit_code}"
    if code[2:] in job.reason.sentence:
        code = ""
    show(f"`{job.id}` {job.state}{code}: {job.reason.sentence}")
    if failed := failed_line(job):
        show(failed)


def _note_still_running(job_id: str) -> None:
    """Tell the user that the job keeps running."""
    complain(f"`{job_id}` keeps running; cancel it with `tenfold job cancel {job_id}`")
