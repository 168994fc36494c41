"""Parse durations and large numbers, such as `30d`, `12h`, `1e12` and `15T`."""

import re

from tenfold.model.errors import InputError

MOST = 1e18
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_SCALES = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}
_DURATION = re.compile(r"([0-9.]+(?:e[+-]?[0-9]+)?)([smhdw])\Z")
_NUMBER = re.compile(r"([0-9.]+(?:e[+-]?[0-9]+)?)([kmbgt]?)\Z")


def parse_duration(text: str, option: str) -> float:
    """Return a duration such as `30d` in seconds."""
    match = _DURATION.match(text.strip().lower())
    if match is None or not _is_number(match[1]):
        is_zero = match is not None and not match[1].strip("0.")
        raise InputError(
            "bad-duration",
            f"`{option}` must be {'longer than 0 s' if is_zero else 'a duration'}, got `{text}`",
            "write a number and a unit, such as 90m, 12h, 30d or 6w",
            field=option,
        )
    return float(match[1]) * _SECONDS[match[2]]


def parse_number(text: str, option: str, hint: str = "write it as 1e12, 15T or 2M") -> float:
    """Return a number such as `1e12`, `15T` or `2M`."""
    match = _NUMBER.match(text.strip().lower().replace(",", "").replace("_", "").lstrip("$"))
    if match is None or not _is_number(match[1]):
        raise InputError(
            "bad-number",
            f"`{option}` must be a positive number, got `{text}`",
            hint,
            field=option,
        )
    return float(match[1]) * _SCALES[match[2]]


def parse_dollars(text: str, option: str) -> float:
    """Return an amount such as `35000`, `35k` or `$2M`."""
    return parse_number(text, option, "write dollars, such as 35000 or 35k")


def _is_number(text: str) -> bool:
    try:
        return 0 < float(text) <= MOST
    except ValueError:
        return False
