"""Windows of a policy file that want the same nodes at the same time."""

from collections.abc import Collection, Iterator, Mapping
from itertools import combinations
from math import gcd

from tenfold.files.policy.values import warning
from tenfold.model.fleet.finding import Finding
from tenfold.model.job.terms import Window


def window_conflicts(
    windows: Mapping[int, Window], nodes_of: Mapping[int, Collection[str]]
) -> Iterator[Finding]:
    """Yield a warning for two windows that give the same nodes to different holders at once."""
    for (earlier, first), (index, second) in combinations(windows.items(), 2):
        if first.team == second.team or not windows_overlap(first, second):
            continue
        both = [name for name in nodes_of[index] if name in nodes_of[earlier]]
        if both:
            more = f" and {len(both) - 1:,} more" if len(both) > 1 else ""
            yield warning(
                "windows-overlap",
                f"windows `{first.id}` and `{second.id}` fall together on `{both[0]}`{more}, "
                f"the one {_for(first)} and the other {_for(second)}",
                "move one of them, or name other nodes: nobody gets nodes under maintenance",
                ("windows", index),
            )


def windows_overlap(first: Window, second: Window) -> bool:
    """Tell whether two windows ever hold at the same time."""
    if first.every_ms is None and second.every_ms is None:
        return first.start_ms < second.end_ms and second.start_ms < first.end_ms
    if first.every_ms is None:
        first, second = second, first
    assert first.every_ms is not None, "the first comes again by now"
    lasts = first.end_ms - first.start_ms
    if second.every_ms is None:
        times = max(0, (second.start_ms - first.end_ms) // first.every_ms + 1)
        return first.start_ms + times * first.every_ms < second.end_ms
    # In the long run every distance that the two periods allow comes about.
    step = gcd(first.every_ms, second.every_ms)
    apart = (second.start_ms - first.start_ms) % step
    return apart < lasts or step - apart < second.end_ms - second.start_ms


def _for(window: Window) -> str:
    return f"for team `{window.team}`" if window.team else "for maintenance"
