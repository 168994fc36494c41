"""Describe in words the type that a key expects and the value it has."""

import re
from collections.abc import Mapping

from msgspec import inspect

from tenfold.model.strings import (
    ARGUMENT,
    CONTROL,
    FOLDER_DEPTH_MAX,
    FOLDER_NAME,
    HOST_PREFIX,
    PATH,
    VARIABLE,
)

_UNITS = {
    "gib": "GiB",
    "tb": "TB",
    "gbps": "Gbit/s",
    "gb_per_s": "GB/s",
    "tb_per_s": "TB/s",
    "kw": "kW",
    "w": "W",
    "usd": "US dollars",
    "ms": "milliseconds",
    "us": "microseconds",
    "years": "years",
    "kwh": "kWh",
}
_PATTERNS = {
    HOST_PREFIX: "a string without commas or brackets",
    FOLDER_NAME: "a name made of letters, digits, `.`, `_` and `-`",
    VARIABLE: "a name of letters, digits and `_` that does not start with a digit",
}
_PLAIN: Mapping[type[inspect.Type], str] = {
    inspect.BoolType: "true or false",
    inspect.DateType: "a date such as 2026-11-15",
    inspect.DateTimeType: "a timestamp such as 2026-11-15T12:00:00Z",
    inspect.TimeType: "a time of day such as 22:00",
}
_CONTROL = re.compile(f"[{CONTROL}]")


def unit_of(key: str) -> str:
    """Return the unit in a key's name, or an empty string."""
    if key.startswith("co2_g"):
        return "grams of CO2"
    if "usd" in key.split("_"):
        return _UNITS["usd"]
    words = key.split("_")
    for start in range(len(words)):
        for end in range(len(words), start, -1):
            unit = _UNITS.get("_".join(words[start:end]))
            if unit:
                return unit
    return ""


def describe_value(value: object) -> str:
    """Return a value from a file as a short, one-line text."""
    match value:
        case bool():
            return f"`{str(value).lower()}`"
        case str():
            text = value if len(value) <= 40 else f"{value[:37]}..."
            return f"the string `{_CONTROL.sub(_escaped, text)}`"
        case int() | float():
            whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e15
            text = str(int(value) if whole else value)
            if isinstance(value, int) and abs(value) >= 10**20:
                text = "a huge number"
            return f"`{text}`"
        case list():
            return "a list" if value else "an empty list"
        case dict():
            return "a table"
        case _:
            return f"a {type(value).__name__}"


def expectation(kind: inspect.Type, key: str) -> str:
    """Return what a key expects, worded to follow `expects`."""
    match kind:
        case inspect.UnionType():
            return _union(kind, key)
        case inspect.IntType():
            return f"a whole number{_bounds(kind)}"
        case inspect.FloatType():
            unit = unit_of(key)
            return f"a number{f' of {unit}' if unit else ''}{_bounds(kind)}"
        case inspect.StrType():
            return _text(kind)
        case inspect.LiteralType():
            # An empty string is a default that stands for no choice.
            return f"one of {', '.join(str(value) for value in kind.values if value != '')}"
        case inspect.ListType() | inspect.VarTupleType() | inspect.TupleType():
            return _list(kind)
        case inspect.DictType():
            return _table(kind)
        case inspect.StructType():
            return f"a table with the keys {', '.join(field.encode_name for field in kind.fields)}"
        case _:
            return _PLAIN.get(type(kind), "a valid value")


def _union(kind: inspect.UnionType, key: str) -> str:
    inner = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
    numbers = [one for one in inner if isinstance(one, inspect.FloatType)]
    if numbers and {type(one) for one in inner} == {inspect.StrType, inspect.FloatType}:
        # Text with a unit, or seconds.
        return f"a duration such as 90m, or a number of seconds{_bounds(numbers[0])}"
    return " or ".join(expectation(one, key) for one in inner)


_PLURAL = ("whole number", "number", "string", "table")


def _table(kind: inspect.DictType) -> str:
    value = expectation(kind.value_type, "")
    word = value.removeprefix("a ")
    if word.isalpha():
        return f"a table of names to {word}s"
    noun = next((one for one in _PLURAL if word.startswith(one)), "")
    return f"a table of {noun}s{word[len(noun) :]}" if noun else f"a table, each value {value}"


def _list(kind: inspect.ListType | inspect.VarTupleType | inspect.TupleType) -> str:
    if isinstance(kind, inspect.TupleType):
        items = "; ".join(expectation(one, "") for one in kind.item_types)
        return f"a list of {len(kind.item_types)} items: {items}"
    item = expectation(kind.item_type, "")
    if kind.min_length:
        items = f"{kind.min_length:,} item{'' if kind.min_length == 1 else 's'}"
        return f"a list of at least {items}, each {item}"
    if kind.max_length is None:
        return f"a list, each item {item}"
    return f"a list of at most {kind.max_length:,} items, each {item}"


def has_control(value: object) -> bool:
    """Tell whether a value is a string with a control character, which no string may have."""
    return isinstance(value, str) and _CONTROL.search(value) is not None


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def _text(kind: inspect.StrType) -> str:
    if kind.pattern == ARGUMENT and kind.min_length is None:
        return f"a string of at most {kind.max_length or 0:,} characters"
    if kind.pattern == PATH:
        return f"a path of at most {FOLDER_DEPTH_MAX} folders"
    if kind.pattern == FOLDER_NAME and kind.max_length is not None:
        return f"{_PATTERNS[FOLDER_NAME]}, at most {kind.max_length} characters"
    if kind.pattern in _PATTERNS:
        return _PATTERNS[kind.pattern]
    return "a string" if kind.min_length is None else "a non-empty string"


def _bounds(kind: inspect.IntType | inspect.FloatType) -> str:
    low, high = kind.ge, kind.le
    if low is None and kind.gt is not None:
        top = f" and at most {_figure(high)}" if high is not None else ""
        if kind.lt is not None:
            top = f" and below {_figure(kind.lt)}"
        return f" above {_figure(kind.gt)}{top}"
    if low is not None and high is not None:
        return f" from {_figure(low)} to {_figure(high)}"
    if low is not None:
        return f" of at least {_figure(low)}"
    return f" of at most {_figure(high)}" if high is not None else ""


def _figure(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:g}"
