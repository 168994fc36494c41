"""Every error that Tenfold raises on purpose.

TenfoldError
  InputError          a file, row, option or field is not usable     exit 2
    InvalidFile       a file has errors; all of them are listed      exit 2
  NoAnswer            the answer is no: nothing fits, a check failed exit 1
  Refused             the request is not allowed                     exit 3
  Unreachable         a program or server did not answer             exit 4

Codes are stable, kebab-case and documented in `docs/reference/errors.md`. A bug raises
an assertion error instead and exits with status 70.
"""

from collections.abc import Sequence
from typing import ClassVar

from tenfold.model.fleet.finding import Finding


class TenfoldError(Exception):
    """An expected failure: a stable code, a one-sentence message and a hint."""

    exit_status: ClassVar[int] = 1

    def __init__(
        self,
        code: str,
        message: str,
        hint: str = "",
        *,
        file: str = "",
        line: int | None = None,
        field: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.file = file
        self.line = line
        self.field = field


class InputError(TenfoldError):
    """A file, option or value from the user cannot be used."""

    exit_status = 2


class InvalidFile(InputError):
    """A file has errors; `findings` lists all of them."""

    def __init__(self, file: str, findings: Sequence[Finding]) -> None:
        first = findings[0]
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        super().__init__(
            first.code,
            f"{first.message}{more}",
            first.hint,
            file=first.file or file,
            line=first.line,
            field=first.field,
        )
        self.findings = tuple(findings)


class NoAnswer(TenfoldError):
    """The request is valid and the answer is no."""

    exit_status = 1


class Refused(TenfoldError):
    """The request is valid but not allowed."""

    exit_status = 3


class Unreachable(TenfoldError):
    """A required program or server did not answer."""

    exit_status = 4
