"""Jobs over HTTP: hand in, list, look at, take back."""

from typing import Annotated

from anyio import to_thread
from litestar import Router, delete, get, post
from litestar.params import FromPath, QueryParameter
from msgspec import Struct

from tenfold.journal import read
from tenfold.journal.rows import JobRow, JobState, JobStory
from tenfold.live.inbox import Cancel, Submit
from tenfold.model.ids import JobId
from tenfold.server.access import Asked, needs, sees, team_seen
from tenfold.server.asked import ask, check_writable
from tenfold.server.control import Control, Given
from tenfold.server.handed_in import Submitted, handed_in, submitted
from tenfold.server.problems import no_such_job
from tenfold.server.tokens import Role, Token
from tenfold.server.told import JobTold, job_told

SEQ_MOST = 2**63 - 1
AT_ONCE_BYTES = 8_192
"""Larger bodies are read in a thread, beside other requests."""
Text = Annotated[str | None, QueryParameter(max_length=80)]
Before = Annotated[int | None, QueryParameter(ge=0, le=SEQ_MOST, description="`next` of a page.")]
InState = Annotated[JobState | None, QueryParameter(name="state")]
Limit = Annotated[int, QueryParameter(ge=1, le=read.JOBS_MOST, description="Jobs in a page.")]
Forecast = Annotated[bool, QueryParameter(description="Say when it will start; may take seconds.")]


class JobsTold(Struct, frozen=True, kw_only=True):
    """A page of jobs, the newest first."""

    jobs: list[JobTold]
    next: int | None
    """What to give as `before` for the page that follows; null at the end."""


class Batch(Struct, frozen=True, kw_only=True):
    """What became of several submissions, in their order."""

    jobs: list[Submitted]


class Taken(Struct, frozen=True, kw_only=True):
    """A request about a job that the loop has taken."""

    id: str
    state: str


@post("/jobs", opt=needs(Role.member), status_code=201, operation_id="submitJobs")
async def submit_jobs(request: Asked, control: Given) -> Submitted | Batch:
    """Hand in one job, or several as `{"jobs": [...]}`; answered when the disk has them."""
    check_writable(control.trouble())
    body = await request.body()
    if len(body) > AT_ONCE_BYTES:
        asked = await to_thread.run_sync(handed_in, body, request.user)
    else:
        asked = handed_in(body, request.user)
    answer = await ask(control.inbox, Submit(asked.submissions), control.wait_s)
    control.meters.submitted.inc(len(answer.jobs))
    made = submitted(asked, answer.jobs)
    return Batch(jobs=made) if asked.is_batch else made[0]


@get("/jobs", opt=needs(Role.viewer), sync_to_thread=True, operation_id="listJobs")
def list_jobs(
    request: Asked,
    control: Given,
    team: Text = None,
    in_state: InState = None,
    before: Before = None,
    limit: Limit = 100,
) -> JobsTold:
    """List jobs, the newest first; below `operator`, those of one's own team."""
    seen = team_seen(request.user, team)
    if team not in (None, seen):
        return JobsTold(jobs=[], next=None)
    rows = read.jobs(control.store, team=seen, state=in_state, before=before, limit=limit)
    attempts = read.attempts_of(control.store, [row.id for row in rows if row.attempts])
    waits = any(row.state == "pending" for row in rows)
    moment = control.follower.moment() if waits else None
    told = [job_told(row, attempts.get(row.id, ()), request.user, moment) for row in rows]
    return JobsTold(jobs=told, next=rows[-1].seq if len(rows) == limit else None)


@get("/jobs/{job_id:str}", opt=needs(Role.viewer), sync_to_thread=True, operation_id="showJob")
def show_job(
    request: Asked, control: Given, job_id: FromPath[str], eta: Forecast = False
) -> JobTold:
    """Show one job with its attempts."""
    story = job_of(control, request.user, job_id)
    row = story.job
    moment = control.follower.moment(row.changed_seq) if row.state == "pending" else None
    found = None
    if moment is not None and eta:
        with control.gate.entered():
            found = moment.why(job_id, "none", with_eta=True)
    forecast = None if found is None else found.eta
    return job_told(row, story.attempts, request.user, moment, forecast)


@delete("/jobs/{job_id:str}", opt=needs(Role.member), status_code=202, operation_id="cancelJob")
async def cancel_job(request: Asked, control: Given, job_id: FromPath[str]) -> Taken:
    """Take back a job that waits, or tell one that runs to end."""
    await to_thread.run_sync(job_of, control, request.user, job_id)
    check_writable(control.trouble())
    await ask(control.inbox, Cancel(JobId(job_id)), control.wait_s)
    story = await to_thread.run_sync(job_of, control, request.user, job_id)
    return Taken(id=job_id, state=_after_cancel(story.job))


def job_of(control: Control, token: Token, job_id: str) -> JobStory:
    """Return a job that is there for this token; raise as if it were not, where it is not."""
    story = read.job(control.store, job_id) if "\0" not in job_id else None
    if story is None or not sees(token, story.job):
        raise no_such_job(job_id)
    return story


def _after_cancel(row: JobRow) -> str:
    """Return where a job stands: its processes were told, and that is not in the journal yet."""
    return "stopping" if row.state in ("starting", "running") else row.state


ROUTES = Router("/api/v1", route_handlers=[submit_jobs, list_jobs, show_job, cancel_job])
