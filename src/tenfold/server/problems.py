"""Errors as `application/problem+json`: a stable code, a sentence, a hint, and the field.

Every error response has this format. Unexpected errors are logged with their traceback, and the
response only says that one happened.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from msgspec.structs import replace
from sqlalchemy.exc import SQLAlchemyError

from tenfold.model.api.problems import Fault, ProblemBody
from tenfold.model.errors import Refused, TenfoldError, Unreachable
from tenfold.model.fleet.finding import Finding
from tenfold.model.reason import Reason
from tenfold.report.reasons.render import Reader, render

MEDIA_TYPE = "application/problem+json"
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
"""Of every response: none may be cached, because the next token may see less."""
ERRORS_MAX = 100
"""Errors listed in a response; a batch may have ten thousand."""

_TITLES = {
    400: "Bad request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    410: "Gone",
    413: "Too large",
    422: "Invalid request",
    429: "Too many requests",
    500: "Internal error",
    503: "Service unavailable",
}
_CODES = {
    400: ("bad-request", "see the HTTP API reference"),
    404: ("no-such-route", "see the HTTP API reference"),
    405: ("method-not-allowed", "see the HTTP API reference"),
    413: ("body-too-large", "the limit is 4 MiB per request; submit fewer jobs at once"),
}
_CLIENT_NAMES = {
    "in_state": "state",
    "last_event_id": "Last-Event-ID",
    "idempotency_key": "Idempotency-Key",
}
"""Parameters whose name in the API differs from the name in the code."""
_REFUSED = {
    "job-not-active": 409,
    "job-not-held": 409,
    "key-taken": 409,
    "request-failed": 500,
    "backlog-full": 429,
    "no-such-node": 404,
    "node-refused": 409,
    "node-not-refused": 409,
    "node-under-test": 409,
    "node-busy": 409,
    "node-lost": 409,
    "no-acceptance-test": 409,
    "no-such-service": 404,
    "service-of-other-team": 409,
    "service-changed": 503,
    "no-rollout": 409,
    "no-earlier-revision": 409,
    "no-such-model": 404,
    "no-such-version": 404,
    "no-such-alias": 404,
    "no-such-parent": 422,
    "version-has-alias": 409,
    "too-many-models": 429,
    "too-many-versions": 429,
    "too-many-aliases": 429,
}
"""Status by the loop's refusal code; all others mean that it cannot answer now."""
_NOT_DONE = {
    "not-leader": "nothing was changed; send it to the control plane that leads",
    "standby": "send changes to the control plane that leads",
}
"""Hints of refusals with status 503 after which nothing needs to be checked."""
_HINTS = {
    "backlog-full": "wait until some jobs have ended, or cancel some",
    "request-failed": "nothing was changed; the server log has the traceback",
    "job-not-held": "only jobs with the reason `quarantined` can be released",
    "key-taken": "use a new key for a different request",
    "no-such-node": "check `tenfold node list`; no nodes were changed",
    "node-refused": "fix the node and test it again, or accept it as it is",
    "node-busy": "cordon it, and try again once its jobs have ended",
    "no-such-service": "list them with `tenfold service list`",
    "service-of-other-team": "choose another name",
    "no-rollout": "deploy a new revision first",
    "no-earlier-revision": "deploy the earlier version again",
    "node-under-test": "try again once the test has finished",
    "no-such-model": "list models with `tenfold model list`",
    "no-such-version": "list versions with `tenfold model show`; removed ones cannot be used",
    "no-such-alias": "list aliases with `tenfold model show`",
    "no-such-parent": "name the parent by its number, as in `chat@3`",
    "version-has-alias": "move or delete the alias first: `tenfold model alias`",
    "too-many-models": "register versions of a model that exists",
    "too-many-versions": "register under another name",
    "too-many-aliases": "delete aliases that are no longer used",
}
_LOG = logging.getLogger("tenfold.server")


