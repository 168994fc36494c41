"""Submit a recorded job again over HTTP: the same command, resources and variables."""

from anyio import to_thread
from litestar import Response, Router, post
from litestar.params import FromPath
from msgspec import UNSET
from msgspec.structs import replace

from tenfold.journal import arrays, read
from tenfold.live.inbox import Submit
from tenfold.model.api.jobs import Submitted
from tenfold.model.ids import JobId
from tenfold.model.job.submission import ARRAY_INDEX, Submission
from tenfold.model.job.terms import Terms
from tenfold.model.reason import Reason
from tenfold.server.auth.access import AuthedRequest, requires_role
from tenfold.server.auth.tokens import Role, Token
from tenfold.server.inbox_client import call_loop, check_writable
from tenfold.server.metrics.job_traces import with_trace
from tenfold.server.problems import Problem
from tenfold.server.routes.jobs import array_of, job_of
from tenfold.server.runtime.deps import Control, ControlDep
from tenfold.server.submissions import SubmissionRequest, sized, submitted

NAMED_MOST = 3
"""Dependencies that a note names."""


@post(
    "/jobs/{job_id:str}/rerun",
    opt=requires_role(Role.member),
    status_code=201,
    operation_id="rerunJob",
)
async def rerun_job(
    request: AuthedRequest, control: ControlDep, job_id: FromPath[str]
) -> Response[Submitted]:
    """Submit a job again: same command, resources and variables, without its `after`.

    An array is submitted again as a whole; a member of one as a single job with its index. `notes`
    names the dependencies that are left out.
    """
    parsed, dropped = await to_thread.run_sync(_recorded, control, request.user, job_id)
    check_writable(control.trouble())
    if not control.feasibility.has_checked(parsed):
        parsed = await to_thread.run_sync(
            control.feasibility.checked, parsed, b"{}", request.user.reader
        )
    submissions = with_trace(parsed.submissions, control.traces.current())
    answer = await call_loop(control.inbox, Submit(submissions, None), control.wait_s)
    control.meters.submitted.inc(len(answer.jobs))
    (made,) = submitted(parsed, answer.jobs, control.follower.policy)
    return Response(replace(made, notes=(*dropped, *made.notes)), status_code=201)


def _recorded(
    control: Control, token: Token, job_id: str
) -> tuple[SubmissionRequest, tuple[str, ...]]:
    """Return the submission of a job that this token may see, and notes on what it leaves out."""
    whole = array_of(control, token, job_id)
    first = JobId(job_id) if whole is None else whole.first.id
    if whole is None:
        job_of(control, token, job_id, attempts=1)
    found = read.submission(control.store, first)
    if found is None or found.run_spec is None:
        message = f"the submission of `{job_id}` is no longer in the journal"
        raise Problem(409, Reason("not-kept", sentence=message), "submit it from its job file")
    job, run_spec = found.job, found.run_spec
    own = job.terms or Terms()
    most = 0 if whole is None else own.array_most
    always = own.array_most_always if most else UNSET
    terms = replace(
        own, after=(), after_any=UNSET, array="", array_most=most, array_most_always=always
    )
    env = run_spec.env
    if whole is not None:
        # Each member gets its own index.
        env = tuple(one for one in env if one[0] != ARRAY_INDEX)
    again = Submission(
        team=job.team,
        user=token.name,
        shape=job.shape,
        run_spec=replace(run_spec, env=env, trace="", rerun_of=job_id),
        priority=job.priority,
        limit_ms=job.limit_ms,
        terms=None if terms == Terms() else terms,
        array=0 if whole is None else whole.count,
        indexes=() if whole is None else _indexes(control, job_id),
    )
    return SubmissionRequest(sized([again]), is_batch=False), _dropped(own)


def _dropped(terms: Terms) -> tuple[str, ...]:
    """Return a note on the dependencies that a rerun does not have; none if there are none."""
    found = [f"{_named(terms.after)} (afterok)"] if terms.after else []
    found += [f"{_named(terms.ended_first)} (afterany)"] if terms.ended_first else []
    if not found:
        return ()
    noun = "dependency" if len({*terms.after, *terms.ended_first}) == 1 else "dependencies"
    return (f"without its {noun} on {' and '.join(found)}",)


def _named(jobs: tuple[JobId, ...]) -> str:
    """Return the first jobs, and how many more there are; an array once."""
    names = list(dict.fromkeys(job.rpartition("[")[0] or job for job in jobs))
    more = f" and {len(names) - NAMED_MOST:,} more" if len(names) > NAMED_MOST else ""
    return ", ".join(f"`{name}`" for name in names[:NAMED_MOST]) + more


def _indexes(control: Control, array: str) -> tuple[int, ...]:
    """Return the indexes of the members of an array; none if they are 0, 1, 2 and so on."""
    names = (row.id for row in arrays.members(control.store, array))
    found = tuple(int(name.rpartition("[")[2].rstrip("]")) for name in names)
    return () if found == tuple(range(len(found))) else found


ROUTES = Router("/api/v1", route_handlers=[rerun_job])
