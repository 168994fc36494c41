"""Wait for what the loop does in its own time: ask until it is so, a bounded number of times."""

from collections.abc import Callable, Mapping
from threading import Event
from typing import Any

from litestar import Litestar
from litestar.testing import TestClient

TRIES = 1_000
PAUSE_S = 0.01


def until(is_so: Callable[[], bool]) -> None:
    """Return when something is so; fail when it does not come to be."""
    never = Event()
    for _ in range(TRIES):
        if is_so():
            return
        never.wait(PAUSE_S)
    raise AssertionError("it did not come to be")


def job_when(
    client: TestClient[Litestar],
    job_id: str,
    state: str,
    headers: Mapping[str, str] | None = None,
    attempts: int = 0,
) -> dict[str, Any]:
    """Return a job once it is in a state, after so many attempts at least."""
    told: dict[str, Any] = {}

    def is_so() -> bool:
        told.update(client.get(f"/api/v1/jobs/{job_id}", headers=headers).json())
        return told["state"] == state and len(told["attempts"]) >= attempts

    until(is_so)
    return told
