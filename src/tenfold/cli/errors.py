"""How errors reach people and programs."""

import json
import sys
import traceback

from cyclopts import CycloptsError

from tenfold.compose.settings import debug
from tenfold.model.errors import InvalidFile, TenfoldError


class Exit(Exception):
    """A command has said all it has to say and ends with this status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def report_error(error: TenfoldError, as_json: bool) -> None:
    """Write what went wrong, where, and what to do."""
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
            place = f"{found.file}:{found.line}: " if found.line else f"{found.file}: "
            _write(f"error: {place}{found.message}", found.hint)
        return
    place = f"{error.file}:{error.line}: " if error.file and error.line else ""
    _write(f"error: {place}{error.message}", error.hint)


def report_usage(error: CycloptsError, as_json: bool) -> None:
    """Write what is wrong with the command line itself."""
    message = " ".join(str(error).split())
    message = message[:1].lower() + message[1:].rstrip(".")
    message = message.replace('"', "`").replace("invalid value", "cannot use the value")
    if as_json:
        _write_json(code="usage", message=message, hint="add --help", file="", line=None, field="")
    else:
        _write(
            f"error: {message}",
            "`tenfold --help` lists the commands, `--help` after one its options",
        )


def report_bug(error: Exception, as_json: bool) -> None:
    """Write that this is our fault, and how to see more."""
    if debug():
        traceback.print_exception(error)
    message = f"this is a bug in tenfold: {type(error).__name__}: {error}"
    hint = "run again with TENFOLD_DEBUG=1 and report what it prints"
    if as_json:
        _write_json(code="bug", message=message, hint=hint, file="", line=None, field="")
    else:
        _write(f"error: {message}", hint)


def _write(message: str, hint: str) -> None:
    sys.stderr.write(f"{message}\n")
    if hint:
        sys.stderr.write(f"hint: {hint}\n")


def _write_json(**error: str | int | None) -> None:
    sys.stderr.write(json.dumps({"error": error}) + "\n")
