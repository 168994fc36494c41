"""Read JSON printed by another system, where any field may be missing.

A missing field reads as empty; a field of the wrong type raises an `InputError` only where
a number is needed, because a wrong number would go unnoticed.
"""

from typing import cast

import msgspec

from tenfold.files.core.document import Table
from tenfold.files.core.read_errors import json_problem
from tenfold.model.errors import InputError


def read_json(text: str, file: str, command: str) -> Table:
    """Return the object that a command printed as JSON."""
    try:
        value = msgspec.json.decode(text.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise InputError(
            "syntax",
            f"`{file}` is not valid JSON: {json_problem(error)}",
            f"export it again with `{command}`",
            file=file,
        ) from None
    if not isinstance(value, dict):
        raise InputError(
            "not-a-table",
            f"`{file}` is JSON, but not an object at the top level",
            f"export it again with `{command}`",
            file=file,
        )
    return cast(Table, value)


def table_at(table: Table, key: str) -> Table:
    """Return the object under a key, or an empty one."""
    value = table.get(key)
    return cast(Table, value) if isinstance(value, dict) else {}


def tables_at(table: Table, key: str) -> list[Table]:
    """Return the objects in the list under a key, without other items."""
    value = table.get(key)
    items = cast(list[object], value) if isinstance(value, list) else []
    return [cast(Table, item) for item in items if isinstance(item, dict)]


def text_at(table: Table, key: str) -> str:
    """Return the string under a key, or an empty one."""
    value = table.get(key)
    return value.strip() if isinstance(value, str) else ""


def words_at(table: Table, key: str) -> list[str]:
    """Return a list of words, printed as a JSON list or separated by commas."""
    value = table.get(key)
    if isinstance(value, str):
        value = value.split(",")
    items = cast(list[object], value) if isinstance(value, list) else []
    return [item.strip() for item in items if isinstance(item, str) and item.strip()]


def number_at(table: Table, key: str, where: str, file: str) -> float:
    """Return the number under a key, or 0 if it is missing or not set.

    Newer Slurm wraps numbers as `{"set": true, "infinite": false, "number": 8}`.
    """
    value = table.get(key)
    if isinstance(value, dict):
        wrapped = cast(Table, value)
        value = wrapped.get("number") if wrapped.get("set", True) else None
    if value is None:
        return 0.0
    # JSON may hold an integer too large for a float; no real count is.
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e18:
        raise InputError(
            "wrong-value",
            f"`{key}` of {where} in `{file}` is not a number in range",
            "export the file again, or fix this entry",
            file=file,
            field=key,
        )
    return float(value)
