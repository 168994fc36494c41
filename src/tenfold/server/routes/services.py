"""Services over HTTP: deploy, show and change them, and what gateways route by."""

import asyncio
from typing import Annotated, Any

import msgspec
from anyio import to_thread
from litestar import Response, Router, delete, get, post
from litestar.params import FromPath, QueryParameter
from msgspec.structs import replace

from tenfold.files.services.service import spec_of, submission_of_service
from tenfold.journal.store import last_seq
from tenfold.live.inbox import ChangeService, DeployService
from tenfold.live.services import CHANGED
from tenfold.model.api.services import ScaleService, Service, Services, WeighCanary
from tenfold.model.fleet.finding import Finding
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import Job
from tenfold.model.job.terms import Terms
from tenfold.model.reason import Reason
from tenfold.model.registry import model_reference
from tenfold.model.service.spec import ServiceSpec
from tenfold.model.service.state import ServiceState
from tenfold.model.units import Millis
from tenfold.server.auth.access import AuthedRequest, requires_role
from tenfold.server.auth.redaction import sees_secrets, without_secrets
from tenfold.server.auth.tokens import Role, Token
from tenfold.server.inbox_client import call_loop, check_writable
from tenfold.server.problems import Problem, validation_problem
from tenfold.server.programs import check_programs
from tenfold.server.routes.models import find_version
from tenfold.server.runtime.deps import Control, ControlDep
from tenfold.server.runtime.fair_queue import leave_slot
from tenfold.server.runtime.leadership import not_leader
from tenfold.server.services.schema import to_service
from tenfold.server.services.served_model import ServedModel, served_model
from tenfold.server.submissions import SubmissionRequest, decode_object, read_body
from tenfold.server.workdirs import with_workdirs

POLL_S = 0.05
"""How often a waiting request looks for newer routing state."""
WAIT_S_MAX = 60.0
TRIES = 20
TRY_S = 0.05
"""A change that meets a step of the controller is made again."""
NewRevision = Annotated[
    bool, QueryParameter(description="Make a new revision even if the replicas run the same.")
]
After = Annotated[
    int, QueryParameter(ge=-1, description="The version that the caller has; -1 for none.")
]
Wait = Annotated[
    float,
    QueryParameter(ge=0, le=WAIT_S_MAX, description="Seconds to wait for a newer version."),
]


@get("/services", opt=requires_role(Role.viewer), sync_to_thread=True, operation_id="listServices")
def list_services(request: AuthedRequest, control: ControlDep) -> Services:
    """List the services of the token's team; operators see all teams."""
    snapshot, token = control.follower.snapshot(), request.user
    found = [one for one in snapshot.fleet.services.values() if _sees(token, one)]
    found.sort(key=lambda one: one.name)
    return Services(services=tuple(to_service(one, snapshot, token) for one in found))


@get(
    "/services/{name:str}",
    opt=requires_role(Role.viewer),
    sync_to_thread=True,
    operation_id="getService",
)
def get_service(request: AuthedRequest, control: ControlDep, name: FromPath[str]) -> Service:
    """Show a service, with its replicas, its revisions and what was deployed."""
    return _shown(control, request.user, name)


@post("/services", opt=requires_role(Role.member), status_code=200, operation_id="deployService")
async def deploy(
    request: AuthedRequest, control: ControlDep, new_revision: NewRevision = False
) -> Service:
    """Deploy a service: the body has the keys of a service file.

    A service with this name gets a new revision if what its replicas run has changed, and
    otherwise the new settings.
    """
    body, token = await request.body(), request.user
    check_writable(control.trouble())
    deployment = await to_thread.run_sync(_parsed, body, token, control)
    deployment = replace(deployment, is_new_revision=new_revision)
    return await _carry_out(control, token, deployment, deployment.spec.name)


