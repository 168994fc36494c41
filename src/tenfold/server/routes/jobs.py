"""Jobs over HTTP: hand in, list, look at, take back."""

from datetime import UTC, datetime
from typing import Annotated

from anyio import to_thread
from litestar import Response, Router, delete, get, post
from litestar.params import FromPath, QueryParameter

from tenfold.journal import arrays, read
from tenfold.journal.rows import ArrayStory, JobStory
from tenfold.live.inbox import Cancel, Submit
from tenfold.model.api.jobs import PAGE_MOST, Batch, Job, JobPage, Submitted, Taken
from tenfold.model.ids import JobId
from tenfold.model.job.job import JobState
from tenfold.model.job.submission import SubmitKey
from tenfold.model.reason import Reason
from tenfold.server.auth.access import Asked, needs, sees, team_seen
from tenfold.server.auth.tokens import Role, Token
from tenfold.server.dependencies import comes_after, with_after
from tenfold.server.dropped import with_dropped
from tenfold.server.event_cursor import SEQ_MOST
from tenfold.server.idempotency import Key, answer_before, key_of
from tenfold.server.inbox_client import ask, check_writable
from tenfold.server.metrics.job_traces import traced
from tenfold.server.problems import Problem, no_such_job
from tenfold.server.runtime.deps import Control, Given
from tenfold.server.schemas import array_told, job_told
from tenfold.server.submissions import HandedIn, handed_in, submitted
from tenfold.server.usage import with_use

AT_ONCE_BYTES = 8_192
"""Larger bodies are read in a thread, beside other requests."""
Text = Annotated[str | None, QueryParameter(max_length=80)]
Before = Annotated[int | None, QueryParameter(ge=0, le=SEQ_MOST, description="`next` of a page.")]
Since = Annotated[
    datetime | None,
    QueryParameter(description="Jobs handed in no earlier: a date and a time in ISO 8601."),
]
OfArray = Annotated[str | None, QueryParameter(max_length=120, description="Its members alone.")]
InState = Annotated[JobState | None, QueryParameter(name="state")]
Limit = Annotated[int, QueryParameter(ge=1, le=PAGE_MOST, description="Jobs in a page.")]
Idle = Annotated[bool, QueryParameter(description="Jobs that idle alone.")]
Forecast = Annotated[bool, QueryParameter(description="Say when it will start; may take seconds.")]


@post("/jobs", opt=needs(Role.member), status_code=201, operation_id="submitJobs")
async def submit_jobs(
    request: Asked, control: Given, idempotency_key: Key = None
) -> Response[Submitted | Batch]:
    """Hand in one job, or several as `{"jobs": [...]}`; answered when the disk has them.

    Sent again under its key, it is answered with status 200 and the same names.
    """
    body = await request.body()
    asked, key = await read_submissions(body, request.user, idempotency_key)
    answer = None
    if key is not None:
        answer = await to_thread.run_sync(answer_before, control.store, key, asked)
    if answer is None:
        check_writable(control.trouble())
        if comes_after(asked):
            asked = await to_thread.run_sync(with_after, asked, control.store, request.user)
        jobs = traced(asked.submissions, control.traces.current())
        answer = await ask(control.inbox, Submit(jobs, key), control.wait_s)
    if not answer.again:
        control.meters.submitted.inc(len(answer.jobs))
    made = submitted(asked, answer.jobs, control.follower.policy)
    status = 200 if answer.again else 201
    return Response(Batch(jobs=made) if asked.is_batch else made[0], status_code=status)


async def read_submissions(
    body: bytes, token: Token, key: str | None = None
) -> tuple[HandedIn, SubmitKey | None]:
    """Return what a body hands in and under which key; a large one is read beside others."""

    def read_it() -> tuple[HandedIn, SubmitKey | None]:
        return handed_in(body, token), key_of(key, body, token)

    return await to_thread.run_sync(read_it) if len(body) > AT_ONCE_BYTES else read_it()


