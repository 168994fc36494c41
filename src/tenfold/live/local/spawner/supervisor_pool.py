"""Supervisors that wait for another attempt: few of them, and not for long."""

from tenfold.live.local.attempt.folder import AttemptFolder
from tenfold.live.local.spawner.handover import hand_over
from tenfold.live.local.spawner.watch import SupervisorWatch

IDLE_S_MAX = 1.0
IDLE_MAX = 32
"""Each keeps some MiB; more of them than jobs that start together are of no use."""


class SupervisorPool:
    """Those who rest. The one that came last is given work first, for it is warm."""

    def __init__(self) -> None:
        self._idle: list[tuple[float, SupervisorWatch]] = []

    def add_idle(self, watched: SupervisorWatch, now_s: float) -> None:
        """Let a supervisor rest; one too many, or one that was ever signalled, is let go.

        A signal that is still on its way to it must not hit the attempt that comes next.
        """
        if watched.was_signalled or len(self._idle) >= IDLE_MAX:
            watched.release()
        else:
            self._idle.append((now_s, watched))

    def assign(self, folder: AttemptFolder, lock: int) -> SupervisorWatch | None:
        """Return who took an attempt; None where nobody rests."""
        while self._idle:
            _, watched = self._idle.pop()
            if watched.link is not None and hand_over(watched.link, folder, lock):
                return watched.for_attempt(folder)
            watched.release()
        return None

    def forget(self, watched: SupervisorWatch) -> None:
        """Leave out a supervisor that is gone."""
        self._idle = [pair for pair in self._idle if pair[1] is not watched]

    def release_expired(self, now_s: float) -> None:
        """Let those go that have rested long enough."""
        while self._idle and now_s - self._idle[0][0] >= IDLE_S_MAX:
            self._idle.pop(0)[1].release()

    def wait_s(self, now_s: float) -> float | None:
        """Return the wait until somebody is to be let go."""
        return max(0.0, self._idle[0][0] + IDLE_S_MAX - now_s) if self._idle else None
