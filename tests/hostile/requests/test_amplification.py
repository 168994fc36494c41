"""A small body does not become a large journal, nor much memory."""

from typing import Any

import pytest

from hostile.plane import API, MIB, Plane, Watch

TAGS = [f"tag-{number:06}" for number in range(2_500)]
ATTACKS: dict[str, dict[str, Any]] = {
    "needs": {"array": 150, "needs": TAGS},
    "avoids": {"array": 150, "avoids": TAGS},
    "env": {"array": 150, "env": {f"V{number}": "x" for number in range(5_000)}},
    "one large member": {"array": 100_000, "env": {"A": "x" * 20_000}},
    "long tags": {"array": 100_000, "needs": [f"{number:02}" + "x" * 190 for number in range(60)]},
}


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
