"""The only reader of the clock; everything else is told the time.

`Stopwatch` measures how long something took, for people to read. No decision may
depend on it.
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
