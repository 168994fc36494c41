"""Write the tables of a fleet as a TOML file that people can edit.

Only values that differ from the default are written; the reader fills in the rest, as for
a file written by hand.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import msgspec
from msgspec import Struct
from msgspec.structs import FieldInfo, fields

from tenfold.files.fleet.rows import TABLES, FleetRows, Row

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")
_WIDTH = 96


def render_fleet_toml(rows: FleetRows, comments: Sequence[str] = ()) -> str:
    """Return the text of a fleet file with these tables, comments first."""
    parts = [f"# {_one_line(comment)}" for comment in comments]
    if rows.name:
        parts.extend(
            ["", f"name = {_text(rows.name)}"] if parts else [f"name = {_text(rows.name)}"]
        )
    for table in TABLES:
        listed = cast(Mapping[int, Row], getattr(rows, table))
        for row in listed.values():
            parts.extend(("", f"[[{table}]]", *pairs_of(row)))
    for table in ("expects", "lint"):
        pairs = list(pairs_of(cast(Struct, getattr(rows, table))))
        if pairs:
            parts.extend(("", f"[{table}]", *pairs))
    return "\n".join(parts).lstrip("\n") + "\n"


def _one_line(comment: str) -> str:
    """Return a comment on one line, without control characters."""
    return "".join(letter if letter.isprintable() else " " for letter in comment)


def pairs_of(row: Struct) -> Iterable[str]:
    """Return `key = value` for each field of a table that differs from its default."""
    for field in fields(row):
        value: object = getattr(row, field.name)
        if value != _default(field):
            yield f"{field.encode_name} = {_value(value)}"


def _default(field: FieldInfo) -> object:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


def _value(value: object) -> str:
    if isinstance(value, Row):
        return f"{{ {', '.join(pairs_of(value))} }}"
    if isinstance(value, dict):
        pairs = cast(dict[str, object], value).items()
        return f"{{ {', '.join(f'{_key(key)} = {_value(item)}' for key, item in pairs)} }}"
    if isinstance(value, list | tuple):
        items = [_value(item) for item in cast(Sequence[object], value)]
        flat = f"[{', '.join(items)}]"
        return (
            flat if len(flat) <= _WIDTH else "[\n" + "".join(f"  {one},\n" for one in items) + "]"
        )
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return _text(value)


def _key(key: str) -> str:
    return key if _BARE_KEY.match(key) else _text(key)


def _text(value: object) -> str:
    # JSON strings, numbers and booleans are valid TOML, except for a raw DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
