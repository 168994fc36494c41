"""Jobs over HTTP: submit, list, show, cancel and release."""

from datetime import UTC, datetime
from typing import Annotated

from anyio import to_thread
from litestar import Response, Router, delete, get, post
from litestar.params import FromPath, QueryParameter
from msgspec import UNSET
from msgspec.structs import replace

from tenfold.journal import arrays, read
from tenfold.journal.rows import ArraySummary, JobWithAttempts
from tenfold.live.inbox import Cancel, Release, Submit
from tenfold.model.api.jobs import (
    ATTEMPTS_LISTED,
    ATTEMPTS_SHOWN,
    PAGE_MAX,
    Attempt,
    Batch,
    CancelledJob,
    Job,
    JobPage,
    ReleasedJob,
    Submitted,
)
from tenfold.model.ids import JobId
from tenfold.model.job.job import JobState
from tenfold.model.job.submission import SubmitKey
from tenfold.model.reason import Reason
from tenfold.report import figures
from tenfold.server.auth.access import AuthedRequest, can_see, requires_role, visible_team
from tenfold.server.auth.known_teams import unknown_teams
from tenfold.server.auth.redaction import sees_secrets, without_diff
from tenfold.server.auth.tokens import Role, Token
from tenfold.server.dependencies import (
    has_dependencies,
    job_with_number,
    resolve_dependencies,
)
from tenfold.server.event_cursor import SEQ_MAX
from tenfold.server.idempotency import IdempotencyKey, previous_answer, submit_key
from tenfold.server.inbox_client import call_loop, check_writable
from tenfold.server.job_details import gpu_hours, requested
from tenfold.server.metrics.job_traces import with_trace
from tenfold.server.problems import Problem, no_such_job
from tenfold.server.programs import check_programs, needs_programs
from tenfold.server.runtime.admission import EXPENSIVE_WITH_ETA
from tenfold.server.runtime.deps import Control, ControlDep, JobLogs
from tenfold.server.schemas import iso, to_array, to_job
from tenfold.server.submissions import SubmissionRequest, parse_submissions, submitted
from tenfold.server.usage import with_use
from tenfold.server.workdirs import needs_workdirs, with_workdirs

INLINE_BYTES = 8_192
"""Larger bodies are parsed in a thread, so that they do not block other requests."""
FOLDERS_MAX = 20
"""Latest attempts of a page whose folders are read."""
_OVER: dict[JobState, str] = {
    "succeeded": "has already succeeded",
    "failed": "has already failed",
    "cancelled": "was already cancelled",
}
Text = Annotated[str | None, QueryParameter(max_length=80)]
Before = Annotated[
    int | None, QueryParameter(ge=0, le=SEQ_MAX, description="`next` of the previous page.")
]
Since = Annotated[
    datetime | None,
    QueryParameter(description="Only jobs submitted at or after this time, in ISO 8601."),
]
OfArray = Annotated[
    str | None, QueryParameter(max_length=120, description="Only tasks of this array.")
]
InState = Annotated[JobState | None, QueryParameter(name="state")]
Limit = Annotated[int, QueryParameter(ge=1, le=PAGE_MAX, description="Jobs per page.")]
Idle = Annotated[bool, QueryParameter(description="Only idle jobs.")]
Count = Annotated[bool, QueryParameter(description="Also count all matching jobs.")]
Attempts = Annotated[int, QueryParameter(ge=1, le=PAGE_MAX, description="Attempts per page.")]
AttemptsBefore = Annotated[
    int | None,
    QueryParameter(ge=1, le=2**31, description="`attempts_next` of the previous page."),
]
Forecast = Annotated[
    bool, QueryParameter(description="Forecast when it will start; may take seconds.")
]


