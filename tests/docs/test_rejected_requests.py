"""The page on rejected requests shows what the control plane says, and its hints are accepted."""

import re
from typing import Any

import msgspec

from docs.rejected_requests import PAGE, REQUESTS, answers, control_plane, page

SIZES = ("nodes", "gpus", "gpus_per_node")
_USE = re.compile(r"`(\w+) = ([^`]+)`(?: with `(\w+) = ([^`]+)`)?")


def test_the_page_shows_what_is_answered():
    """Write it anew with `tests/docs/rejected_requests.py --write`."""
    assert page() == PAGE.read_text()


def test_a_request_that_follows_a_hint_is_accepted():
    tried = 0
    refused = [(request, said) for request, status, said in answers() if status == 422]
    assert len(refused) > 20 <= len(REQUESTS) - 10
    with control_plane() as client:
        for request, said in refused:
            if len(said) != 1 or "use `" not in said[0][2]:
                continue
            for found in _USE.findall(said[0][2]):
                fixed = _followed(request, found)
                answer = client.post("/api/v1/jobs", json={"command": ["true"], **fixed})
                assert answer.status_code == 201, (request, found, answer.text)
                tried += 1
    assert tried > 20


def _followed(request: Any, found: tuple[str, ...]) -> dict[str, Any]:
    """Return a request with the keys of a hint instead of its own."""
    pairs = [(key, value) for key, value in zip(found[::2], found[1::2], strict=True) if key]
    sizes = [key for key, _ in pairs if key in SIZES]
    is_other_split = sizes == ["gpus"] and "nodes" not in request
    gone = SIZES if len(sizes) > 1 or is_other_split else ()
    kept = {key: value for key, value in request.items() if key not in gone}
    return kept | {key: msgspec.json.decode(value) for key, value in pairs}
