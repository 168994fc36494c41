"""Requests whose end is in doubt, or whose headers are too large, are refused before any route."""

import pytest

from hostile.plane import API, Plane, Watch

CHUNKED = b"0\r\n\r\n"


def test_two_lengths_are_refused(plane: Plane, watch: Watch):
    with plane.wire() as red:
        told = red.ask("POST", f"{API}/jobs", CHUNKED, ("Transfer-Encoding", "chunked"))
        assert (told.status, told.code()) == (400, "bad-request")
        assert b"Transfer-Encoding and Content-Length" in told.body


def test_a_smuggled_request_is_not_read(plane: Plane, watch: Watch):
    inner = (
        b'POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 22\r\n\r\n{"command": ["true"]} '
    )
    with plane.wire() as red:
        told = red.ask("GET", f"{API}/jobs", CHUNKED + inner, ("Transfer-Encoding", "chunked"))
        assert told.status == 400
        # The connection is closed after the refusal: what follows is read as no request.
        assert red.get(f"{API}/jobs").status == 200


@pytest.mark.parametrize(
    "more",
    [
        [("X-Large", "x" * 100_000)],
        [(f"X-{number}", "y" * 1_000) for number in range(70)],
        [(f"X-{number}", "y") for number in range(200)],
    ],
    ids=["one", "many", "count"],
)
def test_headers_beyond_the_limit_are_refused(
    plane: Plane, watch: Watch, more: list[tuple[str, str]]
):
    with plane.wire() as red:
        told = red.ask("GET", f"{API}/jobs", b"", *more)
        assert (told.status, told.code()) in ((431, "headers-too-large"), (0, ""))
        assert red.ask("GET", f"{API}/jobs", b"", ("X-Large", "x" * 60_000)).status == 200


def test_a_path_beyond_the_limit_is_refused(plane: Plane, watch: Watch):
    with plane.wire() as red:
        assert red.get(f"{API}/jobs?team={'x' * 100_000}").status in (431, 0)
