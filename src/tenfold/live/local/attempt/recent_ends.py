"""Ends that are written but not yet synced: the journal usually has them before the disk must.

An end counts once the journal has it, which is on disk then. The control plane takes most ends
within milliseconds and removes the marker of the attempt; syncing those as well costs a short job
more than everything else that its supervisor does. An end that nobody takes, as while no control
plane runs, is synced after a second. What the machine loses with its power before that is an end
that nobody was told: the attempt counts as lost, as if it had ended a second later.
"""

import os
from collections import deque
from contextlib import suppress

from tenfold.live.local.attempt.folder import AttemptFolder

SYNC_AFTER_MS = 1_000


class RecentEnds:
    """The ends that one supervisor wrote and did not sync, oldest first."""

    def __init__(self) -> None:
        self._ends: deque[tuple[int, AttemptFolder]] = deque()

    def add(self, folder: AttemptFolder, now_ms: int) -> None:
        """Add an end that was just written."""
        self._ends.append((now_ms + SYNC_AFTER_MS, folder))

    def wait_ms(self, now_ms: int) -> int | None:
        """Return the time until the next one is due; None if there is none."""
        return max(self._ends[0][0] - now_ms, 0) if self._ends else None

    def sync_due(self, now_ms: int) -> None:
        """Sync the ends that are due and in no journal."""
        while self._ends and self._ends[0][0] <= now_ms:
            _sync(self._ends.popleft()[1])

    def sync_all(self) -> None:
        """Sync all ends that are in no journal: this process is about to exit."""
        while self._ends:
            _sync(self._ends.popleft()[1])


def _sync(folder: AttemptFolder) -> None:
    # One that is settled or removed meanwhile needs no sync. An error has nobody to report it to:
    # the attempt has ended, and the next control plane reads the file or calls the attempt lost.
    with suppress(OSError):
        if os.path.lexists(folder.marker):
            folder.sync_end()
