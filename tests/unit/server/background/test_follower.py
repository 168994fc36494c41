"""The server's own copy of the fleet: it follows the journal, and is asked why jobs wait."""

from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest

from tenfold.journal.append import JournalWriter, open_journal
from tenfold.journal.store import Store, open_store
from tenfold.model.actions import StartJob
from tenfold.model.events import ActionOrdered, Event, JobStarted, JobSubmitted, NodeJoined
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import Job, Slot, shape_of
from tenfold.model.job.terms import Terms
from tenfold.model.policy.governance import GovernanceRules, TeamRules
from tenfold.model.policy.policy import Policy
from tenfold.model.units import Millis
from tenfold.server.background import follower as rules
from tenfold.server.background.follower import Follower
from tenfold.testing.builders import nodes

AT = Millis(1_000)
NUMBERS = count(1)


def job(name: str, team: str = "red", gpus: int = 4, after: str = "") -> Job:
    terms = Terms(after=(JobId(after),)) if after else None
    return Job(
        id=JobId(name),
        shape=shape_of(gpus),
        submitted_ms=AT,
        seq=next(NUMBERS),
        team=TeamId(team),
        terms=terms,
    )


def node_and_holder() -> list[Event]:
    (node,) = nodes(1, gpus=4)
    slots = (Slot(node.id, gpus=4),)
    return [
        NodeJoined(AT, node),
        JobSubmitted(AT, job("holder", "blue")),
        ActionOrdered(AT, StartJob(JobId("holder"), slots)),
        JobStarted(AT, JobId("holder")),
    ]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "journal.db")


@pytest.fixture
def writer(store: Store) -> JournalWriter:
    return open_journal(store, "test", 0)


def followed(store: Store, policy: Policy | None = None) -> Follower:
    return Follower(store, policy or Policy(), lambda: 2_000)


def write(writer: JournalWriter, events: Sequence[Event]) -> int:
    writer.append(events)
    return writer.seq


def test_a_moment_is_shared_until_an_event_is_asked_for_that_it_lacks(
    store: Store, writer: JournalWriter
):
    follower = followed(store)
    write(writer, node_and_holder())
    first = follower.snapshot()
    seq = write(writer, [JobSubmitted(AT, job("waits"))])
    assert follower.snapshot() is first
    second = follower.snapshot(seq)
    assert second is not first
    assert list(second.fleet.pending) == ["waits"]
    assert list(first.fleet.pending) == []


def test_a_follower_that_is_far_behind_begins_anew(
    store: Store, writer: JournalWriter, monkeypatch: pytest.MonkeyPatch
):
    follower = followed(store)
    write(writer, node_and_holder())
    follower.snapshot()
    monkeypatch.setattr(rules, "EVERY", 1)
    seq = write(writer, [JobSubmitted(AT, job("waits"))])
    assert follower.snapshot(seq).fleet.version == seq


def test_reasons_are_those_of_the_policy(store: Store, writer: JournalWriter):
    waiting = [job("first"), job("second", after="first")]
    seq = write(writer, [*node_and_holder(), *(JobSubmitted(AT, one) for one in waiting)])
    plain = followed(store).snapshot(seq)
    assert plain.reason("first") == plain.reason("first")
    found = plain.reason("first")
    assert found is not None
    assert found.code == "too-few-free"
    after = plain.reason("second")
    assert after is not None
    assert after.code == "after-others"
    assert plain.reason("holder") is None
    govern = GovernanceRules(teams=(TeamRules(id=TeamId("red")),))
    governed = followed(store, Policy(name="governed", govern=govern)).snapshot(seq)
    assert governed.reason("first") is not None
    asked = governed.why("first", "cheapest", with_eta=True)
    assert asked is not None
    assert asked.why.team == "red"


def test_a_long_queue_is_told_of_in_brief(
    store: Store, writer: JournalWriter, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(rules, "QUEUE_MAX", 1)
    waiting = [JobSubmitted(AT, job(f"w{one}")) for one in range(3)]
    seq = write(writer, [*node_and_holder(), *waiting])
    found = followed(store).snapshot(seq).why("w1", "cheapest", with_eta=True)
    assert found is not None
    assert found.is_brief
    assert found.why.eta is None
    assert [one.team for one in found.why.holders.teams] == ["blue"]
    assert found.why.ahead == 1
    monkeypatch.setattr(rules, "QUEUE_COUNTED_MAX", 1)
    shorter = followed(store).snapshot(seq).why("w1", "cheapest", with_eta=False)
    assert shorter is not None
    assert shorter.is_brief
    assert shorter.why.ahead is None
    assert [one.team for one in shorter.why.holders.teams] == ["blue"]
