"""Why a gateway refuses a request or cannot answer it: codes, statuses and the body of errors.

Bodies have the form of the OpenAI API, so its clients raise their own exceptions. Messages name
services and limits, never addresses of replicas, tokens or other teams.
"""

import msgspec
from msgspec import Struct


class Kind(Struct, frozen=True):
    """One code: its HTTP status, the `type` of the error, and what it means."""

    status: int
    type: str
    meaning: str


_BAD = "invalid_request_error"
_WHO = "authentication_error"
_LIMIT = "rate_limit_error"
_BUSY = "overloaded_error"
_REPLICA = "replica_error"

REFUSALS: dict[str, Kind] = {
    "no_api_key": Kind(401, _WHO, "the request has no token"),
    "invalid_api_key": Kind(401, _WHO, "the token is unknown or has expired"),
    "model_not_found": Kind(
        404, _BAD, "no service has this name, or the token may not use it; both look the same"
    ),
    "no_model": Kind(400, _BAD, "the request has neither a model nor a service"),
    "invalid_body": Kind(400, _BAD, "the body is not a JSON object, or is incomplete"),
    "invalid_request": Kind(400, _BAD, "the request is not valid HTTP"),
    "invalid_path": Kind(400, _BAD, "the path contains `.`, `..` or control characters"),
    "path_not_found": Kind(404, _BAD, "the gateway or the service has no such path"),
    "method_not_allowed": Kind(405, _BAD, "the gateway does not forward this method"),
    "body_too_large": Kind(413, _BAD, "the body exceeds the limit of the gateway"),
    "body_timeout": Kind(408, _BAD, "the body did not arrive in time"),
    "rate_limit_exceeded": Kind(
        429, _LIMIT, "the team exceeds its requests or tokens per minute; see `Retry-After`"
    ),
    "concurrency_limit_exceeded": Kind(
        429, _LIMIT, "the team has reached its limit of concurrent requests"
    ),
    "queue_full": Kind(503, _BUSY, "the queue of the service is full; see `Retry-After`"),
    "wait_timeout": Kind(503, _BUSY, "no replica was free in time; see `Retry-After`"),
    "not_ready": Kind(503, _BUSY, "the gateway has no routing state yet"),
    "shutting_down": Kind(
        503, _BUSY, "the gateway is shutting down, and the request did not finish in time"
    ),
    "replica_failed": Kind(502, _REPLICA, "no replica responded, and all retries were used"),
    "replica_timeout": Kind(504, _REPLICA, "no replica started to respond in time"),
    "replica_interrupted": Kind(
        502,
        _REPLICA,
        "the replica failed in the middle of a response; sent as the last event of the stream",
    ),
    "invalid_answer": Kind(502, _REPLICA, "the replica sent an invalid response"),
    "internal_error": Kind(500, "server_error", "a bug in the gateway"),
}


class RequestRefused(Exception):
    """A request that is refused, or that could not be answered."""

    def __init__(self, code: str, message: str, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retry_after_s = retry_after_s

    @property
    def status(self) -> int:
        """The HTTP status."""
        return REFUSALS[self.code].status

    def body(self) -> bytes:
        """Return the body of the answer."""
        return error_body(self.code, self.message)


def error_body(refusal: str, message: str) -> bytes:
    """Return an error as the OpenAI API writes it."""
    error = {"message": message, "type": REFUSALS[refusal].type, "param": None, "code": refusal}
    return msgspec.json.encode({"error": error})
