"""Windows of a policy file that overlap on the same nodes."""

from collections.abc import Collection, Iterator, Mapping
from itertools import combinations
from math import gcd

from tenfold.files.policy.values import warning
from tenfold.model.fleet.finding import Finding
from tenfold.model.job.terms import Window


def window_conflicts(
    windows: Mapping[int, Window], nodes_of: Mapping[int, Collection[str]]
) -> Iterator[Finding]:
    """Yield a warning for two windows that reserve the same nodes for different users at once."""
    for (earlier, first), (index, second) in combinations(windows.items(), 2):
        if first.team == second.team or not windows_overlap(first, second):
            continue
        both = [name for name in nodes_of[index] if name in nodes_of[earlier]]
        if both:
            more = f" and {len(both) - 1:,} more" if len(both) > 1 else ""
            yield warning(
                "windows-overlap",
                f"windows `{first.id}` ({_for(first)}) and `{second.id}` ({_for(second)}) "
                f"overlap on `{both[0]}`{more}",
                "maintenance takes precedence; move one of the windows, or use other nodes",
                ("windows", index),
            )


def windows_overlap(first: Window, second: Window) -> bool:
    """Return whether two windows are ever open at the same time."""
    if first.every_ms is None and second.every_ms is None:
        return first.start_ms < second.end_ms and second.start_ms < first.end_ms
    if first.every_ms is None:
        first, second = second, first
    assert first.every_ms is not None, "the first repeats"
    lasts = first.end_ms - first.start_ms
    if second.every_ms is None:
        times = max(0, (second.start_ms - first.end_ms) // first.every_ms + 1)
        return first.start_ms + times * first.every_ms < second.end_ms
    # Over time every offset that the two periods allow occurs.
    step = gcd(first.every_ms, second.every_ms)
    apart = (second.start_ms - first.start_ms) % step
    return apart < lasts or step - apart < second.end_ms - second.start_ms


def _for(window: Window) -> str:
    return f"team `{window.team}`" if window.team else "maintenance"
