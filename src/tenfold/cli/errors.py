"""Print errors, as text or as JSON."""

import json
import traceback

from cyclopts import CycloptsError

from tenfold.cli.output import complain, complain_lines
from tenfold.cli.usage import usage_text
from tenfold.compose.settings import debug
from tenfold.model.errors import InvalidFile, TenfoldError


class Exit(Exception):
    """Raised to end a command with an exit status; its output is complete."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def report_error(error: TenfoldError, as_json: bool) -> None:
    """Print an error with its place and a hint."""
    if as_json:
        _write_json(
            code=error.code,
            message=error.message,
            hint=error.hint,
            file=error.file,
            line=error.line,
            field=error.field,
        )
        return
    if isinstance(error, InvalidFile):
        for found in error.findings:
            place = place_of(found.file, found.line, found.message)
            _write(f"error: {place}{found.message}", new_hint(found.hint, found.message))
        return
    place = f"{error.file}:{error.line}: " if error.file and error.line else ""
    _write(f"error: {place}{error.message}", new_hint(error.hint, error.message))


def place_of(file: str, line: int | None, message: str) -> str:
    """Return the file and line before a message; nothing if the message names the file."""
    if not file:
        return ""
    if line:
        return f"{file}:{line}: "
    return "" if f"`{file}`" in message else f"{file}: "


def new_hint(hint: str, message: str) -> str:
    """Return a hint, or nothing if it repeats the message."""
    return "" if hint.removeprefix("write ") in message else hint


def report_usage(error: CycloptsError, as_json: bool) -> None:
    """Print an error about the command line itself."""
    message, hint = usage_text(error)
    if as_json:
        _write_json(code="usage", message=message, hint=hint, file="", line=None, field="")
    else:
        _write(f"error: {message}", hint)


def report_bug(error: Exception, as_json: bool) -> None:
    """Print an unexpected exception as a bug, with how to report it."""
    if debug():
        complain_lines("".join(traceback.format_exception(error)))
    message = f"internal error (this is a bug in tenfold): {type(error).__name__}: {error}"
    hint = "run it again with `TENFOLD_DEBUG=1` and report the output"
    if as_json:
        _write_json(code="bug", message=message, hint=hint, file="", line=None, field="")
    else:
        _write(f"error: {message}", hint)


def _write(message: str, hint: str) -> None:
    complain(f"{message}")
    if hint:
        complain(f"hint: {hint}")


def _write_json(**error: str | int | None) -> None:
    complain(json.dumps({"error": error}))
