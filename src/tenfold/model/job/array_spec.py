"""The indexes of an array as text: `20`, `0-19`, `1-9:2`, `1,3,7`, each with `%4` for a limit.

The form is Slurm's, except that a number alone is the number of members: their indexes begin at 0.
"""

import re
from collections.abc import Iterable

from msgspec import Struct

INDEX_MAX = 4_000_000
"""The largest index: what Slurm's `MaxArraySize` may be at most."""
_RANGE = re.compile(r"(\d{1,7})(?:-(\d{1,7})(?::(\d{1,7}))?)?\Z", re.ASCII)


class ArraySpec(Struct, frozen=True):
    """The members of an array."""

    count: int
    indexes: tuple[int, ...] = ()
    """Their indexes in order; empty for 0, 1, 2 and so on."""
    most: int = 0
    """How many run at once; 0 means all."""


def read_array(text: str, members_max: int) -> ArraySpec:
    """Return the members that a text names; raise `ValueError` that says what is wrong."""
    members, percent, limit = text.strip().partition("%")
    if percent and not (limit.isascii() and limit.isdecimal() and 1 <= int(limit[:9]) <= 10**6):
        raise ValueError(f"the limit after `%` must be a whole number from 1, got `{limit}`")
    most = int(limit) if limit else 0
    if members.isascii() and members.isdecimal():
        # Longer numbers are too many in any case.
        count = int(members[:9])
        if not 1 <= count <= members_max:
            raise ValueError(f"it has {count:,} tasks; it must have 1 to {members_max:,}")
        return ArraySpec(count, (), most)
    found: set[int] = set()
    for part in members.split(","):
        match = _RANGE.match(part.strip())
        if match is None:
            raise ValueError(f"`{part}` is neither an index nor a range such as 0-19 or 0-9:2")
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last < first or not step or last > INDEX_MAX:
            raise ValueError(f"`{part}` has no tasks, or an index above {INDEX_MAX:,}")
        if len(found) + (last - first) // step + 1 > members_max:
            raise ValueError(f"it has over {members_max:,} tasks")
        found.update(range(first, last + 1, step))
    indexes = tuple(sorted(found))
    plain = indexes == tuple(range(len(indexes)))
    return ArraySpec(len(indexes), () if plain else indexes, most)


def fold_indexes(indexes: Iterable[int]) -> str:
    """Return ascending indexes as ranges: `1-3,7`."""
    spans: list[list[int]] = []
    for index in indexes:
        if spans and index == spans[-1][1] + 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in spans)
