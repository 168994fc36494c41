"""Errors, as `application/problem+json`."""

from msgspec import Struct


class Fault(Struct, frozen=True, kw_only=True):
    """One thing wrong in what was sent."""

    field: str
    code: str
    message: str
    hint: str = ""


class ProblemBody(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an error looks like to the client."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    hint: str = ""
    field: str = ""
    errors: tuple[Fault, ...] = ()
    errors_left_out: int = 0
