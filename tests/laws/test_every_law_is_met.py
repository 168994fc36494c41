"""No law goes unwatched: each is declared, each is looked at, and one that never was is told."""

from collections import Counter

import pytest

from benchmarks import soak as soaks
from tenfold.model.policy.policy import POLICIES
from tests.rigs.broken import LAWS, PLACING, hold, never_met, overlooked, times
from tests.rigs.soak import soak_one

BUSY = (18, 30, 39, 126)
"""Governed worlds with resizes, limited stops, racks of little power, and holes to fill."""


def met_in(*worlds: tuple[int, str]) -> Counter[str]:
    before = Counter(times)
    for seed, name in worlds:
        soak_one(seed, name)  # pyright: ignore[reportArgumentType]
    return times - before


def test_a_few_worlds_meet_every_law():
    governed = [(seed, "governed") for seed in BUSY]
    assert never_met(met_in(*governed, (1, "tenfold"))) == []


@pytest.mark.parametrize("name", POLICIES)
def test_the_index_of_every_policy_is_watched(name: str):
    met = met_in((1, name))
    assert met["kept-index-is-the-built-one"] > 0.9 * met["deciding-changes-nothing"] > 0


def test_a_law_that_is_declared_nowhere_cannot_be_held():
    with pytest.raises(AssertionError, match="declared nowhere"):
        hold("nodes-are-blue", True, "")


def test_a_law_that_was_never_looked_at_is_named():
    assert never_met(dict.fromkeys(LAWS, 1) | {"time-goes-on": 0}) == ["time-goes-on"]
    assert never_met({}, PLACING) == list(PLACING)


def test_a_law_may_be_broken_only_while_it_is_overlooked():
    with overlooked(["time-goes-on"]):
        hold("time-goes-on", False, "it stood still")
    with pytest.raises(AssertionError, match="it stood still"):
        hold("time-goes-on", False, "it stood still")


@pytest.mark.parametrize(("worlds", "status"), [(1_000, 1), (10, 0)])
def test_a_soak_that_never_looked_at_a_law_fails(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    worlds: int,
    status: int,
):
    looks = Counter({law: 1 for law in LAWS if law != "quotas-are-kept"})
    monkeypatch.setattr(soaks, "soak", lambda ask: soaks.Tally(worlds=ask.worlds, laws=looks))
    assert soaks.main(["--worlds", str(worlds)]) == status
    out = capsys.readouterr().out
    assert "           0  quotas-are-kept" in out
    assert ("NEVER LOOKED AT quotas-are-kept" in out) == bool(status)
