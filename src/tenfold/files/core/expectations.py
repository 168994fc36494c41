"""Say in words what a key takes and what it got."""

from msgspec import inspect

_UNITS = {
    "gib": "GiB",
    "tb": "TB",
    "gbps": "Gbit/s",
    "gb_per_s": "GB/s",
    "kw": "kW",
    "w": "W",
    "usd": "US dollars",
    "ms": "milliseconds",
    "us": "microseconds",
    "years": "years",
    "kwh": "kWh",
}
_PATTERNS = {
    r"^[^\[\],]+$": "a text without commas and brackets",
    r"^[A-Za-z0-9][A-Za-z0-9._-]*$": "a name of letters, digits, `.`, `_` and `-`",
    r"^[A-Za-z_][A-Za-z0-9_]*$": "a name of letters, digits and `_`",
}
_NO_ZERO = r"^[^\x00]*$"


def unit_of(key: str) -> str:
    """Return the unit that a key's name carries, or nothing."""
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
    """Return a short, one-line rendering of a value from a file."""
    match value:
        case bool():
            return f"`{str(value).lower()}`"
        case str():
            text = value if len(value) <= 40 else f"{value[:37]}..."
            return f"the text `{text.splitlines()[0] if text else ''}`"
        case int() | float():
            text = str(value) if not isinstance(value, int) or abs(value) < 10**20 else "a huge one"
            return f"`{text}`"
        case list():
            return "a list"
        case dict():
            return "a table"
        case _:
            return f"a {type(value).__name__}"


def expectation(kind: inspect.Type, key: str) -> str:
    """Return what a key takes, as the object of `expects ...`."""
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
            item = expectation(kind.item_type, "")
            return f"a list, each {item}"
        case inspect.DictType():
            value = expectation(kind.value_type, "").removeprefix("a ")
            return (
                f"a table of names to {value}s" if value.isalpha() else f"a table, each a {value}"
            )
        case inspect.StructType():
            return f"a table with {', '.join(field.encode_name for field in kind.fields)}"
        case _:
            return "something else"


def _text(kind: inspect.StrType) -> str:
    if kind.pattern == _NO_ZERO:
        return f"a text without a zero byte, of at most {kind.max_length or 0:,} characters"
    if kind.pattern in _PATTERNS:
        return _PATTERNS[kind.pattern]
    return "a text" if kind.min_length is None else "a text that is not empty"


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
