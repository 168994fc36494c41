"""A cancellation that was accepted takes effect and keeps its author, whoever is killed next."""

from collections.abc import Callable

from hostile.plane import API, Plane
from patience import until

STUBBORN = ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"]


def test_who_cancelled_a_running_job_is_known_after_a_kill(own_plane: Callable[..., Plane]):
    plane = own_plane()
    with plane.wire() as red:
        job_id = red.post(f"{API}/jobs", {"command": STUBBORN, "grace": "1s"}).json()["id"]

        def state() -> str:
            return red.get(f"{API}/jobs/{job_id}").json()["state"]

        until(lambda: state() == "running")
        assert red.delete(f"{API}/jobs/{job_id}").status == 202
        told = red.get(f"{API}/jobs/{job_id}").json()
        assert told["state"] in ("stopping", "cancelled")
        assert told["reason"]["sentence"] == "cancelled by member-of-red"
    plane.kill()
    plane.start()
    with plane.wire() as red:
        until(lambda: state() == "cancelled")
        told = red.get(f"{API}/jobs/{job_id}").json()
    assert told["reason"]["sentence"] == "cancelled by member-of-red"
