"""Read the JSON that another system printed, where no field can be counted on.

A field that is absent reads as nothing; a field of the wrong kind is an `InputError`
only where a number is needed, because a wrong number would be believed.
"""

from typing import cast

import msgspec

from tenfold.files.core.document import Table
from tenfold.model.errors import InputError


def read_json(text: str, file: str, command: str) -> Table:
    """Return the object that a command printed as JSON."""
    try:
        value = msgspec.json.decode(text.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise InputError(
            "syntax",
            f"`{file}` is not JSON: {error}",
            f"save it again with `{command}`",
            file=file,
        ) from None
    if not isinstance(value, dict):
        raise InputError(
            "not-a-table",
            f"`{file}` holds JSON, but not an object at its top",
            f"save it again with `{command}`",
            file=file,
        )
    return cast(Table, value)


def table_at(table: Table, key: str) -> Table:
    """Return the object under a key, empty where there is none."""
    value = table.get(key)
    return cast(Table, value) if isinstance(value, dict) else {}


def tables_at(table: Table, key: str) -> list[Table]:
    """Return the objects in the list under a key, leaving out what is no object."""
    value = table.get(key)
    items = cast(list[object], value) if isinstance(value, list) else []
    return [cast(Table, item) for item in items if isinstance(item, dict)]


def text_at(table: Table, key: str) -> str:
    """Return the text under a key, empty where there is none."""
    value = table.get(key)
    return value.strip() if isinstance(value, str) else ""


def words_at(table: Table, key: str) -> list[str]:
    """Return a list of words, whether it was printed as a list or with commas between."""
    value = table.get(key)
    if isinstance(value, str):
        value = value.split(",")
    items = cast(list[object], value) if isinstance(value, list) else []
    return [item.strip() for item in items if isinstance(item, str) and item.strip()]


def number_at(table: Table, key: str, where: str, file: str) -> float:
    """Return the number under a key, 0 where it is absent or not set.

    Newer Slurm wraps numbers as `{"set": true, "infinite": false, "number": 8}`.
    """
    value = table.get(key)
    if isinstance(value, dict):
        wrapped = cast(Table, value)
        value = wrapped.get("number") if wrapped.get("set", True) else None
    if value is None:
        return 0.0
    # JSON may hold an integer too long for a float; no count of anything is.
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e18:
        raise InputError(
            "wrong-value",
            f"`{key}` of {where} in `{file}` is no usable number",
            "save the file again, or mend that entry",
            file=file,
            field=key,
        )
    return float(value)