@get("/jobs", opt=needs(Role.viewer), sync_to_thread=True, operation_id="listJobs")
def list_jobs(
    request: Asked,
    control: Given,
    team: Text = None,
    in_state: InState = None,
    since: Since = None,
    array: OfArray = None,
    before: Before = None,
    limit: Limit = 100,
    idle: Idle = False,
) -> JobPage:
    """List jobs, the newest first; below `operator`, those of one's own team."""
    seen = team_seen(request.user, team)
    if team not in (None, seen) or "\0" in f"{team}{array}":
        return JobPage(jobs=(), next=None)
    now = control.follower.moment() if idle else None
    named = None if now is None else tuple(now.fleet.idle)
    rows = read.jobs(
        control.store,
        team=seen,
        state=in_state,
        before=before,
        limit=limit,
        within=read.Within(None if since is None else _millis(since), array, named),
    )
    attempts = read.attempts_of(control.store, [row.id for row in rows if row.attempts])
    waits = any(row.state == "pending" for row in rows)
    moment = control.follower.moment() if waits else None
    told = tuple(
        with_use(job_told(row, attempts.get(row.id, ()), request.user, moment), row, control.usage)
        for row in rows
    )
    return JobPage(jobs=told, next=rows[-1].seq if len(rows) == limit else None)


@get("/jobs/{job_id:str}", opt=needs(Role.viewer), sync_to_thread=True, operation_id="showJob")
def show_job(request: Asked, control: Given, job_id: FromPath[str], eta: Forecast = False) -> Job:
    """Show one job with its attempts, or an array in a summary."""
    whole = array_of(control, request.user, job_id)
    if whole is not None:
        return array_told(job_id, whole)
    story = job_of(control, request.user, job_id)
    row = story.job
    moment = control.follower.moment(row.changed_seq) if row.state == "pending" else None
    found = None
    if moment is not None and eta:
        with control.gate.entered():
            found = moment.why(job_id, "none", with_eta=True)
    forecast = None if found is None else found.eta
    told = job_told(row, story.attempts, request.user, moment, forecast)
    return with_use(with_dropped(told, control.logs), row, control.usage)


@delete("/jobs/{job_id:str}", opt=needs(Role.member), status_code=202, operation_id="cancelJob")
async def cancel_job(request: Asked, control: Given, job_id: FromPath[str]) -> Taken:
    """Take back a job that waits, or tell one that runs to end; of an array, all of them."""
    members = await to_thread.run_sync(_members, control, request.user, job_id)
    check_writable(control.trouble())
    wish = Cancel(JobId(job_id), members, request.user.name)
    answer = await ask(control.inbox, wish, control.wait_s)
    return await to_thread.run_sync(
        _after_cancel, control, request.user, job_id, len(answer.jobs) if members else 0
    )


def job_of(control: Control, token: Token, job_id: str) -> JobStory:
    """Return a job that is there for this token; raise as if it were not, where it is not."""
    story = read.job(control.store, job_id) if "\0" not in job_id else None
    if story is None or not sees(token, story.job):
        raise no_such_job(job_id)
    return story


def array_of(control: Control, token: Token, base: str) -> ArrayStory | None:
    """Return an array that is there for this token; None where the name is not that of one."""
    if "[" in base or "\0" in base:
        return None
    found = arrays.array(control.store, base)
    return found if found is not None and sees(token, found.first) else None


def _members(control: Control, token: Token, job_id: str) -> tuple[JobId, ...]:
    """Return the members of an array that are not over; none for one job that is there."""
    if array_of(control, token, job_id) is None:
        job_of(control, token, job_id)
        return ()
    left = arrays.members(control.store, job_id, live=True)
    if not left:
        reason = Reason("job-not-active", sentence=f"no member of `{job_id}` waits or runs")
        raise Problem(409, reason)
    return tuple(row.id for row in left)


def _after_cancel(control: Control, token: Token, job_id: str, count: int) -> Taken:
    """Return where a job stands: its processes were told, and that is not in the journal yet."""
    whole = array_of(control, token, job_id) if count else None
    state = whole.state if whole is not None else job_of(control, token, job_id).job.state
    state = "stopping" if state in ("starting", "running") else state
    return Taken(id=job_id, state=state, count=count)


def _millis(at: datetime) -> int:
    """Return a moment in milliseconds; one that names no zone is in UTC."""
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1_000)


ROUTES = Router("/api/v1", route_handlers=[submit_jobs, list_jobs, show_job, cancel_job])
