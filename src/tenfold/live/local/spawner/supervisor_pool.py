"""Supervisors that wait for another attempt: few of them, and not for long."""

from tenfold.live.local.attempt.folder import AttemptFolder
from tenfold.live.local.spawner.handover import hand_over
from tenfold.live.local.spawner.watch import Watch

REST_S_MOST = 1.0
RESTING_MOST = 32
"""Each keeps some MiB; more of them than jobs that start together are of no use."""


class SupervisorPool:
    """Those who rest. The one that came last is given work first, for it is warm."""

    def __init__(self) -> None:
        self._resting: list[tuple[float, Watch]] = []

    def rest(self, watched: Watch, now_s: float) -> None:
        """Let a supervisor rest; one too many, or one that was ever signalled, is let go.

        A signal that is still on its way to it must not hit the attempt that comes next.
        """
        if watched.was_signalled or len(self._resting) >= RESTING_MOST:
            watched.let_go()
        else:
            self._resting.append((now_s, watched))

    def begin(self, folder: AttemptFolder, lock: int) -> Watch | None:
        """Return who took an attempt; None where nobody rests."""
        while self._resting:
            _, watched = self._resting.pop()
            if watched.link is not None and hand_over(watched.link, folder, lock):
                return watched.on(folder)
            watched.let_go()
        return None

    def forget(self, watched: Watch) -> None:
        """Leave out a supervisor that is gone."""
        self._resting = [pair for pair in self._resting if pair[1] is not watched]

    def dismiss(self, now_s: float) -> None:
        """Let those go that have rested long enough."""
        while self._resting and now_s - self._resting[0][0] >= REST_S_MOST:
            self._resting.pop(0)[1].let_go()

    def wait_s(self, now_s: float) -> float | None:
        """Return the wait until somebody is to be let go."""
        return max(0.0, self._resting[0][0] + REST_S_MOST - now_s) if self._resting else None
