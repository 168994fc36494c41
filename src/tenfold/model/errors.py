"""Everything that Tenfold raises on purpose, in one tree.

TenfoldError
  InputError          a file, row, option or field that cannot be used   exit 2
    FaultyFile        a file with one or more faults, all of them listed  exit 2
  NoAnswer            the answer is no: nothing fits, a check was missed  exit 1
  Refused             allowed to ask, not allowed to do                   exit 3
  Unreachable         something outside did not answer                    exit 4

Codes are stable, kebab-case and documented in `docs/reference/errors.md`. A bug is
an assertion, not one of these, and ends with exit status 70.
"""

from collections.abc import Sequence
from typing import ClassVar

from tenfold.model.fleet.finding import Finding


class TenfoldError(Exception):
    """An expected failure: a stable code, one sentence, and what to do about it."""

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
    """Something given by the user cannot be used as it is."""

    exit_status = 2


class InvalidFile(InputError):
    """A file was read to its end and has faults; `findings` lists every one."""

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
    """The question was understood and the answer is no."""

    exit_status = 1


class Refused(TenfoldError):
    """The request was understood and is not allowed."""

    exit_status = 3


class Unreachable(TenfoldError):
    """A program or server that is needed did not answer."""

    exit_status = 4
