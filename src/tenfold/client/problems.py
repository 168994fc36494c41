"""From an answer that says no to the error that is raised for it.

400 404 405 413 415 422   InputError     what was asked cannot be used
401 403 409               Refused        understood, and not allowed or not possible now
429 500 502 503 504       Unreachable    ask again later
"""

from collections.abc import Sequence

import msgspec

from tenfold.model.api.problems import Fault, ProblemBody
from tenfold.model.errors import InputError, NoAnswer, Refused, TenfoldError, Unreachable

NEVER_SENT = "control-plane-unreachable"
"""The code of a call that nobody was there to take."""
NOBODY = ("unknown-token", "token-revoked", "token-expired")
"""Codes with which a token is turned away."""


class FaultyRequest(InputError):
    """What was sent was read to its end and has faults; `faults` lists them."""

    def __init__(self, code: str, message: str, hint: str, faults: Sequence[Fault]) -> None:
        super().__init__(code, message, hint, field=faults[0].field if faults else "")
        self.faults = tuple(faults)


def problem_of(status: int, body: bytes, url: str) -> TenfoldError | None:
    """Return the error that an answer stands for; None where it is none."""
    if 200 <= status < 300:
        return None
    try:
        said = msgspec.json.decode(body, type=ProblemBody)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return stranger(url, f"it answers with status {status} and no reason")
    if status in (401, 403, 409):
        return Refused(said.code, said.detail, said.hint)
    if status < 500 and status != 429:
        return FaultyRequest(said.code, said.detail, said.hint, said.errors)
    return Unreachable(said.code, said.detail, said.hint or "ask again in some seconds")


def stranger(url: str, said: str) -> Unreachable:
    """Return the error of an answer that no control plane of this version gives."""
    return Unreachable(
        "not-a-control-plane",
        f"what answers at `{url}` is no control plane that this client knows: {said}",
        "check the address, and that both are of one version",
    )


def silent(url: str, error: Exception, *, was_sent: bool) -> Unreachable:
    """Return the error of a control plane that did not answer.

    `was_sent`: the wish may have arrived and been done, and only the answer is missing.
    """
    why = str(error) or type(error).__name__
    if was_sent:
        return Unreachable(
            "answer-lost",
            f"the control plane at `{url}` did not answer ({why}): it may have done what was asked",
            "look before you ask again: `tenfold job list`",
        )
    hint = "is it running? `tenfold up` starts one"
    if "CERTIFICATE_VERIFY_FAILED" in why:
        hint = "name the authority that signed its certificate: SSL_CERT_FILE=ca.pem"
    said = f"the control plane at `{url}` does not answer: {why}"
    return Unreachable("control-plane-unreachable", said, hint)


def not_over(job_id: str, timeout_s: float | None) -> NoAnswer:
    """Return the error of a wait that was not long enough."""
    return NoAnswer(
        "not-over-yet",
        f"job `{job_id}` is not over after {timeout_s or 0:g} s",
        "it goes on; wait for it again, or look at it with `tenfold job show`",
    )


def log_broke_off(job_id: str, url: str) -> Unreachable:
    """Return the error of a log that ended before its attempt did."""
    return Unreachable(
        "log-broke-off",
        f"the control plane at `{url}` ended the log of job `{job_id}` before the job did",
        "the job goes on; follow it again once the control plane is back",
    )
