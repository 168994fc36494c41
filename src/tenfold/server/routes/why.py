"""Why a job is pending, answered by the real policy over a copy of the fleet."""

from typing import Annotated, Any, cast

import msgspec
from litestar import Router, get
from litestar.params import FromPath, QueryParameter
from msgspec import UNSET

from tenfold.model.api.jobs import Why
from tenfold.server.auth.access import AuthedRequest, requires_role
from tenfold.server.auth.tokens import Role, Token
from tenfold.server.background.follower import FleetSnapshot, WaitAnswer
from tenfold.server.history import history_of
from tenfold.server.routes.jobs import Forecast, job_of
from tenfold.server.runtime.admission import EXPENSIVE
from tenfold.server.runtime.deps import ControlDep
from tenfold.server.schemas import (
    cordoned_for_failures,
    iso,
    stop_sentence,
    stopped_at,
    to_eta,
    to_job,
)
from tenfold.study.why.redaction import redacted_why
from tenfold.study.why.remedies import RemedySearch

Seek = Annotated[RemedySearch, QueryParameter(description="Which fixes to try; each takes time.")]


@get(
    "/jobs/{job_id:str}/why",
    opt=requires_role(Role.viewer) | EXPENSIVE,
    sync_to_thread=True,
    operation_id="whyJob",
)
def why_job(
    request: AuthedRequest,
    control: ControlDep,
    job_id: FromPath[str],
    seek: Seek = "cheapest",
    eta: Forecast = False,
) -> Why:
    """Explain why a job is pending.

    With the policy `governed`, also find the cheapest change that would start it now. For a job
    that is not pending, the answer has its history.
    """
    story = job_of(control, request.user, job_id)
    snapshot = control.follower.snapshot(story.job.changed_seq)
    job = to_job(story.job, story.attempts, request.user, snapshot)
    found = history = None
    with control.limiter.slot():
        if story.job.state == "pending":
            found = snapshot.why(job_id, seek, with_eta=eta)
        else:
            history = history_of(control.store, story.job, request.user.reader)
    return Why(
        id=job_id,
        state=job.state,
        at=iso(snapshot.at_ms),
        reason=job.reason,
        why=None if found is None else plain_why(found, snapshot, request.user),
        eta=None if found is None else to_eta(found.why.eta),
        eta_unknown=(found is not None and found.why.eta_unknown) or UNSET,
        is_brief=found is not None and found.is_brief,
        history=history or UNSET,
        stopped=stop_sentence(story.job, story.attempts, request.user) or UNSET,
        stopped_at=stopped_at(story.job, story.attempts) or UNSET,
        nodes_out=cordoned_for_failures(snapshot.fleet, request.user)
        if job.state == "pending"
        else (),
    )


def plain_why(found: WaitAnswer, snapshot: FleetSnapshot, token: Token) -> dict[str, Any]:
    """Return the explanation as plain data, redacted for the token."""
    shown = redacted_why(found.why, snapshot.fleet, token.reader)
    return cast("dict[str, Any]", msgspec.to_builtins(shown))


ROUTES = Router("/api/v1", route_handlers=[why_job])
