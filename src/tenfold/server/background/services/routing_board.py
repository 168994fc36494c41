"""The routing state that gateways get, with a version that grows whenever it changes."""

from collections.abc import Callable
from threading import Lock

import msgspec
from msgspec.structs import replace

from tenfold.model.service.routing import RoutingState


class RoutingBoard:
    """The newest routing state; thread-safe."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._lock = Lock()
        self._state: RoutingState | None = None
        self._encoded = b""

    @property
    def version(self) -> int:
        """The version of the newest state; 0 before the first."""
        state = self._state
        return 0 if state is None else state.version

    def publish(self, state: RoutingState) -> int:
        """Publish a state if it differs from the newest, and return the version.

        Versions are times, so they grow over restarts and from one leader to the next.
        """
        with self._lock:
            last = self._state
            if last is None or replace(last, version=0) != state:
                version = max(self._now_ms(), 1 + (0 if last is None else last.version))
                made = replace(state, version=version)
                self._encoded = msgspec.json.encode(made)
                self._state = last = made
            return last.version

    def withdraw(self) -> None:
        """Have nothing to show: this control plane does not lead."""
        with self._lock:
            self._state, self._encoded = None, b""

    def newer(self, after: int) -> bytes | None:
        """Return the newest state as JSON; None if it is not newer than a version."""
        with self._lock:
            if self._state is None or self._state.version <= after:
                return None
            return self._encoded
