"""Describe in words the type that a key expects and the value it has."""

import re

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
    VARIABLE: "a name made of letters, digits and `_`",
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
            text = (
                str(value) if not isinstance(value, int) or abs(value) < 10**20 else "a huge number"
            )
            return f"`{text}`"
        case list():
            return "a list"
        case dict():
            return "a table"
        case _:
            return f"a {type(value).__name__}"


def expectation(kind: inspect.Type, key: str) -> str:
    """Return what a key expects, worded to follow `expects`."""
    match kind:
        case inspect.UnionType():
            inner = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
            return " or ".join(expectation(one, key) for one in inner)
        case inspect.IntType():
            return f"a whole number{_bounds(kind)}"
        case inspect.FloatType():
            unit = unit_of(key)
            return f"a number{f' of {unit}' if unit else ''}{_bounds(kind)}"
        case inspect.StrType():
            return _text(kind)
        case inspect.BoolType():
            return "true or false"
        case inspect.LiteralType():
            return f"one of {', '.join(str(value) for value in kind.values)}"
        case inspect.ListType() | inspect.VarTupleType():
            return _list(kind)
        case inspect.DictType():
            value = expectation(kind.value_type, "").removeprefix("a ")
            return (
                f"a table of names to {value}s"
                if value.isalpha()
                else f"a table, each value a {value}"
            )
        case inspect.StructType():
            return f"a table with the keys {', '.join(field.encode_name for field in kind.fields)}"
        case _:
            return "a value of another type"


def _list(kind: inspect.ListType | inspect.VarTupleType) -> str:
    item = expectation(kind.item_type, "")
    if kind.max_length is None or kind.min_length is not None:
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
    if kind.pattern in _PATTERNS:
        return _PATTERNS[kind.pattern]
    return "a string" if kind.min_length is None else "a non-empty string"


def _bounds(kind: inspect.IntType | inspect.FloatType) -> str:
    low, high = kind.ge, kind.le
    if low is None and kind.gt is not None:
        top = f" and at most {_figure(high)}" if high is not None else ""
        return f" above {_figure(kind.gt)}{top}"
    if low is not None and high is not None:
        return f" from {_figure(low)} to {_figure(high)}"
    if low is not None:
        return f" of at least {_figure(low)}"
    return f" of at most {_figure(high)}" if high is not None else ""


def _figure(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:g}"
