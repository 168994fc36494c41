"""A small body does not become a large journal, nor much memory."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from hostile.plane import API, MIB, Plane, Watch
from patience import until

TAGS = [f"tag-{number:06}" for number in range(2_500)]
ATTACKS: dict[str, dict[str, Any]] = {
    "needs": {"array": 150, "needs": TAGS},
    "avoids": {"array": 150, "avoids": TAGS},
    "env": {"array": 150, "env": {f"V{number}": "x" for number in range(5_000)}},
    "one large member": {"array": 100_000, "env": {"A": "x" * 20_000}},
    "long tags": {"array": 100_000, "needs": [f"{number:02}" + "x" * 190 for number in range(60)]},
}

NEVER = {"gpus_per_node": 64}
"""No node has so many."""
ARRAYS: dict[str, dict[str, Any]] = {
    "needs": {"array": 2_000, "needs": [f"{number:02}" + "x" * 178 for number in range(60)]},
    "avoids": {"array": 2_000, "avoids": [f"{number:02}" + "x" * 178 for number in range(60)]}
    | NEVER,
    "command": {"array": 1_000, "command": ["true"] + ["x" * 6] * 2_500, **NEVER},
    "env": {"array": 1_000, "env": {f"V{number}": "x" * 50 for number in range(300)}, **NEVER},
    "few large members": {"array": 50, "command": ["true", "x" * 60_000, "y" * 60_000], **NEVER},
    "accelerator": {
        "array": 2_000,
        "accelerator": [f"{number:02}" + "x" * 90 for number in range(20)],
    },
    "many short members": {"array": 10_000, **NEVER},
}
"""Accepted: a body, or a list in it, is not to be stored for each member."""
PER_BODY, PER_MEMBER = 6, 1_000
"""Bytes of journal for each byte of the body and for each job, from its submission to its end: rows
of events, and one of jobs with a reason."""


@pytest.mark.parametrize("attack", ARRAYS)
def test_the_journal_grows_by_the_body_and_a_short_row_for_each_member(
    own_plane: Callable[..., Plane], attack: str
):
    plane = own_plane()
    body = dict[str, Any](command=["true"], allow_pending=True) | ARRAYS[attack]
    with plane.wire() as red:
        red.get(f"{API}/jobs")
        rss, journal = plane.rss_bytes(), plane.journal_bytes()
        told = red.post(f"{API}/jobs", body)
        assert told.status == 201, told.body[:300]
        array = f"{API}/jobs/{told.json()['id']}"
        # Members that fit nowhere wait for such nodes, or were refused at once.
        assert red.delete(array).status in (202, 409)
        until(lambda: not red.get(f"{API}/jobs?state=pending&limit=1").json()["jobs"])
        states = red.get(array).json()["array"]["states"]
    memory, grown = plane.rss_bytes() - rss, plane.journal_bytes() - journal
    sent, members = len(json.dumps(body)), body["array"]
    print(f"{attack}: {sent:,} bytes, journal +{grown:,}, memory +{memory / MIB:.0f} MiB")
    assert sum(states[one] for one in states if one in ("failed", "cancelled")) == members
    assert grown <= PER_BODY * sent + PER_MEMBER * members
    assert memory <= 100 * MIB


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_request_whose_events_are_much_larger_than_its_body_is_refused(
    plane: Plane, watch: Watch, attack: str
):
    rss, journal = plane.rss_bytes(), plane.journal_bytes()
    with plane.wire() as red:
        told = red.post(f"{API}/jobs", {"command": ["true"], **ATTACKS[attack]})
    grown = (plane.rss_bytes() - rss) / MIB, (plane.journal_bytes() - journal) / MIB
    print(f"{attack}: {told.status}, memory +{grown[0]:.0f} MiB, journal +{grown[1]:.1f} MiB")
    assert told.status == 422, told.body[:300]
    assert grown[0] < 64
    assert grown[1] < 1
    assert watch.alive() == []


def test_dependencies_on_arrays_are_counted_with_every_job_that_has_them(
    plane: Plane, watch: Watch
):
    """A batch of a few bytes for each job would have 10,000 names in each of its events."""
    with plane.wire() as red:
        array = {"command": ["true"], "array": 1_000, "nodes": 99}
        array |= {"gpus_per_node": 1, "allow_pending": True}
        base = red.post(f"{API}/jobs", {**array, "name": "base"})
        watch.count(sent_bytes=100, jobs=1_000)
        assert base.status == 201
        one = {"command": ["true"], "after": [base.json()["id"]]}
        told = red.post(f"{API}/jobs", {"jobs": [one] * 1_500})
    # The jobs of the array fit nowhere: they are refused at once, so either answer is one.
    assert told.status == 422
    assert told.code() in ("too-many-jobs", "dependency-failed", "wrong-value")
    assert watch.alive() == []
