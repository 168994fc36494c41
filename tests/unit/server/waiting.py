"""Wait for the state of a job that the loop reaches in its own time."""

from collections.abc import Mapping
from typing import Any

from litestar import Litestar
from litestar.testing import TestClient

from patience import until


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

    until(is_so, explain=lambda: f"`{job_id}` is not {state}: {told}")
    return told
