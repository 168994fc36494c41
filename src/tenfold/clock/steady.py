"""A clock that never goes back and does not jump: what a controller lives by.

It takes the time of day once, and from then on counts what really passes, sleep of the machine
included. Somebody who sets the clock of the machine does not make time limits run out.
"""

import select
import time
from collections.abc import Sequence

from tenfold.model.units import DAY, Millis


class SteadyClock:
    """Milliseconds since 1970, as of the moment it was made, and going on from there."""

    def __init__(self, least_ms: Millis) -> None:
        self._offset_ms = max(time.time_ns() // 1_000_000, least_ms) - _passed_ms()

    def now_ms(self) -> Millis:
        """Return the time; never less than before, nor less than it was told to begin with."""
        return Millis(self._offset_ms + _passed_ms())

    def ahead_ms(self) -> int:
        """Return how far it is ahead of the machine's own clock; below 0 means behind.

        It begins ahead where the last record says later than the machine does, and comes to
        differ where somebody sets the clock of the machine.
        """
        return self.now_ms() - time.time_ns() // 1_000_000

    def wait(self, descriptors: Sequence[int], timeout_ms: int | None) -> None:
        """Return when one of these can be read, after `timeout_ms`, or after a day at most."""
        poll = select.poll()
        for descriptor in descriptors:
            poll.register(descriptor, select.POLLIN)
        # The kernel counts to 24 days; a time limit may be longer.
        poll.poll(None if timeout_ms is None else min(timeout_ms, DAY))


def _passed_ms() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
