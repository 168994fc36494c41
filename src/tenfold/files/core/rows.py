"""Convert plain tables to typed rows, and report every error in them.

msgspec stops at the first error; someone fixing a file wants all of them. So a list of
tables is first converted as a whole, which is fast, and only if that fails table by table
and key by key.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from itertools import islice
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct, inspect

from tenfold.files.core.expectations import describe_value, expectation, has_control, unit_of
from tenfold.model.fleet.finding import Finding, Path

R = TypeVar("R", bound=Struct)
_BAD_VALUE = (msgspec.ValidationError, RecursionError, OverflowError)
FINDINGS_MAX = 5
"""Findings reported per list or table; the rest usually have the same cause."""
UNKNOWN_MAX = 50
"""Unknown keys reported one by one per table; finding a similar key takes time for each."""


def read_rows(
    row_type: type[R], value: object, path: Path, findings: list[Finding]
) -> dict[int, R]:
    """Return the valid rows of an array of tables by position; add a finding for each error."""
    try:
        return dict(enumerate(msgspec.convert(value, list[row_type])))
    except _BAD_VALUE:
        pass
    if isinstance(value, dict):
        findings.append(
            Finding(
                code="wrong-value",
                message=f"`{path[-1]}` is a single table, expected a list of tables",
                hint=f"write `[[{path[-1]}]]` in TOML, or put `- ` before each entry in YAML",
                path=path,
            )
        )
        return {}
    if not isinstance(value, list):
        findings.append(wrong_value(path, "a list of tables", value))
        return {}
    rows = {
        position: read_row(row_type, item, (*path, position), findings)
        for position, item in enumerate(cast(list[object], value))
    }
    return {position: row for position, row in rows.items() if row is not None}


def read_row(row_type: type[R], value: object, path: Path, findings: list[Finding]) -> R | None:
    """Return a row with defaults for bad keys, or None if a required key is bad."""
    if not isinstance(value, dict):
        findings.append(wrong_value(path, "a table of keys and values", value))
        return None
    table = cast(dict[str, object], value)
    fields = _fields(row_type)
    if table.keys() <= fields.keys():
        # Most rows are valid: convert the whole row first.
        try:
            return msgspec.convert(table, row_type)
        except _BAD_VALUE:
            pass
    valid: dict[str, object] = {}
    unknown = 0
    for key, item in table.items():
        if key not in fields:
            unknown += 1
            if unknown <= UNKNOWN_MAX:
                findings.append(_unknown_key(key, fields, (*path, key)))
        elif _is_valid(row_type, fields[key], item, (*path, key), findings):
            valid[key] = item
    if unknown > UNKNOWN_MAX:
        findings.append(_more_unknown_keys(unknown - UNKNOWN_MAX, fields, path))
    required = [name for name, field in fields.items() if field.required]
    findings.extend(_missing(name, table, path) for name in required if name not in table)
    if any(name not in valid for name in required):
        return None
    return msgspec.convert(valid, row_type)


def wrong_value(path: Path, expected: str, value: object, hint: str = "") -> Finding:
    """Return the finding for a value of the wrong type or out of range."""
    where = next((part for part in reversed(path) if isinstance(part, str)), "this")
    number = next((f" {part + 1}" for part in path[-1:] if isinstance(part, int)), "")
    unit = unit_of(where)
    if len(path) > 1 and isinstance(path[-1], str) and isinstance(path[-2], str):
        where = f"{path[-2]}.{path[-1]}"
    if has_control(value):
        expected = f"{expected}, without control characters"
    if isinstance(value, str) and unit:
        hint = hint or f"write a plain number in {unit}"
    return Finding(
        code="wrong-value",
        message=f"`{where}`{number} expects {expected}, got {describe_value(value)}",
        hint=hint or f"write {expected}",
        path=path,
    )


@cache
def _fields(row_type: type[Struct]) -> Mapping[str, inspect.Field]:
    info = inspect.type_info(row_type)
    assert isinstance(info, inspect.StructType), "a row is a struct"
    return {field.encode_name: field for field in info.fields}


@cache
def _hints(row_type: type[Struct]) -> Mapping[str, object]:
    return get_type_hints(row_type, include_extras=True)


def _is_valid(
    row_type: type[Struct],
    field: inspect.Field,
    item: object,
    path: Path,
    findings: list[Finding],
) -> bool:
    hint = _hints(row_type)[field.name]
    if _matches(hint, item):
        return True
    nested = _nested_struct(field.type)
    if nested is not None and isinstance(item, dict):
        read_row(nested, cast(object, item), path, findings)
    else:
        whole = wrong_value(path, expectation(field.type, str(path[-1])), item)
        findings.extend(_nested_findings(hint, item, path) or [whole])
    return False


def _matches(hint: object, item: object) -> bool:
    try:
        msgspec.convert(item, cast(type[object], hint))
    except _BAD_VALUE:
        return False
    return True


def _nested_findings(hint: object, item: object, path: Path) -> list[Finding]:
    """Return the first errors inside a list or table, or none for other values."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    wrong = (entry for entry in _entries(hint, item, path) if not _matches(entry[1], entry[2]))
    # Lazily: a request of a few MiB may have a million of them.
    found = [(at, inspect.type_info(kind), one) for at, kind, one in islice(wrong, FINDINGS_MAX)]
    return [
        wrong_value(at, expectation(kind, ""), one)
        for at, kind, one in found
        if not isinstance(kind, inspect.StructType)
    ]


def _entries(hint: object, item: object, path: Path) -> Iterator[tuple[Path, Any, object]]:
    """Yield the entries of a list or table, with where they are and what is expected there."""
    if get_origin(hint) in (list, tuple) and isinstance(item, list):
        kind, *_ = get_args(hint)
        for at, one in enumerate(cast(list[object], item)):
            yield (*path, at), kind, one
    elif get_origin(hint) is dict and isinstance(item, dict):
        key_kind, kind = get_args(hint)
        for key, one in cast(dict[str, object], item).items():
            yield path, key_kind, key
            yield (*path, key), kind, one


def _nested_struct(kind: inspect.Type) -> type[Struct] | None:
    kinds = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    return next((one.cls for one in kinds if isinstance(one, inspect.StructType)), None)


def _unknown_key(key: str, known: Mapping[str, inspect.Field], path: Path) -> Finding:
    near = get_close_matches(key, list(known), n=1, cutoff=0.6)
    hint = f"did you mean `{near[0]}`?" if near else f"valid keys: {', '.join(known)}"
    if near and unit_of(near[0]) and unit_of(near[0]) != unit_of(key):
        hint += f" (in {unit_of(near[0])})"
    return Finding(code="unknown-key", message=f"unknown key `{key}`", hint=hint, path=path)


def _more_unknown_keys(count: int, known: Mapping[str, inspect.Field], path: Path) -> Finding:
    hint = f"valid keys: {', '.join(known)}"
    return Finding(code="unknown-key", message=f"{count:,} more unknown keys", hint=hint, path=path)


def _missing(name: str, table: Mapping[str, object], path: Path) -> Finding:
    label = table.get("name")
    which = f" `{label}`" if isinstance(label, str) else ""
    kind = next((part for part in reversed(path) if isinstance(part, str)), "")
    return Finding(
        code="missing-key",
        message=f"missing key `{name}`" + (f" in {kind}{which}" if kind else ""),
        hint=f"add `{name} = ...`",
        path=path,
    )