@post(
    "/services/{name:str}/scale",
    opt=requires_role(Role.member),
    status_code=200,
    operation_id="scaleService",
)
async def scale(request: AuthedRequest, control: ControlDep, name: FromPath[str]) -> Service:
    """Set how many replicas a service has at least and at most."""
    row = read_body(ScaleService, await request.body(), "the request")
    state = await to_thread.run_sync(_find, control, request.user, name)
    if row.replicas_max < row.replicas_min:
        message = f"`replicas_max` is {row.replicas_max}, below `replicas_min`"
        raise Problem(422, Reason("wrong-value", sentence=message), "raise `replicas_max`")
    fixed = max(row.replicas_min, 1) == row.replicas_max and row.replicas_min > 0
    if not fixed and state.spec.slots is None:
        message = f"service `{name}` has no `slots` and rates, so it cannot follow its load"
        hint = "set the same minimum and maximum, or deploy it with these keys"
        raise Problem(422, Reason("wrong-value", sentence=message), hint)
    change = ChangeService(
        name,
        "scale",
        request.user.name,
        replicas_min=row.replicas_min,
        replicas_max=row.replicas_max,
    )
    return await _carry_out(control, request.user, change, name)


@post(
    "/services/{name:str}/canary",
    opt=requires_role(Role.member),
    status_code=200,
    operation_id="weighCanary",
)
async def canary(request: AuthedRequest, control: ControlDep, name: FromPath[str]) -> Service:
    """Set the share of the revision that is being rolled out; it stays until it is changed."""
    row = read_body(WeighCanary, await request.body(), "the request")
    change = ChangeService(name, "canary", request.user.name, weight=row.weight)
    return await _change(control, request.user, change)


@post(
    "/services/{name:str}/promote",
    opt=requires_role(Role.member),
    status_code=200,
    operation_id="promoteService",
)
async def promote(request: AuthedRequest, control: ControlDep, name: FromPath[str]) -> Service:
    """Give all requests to the revision that is being rolled out, once it is large enough."""
    return await _change(control, request.user, ChangeService(name, "promote", request.user.name))


@post(
    "/services/{name:str}/rollback",
    opt=requires_role(Role.member),
    status_code=200,
    operation_id="rollBackService",
)
async def rollback(request: AuthedRequest, control: ControlDep, name: FromPath[str]) -> Service:
    """End a rollout; without one, go back to the revision before."""
    return await _change(control, request.user, ChangeService(name, "rollback", request.user.name))


@delete(
    "/services/{name:str}",
    opt=requires_role(Role.member),
    status_code=200,
    operation_id="removeService",
)
async def remove(request: AuthedRequest, control: ControlDep, name: FromPath[str]) -> Service:
    """Remove a service: its replicas drain, and then it is gone."""
    state = await to_thread.run_sync(_find, control, request.user, name)
    shown = await to_thread.run_sync(_service, control, request.user, state)
    change = ChangeService(name, "remove", request.user.name)
    await _call(control, change)
    return replace(shown, state="removing")


@get("/routing", opt=requires_role(Role.operator), operation_id="getRouting")
async def routing(control: ControlDep, after: After = -1, wait_s: Wait = 0.0) -> Response[bytes]:
    """Return what gateways route by, if it is newer than `after`; 204 if it is not.

    It has no tokens, only their digests. Only the leader answers.
    """
    if (problem := not_leader(control.leadership)) is not None:
        raise problem
    loop = asyncio.get_running_loop()
    until_s = loop.time() + wait_s
    leave_slot()
    while True:
        encoded = control.routing.newer(after)
        if encoded is not None:
            return Response(encoded, media_type="application/json")
        if loop.time() >= until_s or control.is_closing():
            return Response(b"", status_code=204)
        await asyncio.sleep(POLL_S)


