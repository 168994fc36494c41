"""The only room that reads the clock; all others take the time as an argument.

Belongs here: wall time, monotonic time, and `Stopwatch` for durations that people read.
Does not belong here: anything that a decision depends on.
"""

from time import perf_counter, process_time


class Stopwatch:
    """Seconds since it was made, on the wall and on the processor."""

    def __init__(self) -> None:
        self._wall = perf_counter()
        self._cpu = process_time()

    def wall_s(self) -> float:
        """Return seconds that passed."""
        return perf_counter() - self._wall

    def cpu_s(self) -> float:
        """Return seconds that this process computed."""
        return process_time() - self._cpu


def process_cpu_s() -> float:
    """Return seconds that this process has computed since it began."""
    return process_time()
