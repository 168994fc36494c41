"""Map error responses to the exceptions that the client raises.

400 404 405 413 415 422   InputError     the request is wrong
401 403 409               Refused        the request is valid, but not allowed or not possible now
429 500 502 503 504       Unreachable    try again later
429 503 + Retry-After     Throttled      nothing was done; try again after that time
503 + not-leader          NotLeader      nothing was done; ask the control plane that leads
"""

import re
from collections.abc import Mapping, Sequence

import msgspec

from tenfold.model.api.problems import Fault, ProblemBody
from tenfold.model.errors import InputError, NoAnswer, Refused, TenfoldError, Unreachable

NEVER_SENT = "control-plane-unreachable"
"""The code of a call that never reached a server."""
BAD_TOKEN = ("unknown-token", "token-revoked", "token-expired")
"""Codes of a rejected token."""
NOT_LEADER = ("not-leader", "standby")
"""Codes of a control plane that stands by."""
LEADER = "Tenfold-Leader"
"""The header with the URL of the one that leads."""

ERRNO = re.compile(r"^\[Errno -?\d+\] ")


class FaultyRequest(InputError):
    """The request was parsed and has errors; `faults` lists them all."""

    def __init__(self, code: str, message: str, hint: str, faults: Sequence[Fault]) -> None:
        super().__init__(code, message, hint, field=faults[0].field if faults else "")
        self.faults = tuple(faults)


class NotLeader(Unreachable):
    """This control plane carries out no changes, because another one leads: nothing was done."""

    def __init__(self, code: str, message: str, hint: str, leader: str) -> None:
        super().__init__(code, message, hint)
        self.leader = leader
        """The URL of the one that leads; empty if it is not known."""


class Throttled(Unreachable):
    """The control plane is busy, or the client sends too much; the request was not carried out."""

    def __init__(self, code: str, message: str, hint: str, retry_after_s: float) -> None:
        super().__init__(code, message, hint)
        self.retry_after_s = retry_after_s


def problem_of(
    status: int, content: bytes, url: str, headers: Mapping[str, str] | None = None
) -> TenfoldError | None:
    """Return the exception for a response; None for success."""
    if 200 <= status < 300:
        return None
    try:
        body = msgspec.json.decode(content, type=ProblemBody)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return not_a_control_plane(url, f"status {status} without a problem body")
    if status in (401, 403, 409):
        return Refused(body.code, body.detail, body.hint)
    if status < 500 and status != 429:
        return FaultyRequest(body.code, body.detail, body.hint, body.errors)
    hint = body.hint or "try again in a few seconds"
    if status == 503 and body.code in NOT_LEADER:
        return NotLeader(body.code, body.detail, hint, (headers or {}).get(LEADER, ""))
    after = (headers or {}).get("Retry-After", "")
    if status in (429, 503) and after:
        # We send seconds; a date, which only a proxy would send, counts as a short wait.
        return Throttled(body.code, body.detail, hint, float(after) if after.isdecimal() else 1.0)
    return Unreachable(body.code, body.detail, hint)


def not_a_control_plane(url: str, why: str) -> Unreachable:
    """Return the error for a response that a control plane of this version never sends."""
    return Unreachable(
        "not-a-control-plane",
        f"the server at `{url}` is not a compatible Tenfold control plane: {why}",
        "check the URL, and that client and server run the same version",
    )


def no_answer(url: str, error: Exception, *, was_sent: bool) -> Unreachable:
    """Return the error for a control plane that did not answer.

    `was_sent`: the request may have been carried out, and only the response was lost.
    """
    why = ERRNO.sub("", str(error)) or type(error).__name__
    if was_sent:
        return Unreachable(
            "answer-lost",
            f"no response from the control plane at `{url}` ({why}); "
            "the request may have been carried out",
            "check with `tenfold job list` before you retry",
        )
    hint = "check that it is running; `tenfold up` starts one"
    if "CERTIFICATE_VERIFY_FAILED" in why:
        hint = "set SSL_CERT_FILE to the CA that signed its certificate: SSL_CERT_FILE=ca.pem"
    message = f"cannot reach the control plane at `{url}`: {why}"
    return Unreachable("control-plane-unreachable", message, hint)


def wait_timed_out(job_id: str, timeout_s: float | None) -> NoAnswer:
    """Return the error for a job that did not end within the timeout."""
    return NoAnswer(
        "not-over-yet",
        f"job `{job_id}` has not ended after {timeout_s or 0:g} s",
        "the job is unaffected; wait again, or check it with `tenfold job show`",
    )


def log_interrupted(job_id: str, url: str) -> Unreachable:
    """Return the error for a log stream that ended before its attempt did."""
    return Unreachable(
        "log-broke-off",
        f"the control plane at `{url}` closed the log of job `{job_id}` before the job ended",
        "the job keeps running; follow it again once the control plane is back",
    )
