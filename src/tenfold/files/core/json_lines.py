"""Read JSON Lines into typed rows; the first bad line raises an error with its number."""

import json
from contextlib import suppress
from pathlib import Path
from typing import TypeVar, cast

import msgspec
from msgspec import Struct

from tenfold.files.core.document import decode, read_bytes
from tenfold.files.core.read_errors import json_problem
from tenfold.files.core.rows import read_row
from tenfold.model.errors import InputError
from tenfold.model.fleet.finding import Finding

R = TypeVar("R", bound=Struct)
SIZE_MAX_BYTES = 1024 * 1024 * 1024


def read_json_lines(path: Path, row_type: type[R]) -> list[R]:
    """Return one row per line, in order; empty lines are skipped."""
    text = decode(read_bytes(path, SIZE_MAX_BYTES), path)
    return parse_json_lines(text, str(path), row_type)


def parse_json_lines(text: str, file: str, row_type: type[R]) -> list[R]:
    """Return the rows of a text, or raise an error with the number of the bad line."""
    decoder = msgspec.json.Decoder(row_type)
    rows: list[R] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            rows.append(decoder.decode(line))
        except (msgspec.ValidationError, msgspec.DecodeError, RecursionError):
            rows.append(_read_leniently(line, number, file, row_type))
    return rows


def _read_leniently(line: str, number: int, file: str, row_type: type[R]) -> R:
    """Read a row as data frames write it: `8.0` for 8, `1` for true."""
    try:
        value = _whole_numbers(msgspec.json.decode(line))
        return msgspec.convert(value, row_type, strict=False)
    except (msgspec.ValidationError, msgspec.DecodeError, RecursionError):
        raise _fault(line, number, file, row_type) from None


def _whole_numbers(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        table = cast(dict[str, object], value)
        return {key: _whole_numbers(item) for key, item in table.items()}
    if isinstance(value, list):
        return [_whole_numbers(item) for item in cast(list[object], value)]
    return value


def _fault(line: str, number: int, file: str, row_type: type[Struct]) -> InputError:
    """Return the error for a line that the fast decoder rejected."""
    try:
        value = cast(object, json.loads(line))
    except (ValueError, RecursionError) as error:
        return InputError(
            "not-json",
            f"not valid JSON: {json_problem(error)}",
            "write one JSON object per line",
            file=file,
            line=number,
        )
    findings: list[Finding] = []
    # Half of a surrogate pair is text to Python's parser and no text to ours.
    with suppress(UnicodeEncodeError):
        read_row(row_type, value, (), findings)
    strange = Finding(
        code="wrong-value",
        message="the row contains NaN, Infinity or text that is not Unicode",
        hint="write finite numbers and plain text",
    )
    found = findings[0] if findings else strange
    return InputError(
        found.code,
        found.message,
        found.hint.replace(" = ...`", "` to the object"),
        file=file,
        line=number,
        field=found.field,
    )