@post("/jobs", opt=requires_role(Role.member), status_code=201, operation_id="submitJobs")
async def submit_jobs(
    request: AuthedRequest, control: ControlDep, idempotency_key: IdempotencyKey = None
) -> Response[Submitted | Batch]:
    """Submit one job, or several as `{"jobs": [...]}`; responds once they are on disk.

    A repeated request with the same `Idempotency-Key` gets status 200 and the same job ids. A job
    that can never start on this fleet is rejected with status 422, unless it sets `allow_pending`.
    """
    body = await request.body()
    parsed, key = await read_submissions(body, request.user, idempotency_key)
    answer = None
    if key is not None:
        answer = await to_thread.run_sync(previous_answer, control.store, key, parsed)
    if answer is None:
        check_writable(control.trouble())
        if has_dependencies(parsed):
            parsed = await to_thread.run_sync(
                resolve_dependencies, parsed, control.store, request.user
            )
        if any(one.team != request.user.team for one in parsed.submissions):
            parsed = await to_thread.run_sync(with_team_notes, parsed, control)
        if needs_workdirs(parsed):
            parsed = await to_thread.run_sync(
                with_workdirs, parsed, control.machine, control.folder_check
            )
        if needs_programs(parsed, control.machine):
            await to_thread.run_sync(check_programs, parsed, control.machine, control.program_check)
        if not control.feasibility.has_checked(parsed):
            parsed = await to_thread.run_sync(
                control.feasibility.checked, parsed, body, request.user.reader
            )
        submissions = with_trace(parsed.submissions, control.traces.current())
        answer = await call_loop(control.inbox, Submit(submissions, key), control.wait_s)
    if not answer.again:
        control.meters.submitted.inc(len(answer.jobs))
    made = submitted(parsed, answer.jobs, control.follower.policy)
    status = 200 if answer.again else 201
    return Response(Batch(jobs=made) if parsed.is_batch else made[0], status_code=status)


def with_team_notes(request: SubmissionRequest, control: Control) -> SubmissionRequest:
    """Return a request with a note on each team that nothing else names: it may be mistyped."""
    teams = (one.team for one in request.submissions)
    unknown = unknown_teams(teams, control.store, control.tokens, control.follower.policy)
    if not unknown:
        return request
    places = enumerate(request.submissions)
    notes = {place: unknown[one.team] for place, one in places if one.team in unknown}
    return replace(request, team_notes=notes)


async def read_submissions(
    body: bytes, token: Token, key: str | None = None
) -> tuple[SubmissionRequest, SubmitKey | None]:
    """Return the submissions in a body and their key; large bodies are parsed in a thread."""

    def parse() -> tuple[SubmissionRequest, SubmitKey | None]:
        return parse_submissions(body, token), submit_key(key, body, token)

    return await to_thread.run_sync(parse) if len(body) > INLINE_BYTES else parse()


@get("/jobs", opt=requires_role(Role.viewer), sync_to_thread=True, operation_id="listJobs")
def list_jobs(
    request: AuthedRequest,
    control: ControlDep,
    team: Text = None,
    in_state: InState = None,
    since: Since = None,
    array: OfArray = None,
    before: Before = None,
    limit: Limit = 100,
    idle: Idle = False,
    user: Text = None,
    count: Count = False,
) -> JobPage:
    """List jobs, newest first; below `operator`, only your team's.

    Each job has its latest attempts only.
    """
    seen, now_ms = visible_team(request.user, team), control.now_ms()
    if team not in (None, seen) or "\0" in f"{team}{array}{user}":
        empty = JobPage(jobs=(), next=None)
        return replace(empty, total=0, at=iso(now_ms)) if count else empty
    now = control.follower.snapshot() if idle else None
    idle_ids = None if now is None else tuple(now.fleet.idle)
    since_ms = None if since is None else _millis(since)
    within = read.JobFilter(since_ms, array, idle_ids, user)
    rows = read.jobs(
        control.store, team=seen, state=in_state, before=before, limit=limit, within=within
    )
    started = [row.id for row in rows if row.attempts]
    attempts = read.attempts_of(control.store, started, latest=ATTEMPTS_LISTED)
    has_pending = any(row.state == "pending" for row in rows)
    snapshot = control.follower.snapshot() if has_pending else None
    jobs = tuple(
        with_use(
            to_job(
                row,
                attempts.get(row.id, ()),
                request.user,
                snapshot,
                now_ms=now_ms,
                service=control.service_of(row.id),
            ),
            row,
            control.usage,
        )
        for row in rows
    )
    page = JobPage(jobs=jobs, next=rows[-1].seq if len(rows) == limit else None)
    if not count:
        return page
    total = len(rows)
    if before is not None or page.next is not None:
        total = read.job_count(control.store, team=seen, state=in_state, within=within)
    return replace(page, total=total, at=iso(now_ms))


