"""Host lists in Slurm notation, such as `gpu[001-128],login1`."""

import re
from collections.abc import Iterable, Iterator
from itertools import product
from math import prod

from tenfold.model.strings import CONTROL

_CONTROL = re.compile(f"[{CONTROL}]")
_COMMA = re.compile(r",(?![^\[\]]*\])")
_PIECES = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?\Z")
_NUMBERED = re.compile(r"(.*?)([0-9]+)([^0-9]*)\Z", re.DOTALL)
NAMES_MAX = 2_000_000


class HostlistError(ValueError):
    """A host list that cannot be parsed; the message names the part."""


def expand(text: str) -> list[str]:
    """Return every name of a host list, in the order written."""
    names: list[str] = []
    for part in _parts(text):
        pieces = _PIECES.split(part)
        if any("[" in piece or "]" in piece for piece in pieces[::2]):
            raise HostlistError(f"`{part[:40]}` has an unmatched bracket")
        options = [
            list(_numbers(piece)) if position % 2 else [piece]
            for position, piece in enumerate(pieces)
        ]
        if len(names) + prod(len(option) for option in options) > NAMES_MAX:
            raise HostlistError(f"more than {NAMES_MAX:,} names in one host list")
        names.extend("".join(choice) for choice in product(*options))
    return names


def _parts(text: str) -> Iterator[str]:
    """Split at the commas outside brackets."""
    for part in _COMMA.split(text):
        name = part.strip()
        if _CONTROL.search(name):
            raise HostlistError(f"{name[:40]!r} has a line break or a control character in a name")
        if name:
            yield name


def _numbers(ranges: str) -> Iterator[str]:
    for item in ranges.split(","):
        match = _RANGE.match(item.strip())
        if match is None:
            raise HostlistError(f"`[{ranges[:40]}]` is not a list of numbers and ranges")
        low, high = match.group(1), match.group(2) or match.group(1)
        if int(high) < int(low) or int(high) - int(low) >= NAMES_MAX:
            raise HostlistError(f"the range `{low}-{high}` is empty or too long")
        width = len(low) if low.startswith("0") else 0
        for number in range(int(low), int(high) + 1):
            yield f"{number:0{width}d}"


def fold(names: Iterable[str]) -> str:
    """Return the host list of names, in order, with consecutive numbers as ranges."""
    parts: list[str] = []
    key: tuple[str, str, int] | None = None
    runs: list[list[int]] = []

    def flush() -> None:
        if key is not None:
            parts.append(_bracket(key, runs))

    for name in names:
        match = _NUMBERED.match(name)
        if match is None or len(match.group(2)) > 12:
            flush()
            key, runs = None, []
            parts.append(name)
            continue
        prefix, digits, suffix = match.groups()
        width = len(digits) if digits.startswith("0") and digits != "0" else 0
        if key != (prefix, suffix, width) and not _continues(key, prefix, suffix, digits):
            flush()
            key, runs = (prefix, suffix, width), []
        number = int(digits)
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    flush()
    return ",".join(parts)


def _continues(key: tuple[str, str, int] | None, prefix: str, suffix: str, digits: str) -> bool:
    """Return whether 100 may follow 099 in a zero-padded range."""
    return key is not None and key[:2] == (prefix, suffix) and 0 < key[2] == len(digits)


def _bracket(key: tuple[str, str, int], runs: list[list[int]]) -> str:
    prefix, suffix, width = key
    texts = [
        f"{low:0{width}d}" if low == high else f"{low:0{width}d}-{high:0{width}d}"
        for low, high in runs
    ]
    if len(texts) == 1 and "-" not in texts[0]:
        return f"{prefix}{texts[0]}{suffix}"
    return f"{prefix}[{','.join(texts)}]{suffix}"
