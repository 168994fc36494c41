"""Why a job waits, asked of the real policy over a copy of the fleet."""

from typing import Annotated, Any, cast

import msgspec
from litestar import Router, get
from litestar.params import FromPath, QueryParameter

from tenfold.model.api.jobs import Why
from tenfold.server.auth.access import Asked, needs
from tenfold.server.auth.tokens import Role, Token
from tenfold.server.background.follower import Followed, Moment
from tenfold.server.nodes_out import nodes_out
from tenfold.server.routes.jobs import Forecast, job_of
from tenfold.server.runtime.deps import Given
from tenfold.server.schemas import eta_told, iso, job_told
from tenfold.study.why.redaction import redacted_why
from tenfold.study.why.remedies import RemedySearch

Seek = Annotated[
    RemedySearch, QueryParameter(description="Which remedies are tried: each takes time.")
]


@get("/jobs/{job_id:str}/why", opt=needs(Role.viewer), sync_to_thread=True, operation_id="whyJob")
def why_job(
    request: Asked,
    control: Given,
    job_id: FromPath[str],
    seek: Seek = "cheapest",
    eta: Forecast = False,
) -> Why:
    """Say why a job waits, and the cheapest change that would let it start now."""
    story = job_of(control, request.user, job_id)
    moment = control.follower.moment(story.job.changed_seq)
    told = job_told(story.job, story.attempts, request.user, moment)
    found = None
    if story.job.state == "pending":
        with control.gate.entered():
            found = moment.why(job_id, seek, with_eta=eta)
    return Why(
        id=job_id,
        state=told.state,
        at=iso(moment.at_ms),
        reason=told.reason,
        why=None if found is None else plain_why(found, moment, request.user),
        eta=None if found is None else eta_told(found.eta),
        is_brief=found is not None and found.is_brief,
        nodes_out=nodes_out(moment.fleet, request.user) if told.state == "pending" else (),
    )


def plain_why(found: Followed, moment: Moment, token: Token) -> dict[str, Any]:
    """Return why a job waits as plain data, as far as it is for the token."""
    shown = redacted_why(found.why, moment.fleet, token.reader)
    return cast("dict[str, Any]", msgspec.to_builtins(shown))


ROUTES = Router("/api/v1", route_handlers=[why_job])
