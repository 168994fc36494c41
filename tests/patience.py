"""Wait for facts, and call hung what never comes.

Tests wait for facts. No test asserts how fast a fact arrived, so that the suite also passes on a
busy machine: the limit here only ends a test that would otherwise hang for ever.
"""

from collections.abc import Callable
from threading import Event
from time import monotonic

HANG_S = 540.0
PAUSE_S = 0.01


def until(
    is_so: Callable[[], bool],
    *,
    pause_s: float = PAUSE_S,
    explain: Callable[[], str] = lambda: "it never happened",
) -> None:
    """Return when something is so; fail with an explanation when it never is."""
    ends_s, never = monotonic() + HANG_S, Event()
    while not is_so():
        assert monotonic() < ends_s, explain()
        never.wait(pause_s)
