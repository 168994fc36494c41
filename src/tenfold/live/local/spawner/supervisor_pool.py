"""Idle supervisors that wait briefly for another attempt."""

from tenfold.live.local.attempt.folder import AttemptFolder
from tenfold.live.local.spawner.handover import hand_over
from tenfold.live.local.spawner.watch import SupervisorWatch

IDLE_S_MAX = 1.0
IDLE_MAX = 32
"""Each uses some MiB; more than start together are of no use."""


class SupervisorPool:
    """Idle supervisors, most recently used first: their memory is warm."""

    def __init__(self) -> None:
        self._idle: list[tuple[float, SupervisorWatch]] = []

    def add_idle(self, watched: SupervisorWatch, now_s: float) -> None:
        """Add an idle supervisor; release it if there are too many or it was ever signalled.

        A signal still on its way must not hit the next attempt.
        """
        if watched.was_signalled or len(self._idle) >= IDLE_MAX:
            watched.release()
        else:
            self._idle.append((now_s, watched))

    def assign(self, folder: AttemptFolder, lock: int) -> SupervisorWatch | None:
        """Assign an attempt to an idle supervisor; None if there is none."""
        while self._idle:
            _, watched = self._idle.pop()
            if watched.link is not None and hand_over(watched.link, folder, lock):
                return watched.for_attempt(folder)
            watched.release()
        return None

    def forget(self, watched: SupervisorWatch) -> None:
        """Remove a supervisor that is gone."""
        self._idle = [pair for pair in self._idle if pair[1] is not watched]

    def release_expired(self, now_s: float) -> None:
        """Release supervisors that were idle long enough."""
        while self._idle and now_s - self._idle[0][0] >= IDLE_S_MAX:
            self._idle.pop(0)[1].release()

    def wait_s(self, now_s: float) -> float | None:
        """Return the wait until the next release."""
        return max(0.0, self._idle[0][0] + IDLE_S_MAX - now_s) if self._idle else None