class Problem(Exception):
    """Ends a request with an error response."""

    def __init__(
        self,
        status: int,
        reason: Reason,
        hint: str = "",
        *,
        faults: Sequence[Fault] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        # The server's own messages are sentences already, with nothing to redact.
        self.detail = reason.sentence or render(reason, Reader())
        super().__init__(self.detail)
        self.status = status
        self.reason = reason
        self.hint = hint
        self.faults = faults
        self.headers = dict(headers or {})

    def body(self) -> ProblemBody:
        """Return the response body."""
        shown = tuple(self.faults[:ERRORS_MAX])
        return ProblemBody(
            type=f"urn:tenfold:problem:{self.reason.code}",
            title=_TITLES.get(self.status, "Error"),
            status=self.status,
            code=self.reason.code,
            detail=self.detail,
            hint=self.hint,
            field=shown[0].field if len(shown) == 1 else "",
            errors=shown,
            errors_left_out=len(self.faults) - len(shown),
        )


def validation_problem(findings: Sequence[Finding], what: str) -> Problem:
    """Return the problem for a body that was parsed and has errors."""
    faults = [_fault(one) for one in findings]
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    message = f"{what} is invalid: {faults[0].message}{more}"
    return Problem(422, Reason(faults[0].code, sentence=message), faults[0].hint, faults=faults)


def refusal(reason: Reason) -> Problem:
    """Return the problem for a request that the loop refused."""
    status = _REFUSED.get(reason.code, 503)
    hint = (
        _NOT_DONE.get(reason.code, "check whether it was carried out, then try again")
        if status == 503
        else _HINTS.get(reason.code, "")
    )
    return Problem(status, reason, hint)


def no_such_job(job_id: str) -> Problem:
    """Return the problem for a job that does not exist, or belongs to another team."""
    return Problem(
        404,
        Reason("no-such-job", sentence=f"no job `{job_id}`"),
        "list your jobs with `tenfold job list`",
    )


def problem_response(problem: Problem) -> Response[ProblemBody]:
    """Return a problem as a response."""
    return Response(
        problem.body(),
        status_code=problem.status,
        media_type=MEDIA_TYPE,
        headers={**HEADERS, **problem.headers},
    )


def _from_problem(_: Request[Any, Any, Any], error: Problem) -> Response[ProblemBody]:
    return problem_response(error)


def _from_http(_: Request[Any, Any, Any], error: HTTPException) -> Response[ProblemBody]:
    status = error.status_code
    if status >= 500:
        return problem_response(_bug())
    code, hint = _CODES.get(status, ("bad-request", ""))
    faults: list[Fault] = []
    if isinstance(error, ValidationException):
        code, hint, faults = (
            "wrong-value",
            "fix the fields listed in `errors`",
            _faults(error.extra),
        )
    message = f"{faults[0].field}: {faults[0].message}" if faults else error.detail
    headers = {key: value for key, value in (error.headers or {}).items() if key.lower() == "allow"}
    return problem_response(
        Problem(status, Reason(code, sentence=message), hint, faults=faults, headers=headers)
    )


def _from_tenfold(_: Request[Any, Any, Any], error: TenfoldError) -> Response[ProblemBody]:
    status = 503 if isinstance(error, Unreachable) else 403 if isinstance(error, Refused) else 422
    faults = [Fault(field=error.field, code=error.code, message=error.message)]
    return problem_response(
        Problem(
            status,
            Reason(error.code, sentence=error.message),
            error.hint,
            faults=faults if error.field else (),
        )
    )


def _from_database(_: Request[Any, Any, Any], error: SQLAlchemyError) -> Response[ProblemBody]:
    _LOG.error("the journal does not respond", exc_info=error)
    reason = Reason("journal-unreachable", sentence="the journal does not respond")
    return problem_response(Problem(503, reason, "try again; `/readyz` shows when it is back"))


def _from_bug(request: Request[Any, Any, Any], error: Exception) -> Response[ProblemBody]:
    _LOG.error("unexpected error in %s %s", request.method, request.url.path, exc_info=error)
    return problem_response(_bug())


def _bug() -> Problem:
    reason = Reason("bug", sentence="unexpected error in the server")
    return Problem(500, reason, "this is a bug, please report it; the server log has the traceback")


def _fault(one: Finding) -> Fault:
    """Return a finding as a field error; a missing key gets its own field."""
    if one.code != "missing-key":
        return Fault(field=one.field, code=one.code, message=one.message, hint=one.hint)
    key = one.message.rpartition("`")[0].rpartition("`")[2]
    field = replace(one, path=(*one.path, key)).field
    return Fault(field=field, code=one.code, message=f"`{field}` is missing", hint=f"add `{key}`")


def _faults(extra: object) -> list[Fault]:
    """Return the framework's parameter errors in this format."""
    if not isinstance(extra, list):
        return []
    rows = [cast("dict[str, Any]", row) for row in cast("list[object]", extra) if row]
    return [
        Fault(field=_client_name(row), code="wrong-value", message=str(row.get("message")))
        for row in rows
    ]


def _client_name(row: Mapping[str, Any]) -> str:
    key = str(row.get("key", ""))
    return _CLIENT_NAMES.get(key, key)


_Handler = Callable[[Request[Any, Any, Any], Any], Response[ProblemBody]]


def _releasing(handler: _Handler) -> _Handler:
    """Return a handler that releases what the failed request held.

    An exception from a worker thread and the frames in its traceback hold each other, and with them
    the decoded body. Only a full garbage collection would free it, minutes later.
    """

    def handle(request: Request[Any, Any, Any], error: Exception) -> Response[ProblemBody]:
        response = handler(request, error)
        chained: BaseException | None = error
        while chained is not None and chained.__traceback__ is not None:
            chained.__traceback__ = None
            chained = chained.__cause__ or chained.__context__
        return response

    return handle


HANDLERS = cast(
    "dict[int | type[Exception], _Handler]",
    {
        Problem: _releasing(_from_problem),
        HTTPException: _releasing(_from_http),
        TenfoldError: _releasing(_from_tenfold),
        SQLAlchemyError: _releasing(_from_database),
        Exception: _releasing(_from_bug),
    },
)
"""The handler for each type of exception."""
