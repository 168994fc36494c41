"""Errors as `application/problem+json`: a stable code, a sentence, a hint, and the field.

Whatever goes wrong is answered in this form and no other. What is not expected is logged with
its trace, and the answer says only that it happened.
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
ERRORS_MAX = 100
"""Faults that are listed: a batch may have ten thousand."""

_TITLES = {
    400: "Bad request",
    401: "Not authenticated",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    410: "Gone",
    413: "Too large",
    415: "Unsupported media type",
    422: "Cannot be used",
    429: "Too many requests",
    500: "A bug",
    503: "Not available",
}
_CODES = {
    400: ("bad-request", "look at the reference of the HTTP API"),
    404: ("no-such-route", "look at the reference of the HTTP API"),
    405: ("method-not-allowed", "look at the reference of the HTTP API"),
    413: ("body-too-large", "a body may have 4 MiB: hand in fewer jobs at once"),
    415: ("media-type", "send JSON"),
    429: ("too-many-requests", "wait a little and ask again"),
}
_CLIENT_NAMES = {
    "in_state": "state",
    "last_event_id": "Last-Event-ID",
    "idempotency_key": "Idempotency-Key",
}
"""Parameters that clients know by another name than the code."""
_REFUSED = {
    "job-not-active": 409,
    "key-taken": 409,
    "no-such-node": 404,
    "node-refused": 409,
    "node-not-refused": 409,
    "node-under-test": 409,
    "node-busy": 409,
    "node-lost": 409,
    "no-acceptance-test": 409,
}
"""Status by the code with which the loop refuses; all others mean that it cannot answer now."""
_HINTS = {
    "key-taken": "use another key for another request",
    "no-such-node": "list the nodes; nothing was done to any other",
    "node-refused": "test it again once it is mended, or accept it as it is",
    "node-busy": "cordon it, and ask again when its jobs are over",
    "node-under-test": "ask again when the test is over",
}
_LOG = logging.getLogger("tenfold.server")


class Problem(Exception):
    """Ends a request with an answer that says why."""

    def __init__(
        self,
        status: int,
        reason: Reason,
        hint: str = "",
        *,
        faults: Sequence[Fault] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        # What the server says itself is a sentence already; whoever asked may read it.
        self.detail = reason.sentence or render(reason, Reader())
        super().__init__(self.detail)
        self.status = status
        self.reason = reason
        self.hint = hint
        self.faults = faults
        self.headers = dict(headers or {})

    def body(self) -> ProblemBody:
        """Return what is sent."""
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
    """Return the problem of a body that was read and cannot be used."""
    faults = [_fault(one) for one in findings]
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    message = f"{what} cannot be used: {faults[0].message}{more}"
    return Problem(422, Reason(faults[0].code, sentence=message), faults[0].hint, faults=faults)


def refusal(reason: Reason) -> Problem:
    """Return the problem of a request that the loop refused."""
    status = _REFUSED.get(reason.code, 503)
    hint = (
        "ask again, or look whether it was done" if status == 503 else _HINTS.get(reason.code, "")
    )
    return Problem(status, reason, hint)


def no_such_job(job_id: str) -> Problem:
    """Return the problem of a job that is not there, or is another team's."""
    return Problem(
        404, Reason("no-such-job", sentence=f"there is no job `{job_id}`"), "list your jobs"
    )


def problem_response(problem: Problem) -> Response[ProblemBody]:
    """Return a problem as a response."""
    return Response(
        problem.body(),
        status_code=problem.status,
        media_type=MEDIA_TYPE,
        headers=problem.headers,
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
        code, hint, faults = "wrong-value", "mend the fields that are named", _faults(error.extra)
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
    _LOG.error("the journal does not answer", exc_info=error)
    reason = Reason("journal-unreachable", sentence="the journal does not answer")
    return problem_response(Problem(503, reason, "ask again; `/readyz` tells when it is back"))


def _from_bug(request: Request[Any, Any, Any], error: Exception) -> Response[ProblemBody]:
    _LOG.error("a bug in %s %s", request.method, request.url.path, exc_info=error)
    return problem_response(_bug())


def _bug() -> Problem:
    reason = Reason("bug", sentence="the server met something that it did not expect")
    return Problem(500, reason, "the log of the server tells more; please report it")


def _fault(one: Finding) -> Fault:
    """Return a finding as a fault; what is missing has no line in a file, and a field here."""
    if one.code != "missing-key":
        return Fault(field=one.field, code=one.code, message=one.message, hint=one.hint)
    key = one.message.rpartition("`")[0].rpartition("`")[2]
    field = replace(one, path=(*one.path, key)).field
    return Fault(field=field, code=one.code, message=f"`{field}` is missing", hint=f"add `{key}`")


def _faults(extra: object) -> list[Fault]:
    """Return what the framework found wrong with parameters, in this form."""
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
HANDLERS = cast(
    "dict[int | type[Exception], _Handler]",
    {
        Problem: _from_problem,
        HTTPException: _from_http,
        TenfoldError: _from_tenfold,
        SQLAlchemyError: _from_database,
        Exception: _from_bug,
    },
)
"""How each kind of exception is answered."""