@get(
    "/jobs/{job_id:str}",
    opt=requires_role(Role.viewer) | EXPENSIVE_WITH_ETA,
    sync_to_thread=True,
    operation_id="showJob",
)
def show_job(
    request: AuthedRequest,
    control: ControlDep,
    job_id: FromPath[str],
    eta: Forecast = False,
    attempts: Attempts = ATTEMPTS_SHOWN,
    attempts_before: AttemptsBefore = None,
) -> Job:
    """Show one job with its latest attempts, or a summary of an array.

    A number alone, as of `train-12`, names a job too; that of an array's first member the array.
    """
    job_id = _by_number(control, request.user, job_id)
    whole = array_of(control, request.user, job_id)
    if whole is not None:
        return to_array(job_id, whole)
    story = job_of(control, request.user, job_id, attempts_before, attempts)
    row = story.job
    snapshot = control.follower.snapshot(row.changed_seq) if row.state == "pending" else None
    found = None
    if snapshot is not None and eta:
        with control.limiter.slot():
            found = snapshot.why(job_id, "none", with_eta=True)
    forecast = None if found is None else found.why.eta
    now_ms = control.now_ms()
    service = control.service_of(row.id)
    shown = to_job(
        row, story.attempts, request.user, snapshot, forecast, now_ms=now_ms, service=service
    )
    details = requested(read.submission(control.store, job_id), control.workdir)
    if details.memory_gib:
        details = replace(details, memory_limit_of=control.memory_scope() or UNSET)
    if not sees_secrets(request.user, row.team):
        details = replace(details, origin=without_diff(details.origin))
    times = read.run_times(control.store, job_id, now_ms)
    used = gpu_hours(row, details.gpus_per_node, times)
    shown = replace(shown, requested=details, gpu_hours=used)
    if found is not None and shown.eta is None:
        shown = replace(shown, eta_unknown=found.why.eta_unknown or UNSET)
    return with_use(with_log_facts(shown, control.logs), row, control.usage)


@delete(
    "/jobs/{job_id:str}", opt=requires_role(Role.member), status_code=202, operation_id="cancelJob"
)
async def cancel_job(
    request: AuthedRequest, control: ControlDep, job_id: FromPath[str]
) -> CancelledJob:
    """Cancel a pending or running job; for an array, all its members."""
    members = await to_thread.run_sync(_members, control, request.user, job_id)
    if not members:
        await to_thread.run_sync(_check_not_over, control, request.user, job_id)
    check_writable(control.trouble())
    cancel = Cancel(JobId(job_id), members, request.user.name)
    answer = await call_loop(control.inbox, cancel, control.wait_s)
    return await to_thread.run_sync(
        _after_cancel, control, request.user, job_id, len(answer.jobs) if members else 0
    )


@post(
    "/jobs/{job_id:str}/release",
    opt=requires_role(Role.operator),
    status_code=200,
    operation_id="releaseJob",
)
async def release_job(
    request: AuthedRequest, control: ControlDep, job_id: FromPath[str]
) -> ReleasedJob:
    """Release a held job, so that it is pending again; for an array, all held members."""
    members = await to_thread.run_sync(_members, control, request.user, job_id)
    check_writable(control.trouble())
    release = Release(JobId(job_id), members, request.user.name)
    answer = await call_loop(control.inbox, release, control.wait_s)
    return ReleasedJob(id=job_id, state="pending", count=len(answer.jobs) if members else 0)