def _parsed(body: bytes, token: Token, control: Control) -> DeployService:
    """Return the deployment in a body; raise if it is invalid, or can never start here."""
    findings: list[Finding] = []
    spec = spec_of(decode_object(body), TeamId(token.team), findings)
    if spec is None or findings:
        raise validation_problem(findings, "the service")
    if not token.sees_all_teams and spec.team != token.team:
        message = f"the token belongs to team `{token.team}`, but the service names `{spec.team}`"
        reason = Reason("other-team", sentence=message)
        raise Problem(403, reason, "remove `team`, or use a token of that team")
    known = control.follower.snapshot().fleet.services.get(spec.name)
    if known is not None and not _sees(token, known):
        raise _name_taken(spec.name)
    model = _model(control, token, spec)
    runs = spec if model is None else model.filled_in(spec)
    submission = submission_of_service(runs, token.name, findings)
    assert submission is not None, "the service was checked before"
    as_service = replace(submission.terms or Terms(), kind="service")
    submission = replace(submission, terms=as_service)
    parsed = SubmissionRequest((submission,), is_batch=False)
    parsed = with_workdirs(parsed, control.machine, control.folder_check)
    check_programs(parsed, control.machine, control.program_check)
    parsed = control.feasibility.checked(parsed, body, token.reader)
    (one,) = parsed.submissions
    terms = replace(one.terms or Terms(), kind="service")
    job = Job(
        id=JobId(spec.name),
        shape=one.shape,
        submitted_ms=Millis(0),
        team=one.team,
        user=one.user,
        priority=one.priority,
        terms=terms,
    )
    if model is None:
        return DeployService(spec, one.team, job, one.run_spec, token.name)
    run_spec = model.with_variables(one.run_spec)
    return DeployService(model.recorded(spec), one.team, job, run_spec, token.name)


def _model(control: Control, token: Token, spec: ServiceSpec) -> ServedModel | None:
    """Return the model version that a service names now; raise if there is none."""
    if not spec.model:
        return None
    reference = model_reference(spec.model)
    return served_model(find_version(control, token, reference, spec.team), reference)


async def _change(control: Control, token: Token, change: ChangeService) -> Service:
    await to_thread.run_sync(_find, control, token, change.service)
    return await _carry_out(control, token, change, change.service)


async def _carry_out(
    control: Control, token: Token, request: DeployService | ChangeService, name: str
) -> Service:
    await _call(control, request)
    return await to_thread.run_sync(_shown, control, token, name)


async def _call(control: Control, request: DeployService | ChangeService) -> None:
    """Have the loop carry out a request; again, if it met a step of the controller."""
    check_writable(control.trouble())
    for _ in range(TRIES):
        try:
            await call_loop(control.inbox, request, control.wait_s)
        except Problem as problem:
            if problem.reason.code != CHANGED:
                raise
            await asyncio.sleep(TRY_S)
        else:
            return
    raise Problem(503, Reason(CHANGED, {"service": _name(request)}), "try again")


def _name(request: DeployService | ChangeService) -> str:
    return request.spec.name if isinstance(request, DeployService) else request.service


def _shown(control: Control, token: Token, name: str) -> Service:
    state = _find(control, token, name)
    shown = _service(control, token, state)
    spec = state.spec if sees_secrets(token, state.team) else without_secrets(state.spec)
    plain: dict[str, Any] = msgspec.to_builtins(spec)
    return replace(shown, spec=plain)


def _service(control: Control, token: Token, state: ServiceState) -> Service:
    return to_service(state, control.follower.snapshot(), token)


def _find(control: Control, token: Token, name: str) -> ServiceState:
    """Return a service that a token may see, as it is now; raise if there is none."""
    with control.store.reading() as connection:
        seq = last_seq(connection)
    state = control.follower.snapshot(seq).fleet.services.get(name)
    if state is None or not _sees(token, state):
        raise Problem(
            404,
            Reason("no-such-service", {"service": name}),
            "list them with `tenfold service list`",
        )
    return state


def _sees(token: Token, state: ServiceState) -> bool:
    return token.sees_all_teams or state.team == token.team


def _name_taken(name: str) -> Problem:
    return Problem(
        409,
        Reason("service-of-other-team", {"service": name}),
        "choose another name",
    )


ROUTES = Router(
    "/api/v1",
    route_handlers=[
        list_services,
        get_service,
        deploy,
        scale,
        canary,
        promote,
        rollback,
        remove,
        routing,
    ],
)
