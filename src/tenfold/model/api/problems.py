"""Errors, as `application/problem+json`."""

from msgspec import Struct


class Fault(Struct, frozen=True, kw_only=True):
    """One error in a request."""

    field: str
    code: str
    message: str
    hint: str = ""


class ProblemBody(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error response."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    hint: str = ""
    field: str = ""
    errors: tuple[Fault, ...] = ()
    errors_left_out: int = 0
