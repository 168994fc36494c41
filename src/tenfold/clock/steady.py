"""A monotonic clock with absolute time, for the control plane.

It reads the time of day once and then counts elapsed time, including system sleep. Changing the
system clock does not expire time limits.
"""

import select
import time
from collections.abc import Sequence

from tenfold.model.units import DAY, Millis


class SteadyClock:
    """Milliseconds since 1970, counted from the moment it was created."""

    def __init__(self, least_ms: Millis) -> None:
        self._offset_ms = max(time.time_ns() // 1_000_000, least_ms) - _passed_ms()

    def now_ms(self) -> Millis:
        """Return the time; never less than before, nor less than `least_ms`."""
        return Millis(self._offset_ms + _passed_ms())

    def ahead_ms(self) -> int:
        """Return how far it is ahead of the system clock; negative means behind.

        It starts ahead if the last record is later than the system time, and drifts if the system
        clock is changed.
        """
        return self.now_ms() - time.time_ns() // 1_000_000

    def wait(self, descriptors: Sequence[int], timeout_ms: int | None) -> None:
        """Return when a descriptor is readable, after `timeout_ms`, or after a day at most."""
        poll = select.poll()
        for descriptor in descriptors:
            poll.register(descriptor, select.POLLIN)
        # The kernel's limit is 24 days; a time limit may be longer.
        poll.poll(None if timeout_ms is None else min(timeout_ms, DAY))


def boot_s() -> float:
    """Return seconds since the machine started, including sleep, unlike the monotonic clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _passed_ms() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