def _by_number(control: Control, token: Token, text: str) -> str:
    """Return the job that a number alone means; other names as they are."""
    found = job_with_number(control.store, text, token)
    if found is None:
        return text
    base, bracket, _ = found[0].rpartition("[")
    return base if bracket and base.endswith(f"-{text}") else found[0]


def job_of(
    control: Control,
    token: Token,
    job_id: str,
    attempts_before: int | None = None,
    attempts: int = ATTEMPTS_SHOWN,
) -> JobWithAttempts:
    """Return a job that this token may see; otherwise raise as if it did not exist."""
    story = None
    if "\0" not in job_id:
        story = read.job(control.store, job_id, attempts_before, attempts)
    if story is not None and can_see(token, story.job):
        return story
    whole = array_of(control, token, job_id)
    if whole is not None:
        raise _is_array(job_id, whole)
    raise no_such_job(job_id)


def _is_array(base: str, whole: ArraySummary) -> Problem:
    """Return the problem for an array where one job is needed."""
    return Problem(
        404,
        Reason("is-array", sentence=f"`{base}` is an array of {figures.count(whole.count, 'job')}"),
        f"name one of its jobs, such as `{whole.first.id}`",
    )


def array_of(control: Control, token: Token, base: str) -> ArraySummary | None:
    """Return an array that this token may see; None if the name is not an array."""
    if "[" in base or "\0" in base:
        return None
    found = arrays.array(control.store, base)
    return found if found is not None and can_see(token, found.first) else None


def with_log_facts(job: Job, logs: JobLogs) -> Job:
    """Return a job whose latest attempts say which process failed, and the log bytes dropped.

    This is not in the journal. It is read from the folder of each attempt, so only when a single
    job is shown.
    """
    older, latest = job.attempts[:-FOLDERS_MAX], job.attempts[-FOLDERS_MAX:]
    attempts = [_with_log_facts(JobId(job.id), one, logs) for one in latest]
    return replace(job, attempts=(*older, *attempts))


def _with_log_facts(job_id: JobId, attempt: Attempt, logs: JobLogs) -> Attempt:
    if attempt.started_at is None:
        return attempt
    log = logs.logs(job_id, attempt.number, 0, 0)
    # There is no total for all members while it runs; the first member stands in.
    dropped = log.bytes_dropped_in_all or log.bytes_dropped
    if dropped:
        attempt = replace(attempt, log_bytes_dropped=dropped)
    # After a stop or a time limit, the processes end because they are killed: none of them failed.
    is_failure = attempt.exit_code not in (None, 0) and len(attempt.nodes) > 1
    if is_failure and log.failed_member is not None:
        attempt = replace(attempt, failed_member=log.failed_member)
    return attempt


def _members(control: Control, token: Token, job_id: str) -> tuple[JobId, ...]:
    """Return the active members of an array; none for a single job."""
    if array_of(control, token, job_id) is None:
        job_of(control, token, job_id)
        return ()
    left = arrays.members(control.store, job_id, live=True)
    if not left:
        reason = Reason("job-not-active", sentence=f"all tasks of `{job_id}` have ended")
        raise Problem(409, reason)
    return tuple(row.id for row in left)


def _check_not_over(control: Control, token: Token, job_id: str) -> None:
    """Raise if a job has ended already."""
    state = job_of(control, token, job_id, attempts=1).job.state
    if state in _OVER:
        sentence = f"job `{job_id}` {_OVER[state]}"
        raise Problem(409, Reason("job-not-active", sentence=sentence))


def _after_cancel(control: Control, token: Token, job_id: str, count: int) -> CancelledJob:
    """Return the state of a cancelled job: the journal may not show it as stopping yet."""
    whole = array_of(control, token, job_id) if count else None
    state = whole.state if whole is not None else job_of(control, token, job_id).job.state
    state = "stopping" if state in ("starting", "running") else state
    return CancelledJob(id=job_id, state=state, count=count)


def _millis(at: datetime) -> int:
    """Return a time in milliseconds; without a zone it is UTC."""
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1_000)


ROUTES = Router(
    "/api/v1", route_handlers=[submit_jobs, list_jobs, show_job, cancel_job, release_job]
)
