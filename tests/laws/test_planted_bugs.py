"""The laws are worth something: bugs that are planted on purpose are found, and soon."""

import os
import subprocess
import sys

import pytest

from planted_bugs import BUGS, INDEX, Planted
from planted_governed import GOVERNED_BUGS, INDEX_BUGS, SECOND_LOOKS
from tests.rigs.broken import overlooked
from tests.rigs.soak import soak_one

WORLDS_MOST = 100

SET_ORDER = """
from tenfold.fleet.capacity import Capacity
from tests.rigs.soak import soak_one

def of(view):
    capacity = Capacity()
    for node in set(view.nodes.values()):
        capacity.add(node, view)
    return capacity

Capacity.of = of
print([soak_one(seed, "slurm", every=1_000_000).digest for seed in (0, 1, 5, 6, 7, 9)])
"""


def first_found(bug: Planted, worlds: int = WORLDS_MOST) -> tuple[int, str]:
    """Return the seed of the first world that finds a bug, and the law that it breaks."""
    for seed in dict.fromkeys([bug.world, *range(worlds)]):
        try:
            soak_one(seed, bug.policy)
        except Exception as error:
            return seed, getattr(error, "law", type(error).__name__)
    return worlds, "nothing"


@pytest.mark.parametrize(
    "bug",
    [*BUGS, *GOVERNED_BUGS, *INDEX_BUGS, *SECOND_LOOKS],
    ids=lambda bug: bug.bug.replace(" ", "-"),
)
def test_a_planted_bug_is_found_by_its_law(bug: Planted, monkeypatch: pytest.MonkeyPatch):
    bug.patch(monkeypatch)
    with overlooked(bug.beside):
        seed, law = first_found(bug)
    assert law == bug.law, f"in world {seed} under `{bug.policy}`"


@pytest.mark.parametrize("bug", INDEX_BUGS, ids=lambda bug: bug.bug.replace(" ", "-"))
def test_a_wrong_index_that_changes_no_decision_is_found_by_no_other_law(
    bug: Planted, monkeypatch: pytest.MonkeyPatch
):
    bug.patch(monkeypatch)
    with overlooked([INDEX]):
        assert first_found(bug, worlds=5) == (5, "nothing")


def test_a_loop_over_a_set_is_found_by_two_hash_seeds():
    digests = [
        subprocess.run(
            [sys.executable, "-c", SET_ORDER],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "4321")
    ]
    assert digests[0] != digests[1]
