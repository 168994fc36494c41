"""What every journal must do where several control planes want to write it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import Connection, select, update

from journal_builders import JOINED, submitted
from tenfold.fleet.fleet import Fleet
from tenfold.journal import read
from tenfold.journal.append import JournalWriter, open_journal
from tenfold.journal.leadership.control_planes import (
    GONE_MS,
    ControlPlaneRow,
    forget,
    note_seen,
    shared_by,
)
from tenfold.journal.leadership.lease import Claim, check_epoch, lease_of, release, renew
from tenfold.journal.policies import note_policy
from tenfold.journal.retention import export_events
from tenfold.journal.snapshots import save_snapshot
from tenfold.journal.store import Store, open_store
from tenfold.journal.tables import CONTROL_PLANES, LEASE, METADATA
from tenfold.model.actions import StartJob
from tenfold.model.errors import Refused
from tenfold.model.events import ActionOrdered, JobEnded
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Slot
from tenfold.model.policy.policy import Policy
from tenfold.model.units import Millis
from tenfold.server.auth.tokens import Role, Tokens

LEASE_MS = 60_000
"""So long that it expires only where a test says so."""
FIRST = Claim(control_plane="s/first", url="http://a", executor="x here", lease_ms=LEASE_MS)
SECOND = Claim(control_plane="s/second", url="http://b", executor="x here", lease_ms=LEASE_MS)
ELSEWHERE = replace(SECOND, executor="y there")
WITHIN_MS = 10_000
START = ActionOrdered(Millis(2), StartJob(JobId("job-1"), (Slot(NodeId("n0"), 8),)))


class JournalLeadership:
    """The part of the contract that is about leaders; it needs `address`, an empty database."""

    def test_a_lease_that_is_held_is_not_taken(self, address: str):
        store = open_store(address)
        open_journal(store, "one", 1, FIRST)
        with pytest.raises(Refused) as refused:
            open_journal(store, "two", 2, SECOND)
        assert refused.value.code == "lease-held"
        assert "`one` leads" in refused.value.message
        assert open_journal(store, "one again", 3, FIRST).epoch == 2
        lease = lease_of(store)
        assert lease is not None
        assert (lease.control_plane, lease.url, lease.epoch) == ("s/first", "http://a", 2)
        assert 0 < lease.left_ms <= LEASE_MS
        store.close()

    @pytest.mark.parametrize("how", ["expired", "released", "dead"])
    def test_a_lease_is_taken_once_nobody_needs_it(self, address: str, how: str):
        store = open_store(address)
        first = open_journal(store, "one", 1, FIRST)
        claim = SECOND
        if how == "expired":
            _expire(store)
        elif how == "released":
            release(store, first.epoch, WITHIN_MS)
        else:
            claim = replace(SECOND, dead_epoch=first.epoch)
        assert open_journal(store, "two", 2, claim).epoch == 2
        assert not renew(store, first.epoch, WITHIN_MS)
        release(store, first.epoch, WITHIN_MS)
        lease = lease_of(store)
        assert lease is not None
        assert (lease.control_plane, lease.left_ms > 0) == ("s/second", True)
        store.close()

    def test_a_renewed_lease_has_its_whole_length_again(self, address: str):
        store = open_store(address)
        first = open_journal(store, "one", 1, FIRST)
        _expire(store)
        assert renew(store, first.epoch, WITHIN_MS)
        with pytest.raises(Refused):
            open_journal(store, "two", 2, SECOND)
        store.close()

    def test_an_epoch_is_above_those_that_the_executor_has_seen(self, address: str):
        store = open_store(address)
        assert open_journal(store, "one", 1, replace(FIRST, epoch_least=41)).epoch == 41
        assert open_journal(store, "one", 1, replace(FIRST, epoch_least=7)).epoch == 42
        store.close()

    def test_a_leader_that_was_followed_changes_nothing(self, address: str, tmp_path: Path):
        store = open_store(address)
        first = open_journal(store, "one", 1, FIRST)
        first.append([*JOINED, submitted(1)])
        fleet = Fleet()
        fleet.apply_all([event for _, event in read.events_after(store)])
        _expire(store)
        open_journal(store, "two", 2, SECOND)
        before = _rows(store)
        tokens = Tokens(store, lambda: 0, _fence_of(first))
        for change in (
            lambda: first.append([submitted(2)]),
            lambda: save_snapshot(first, fleet),
            lambda: note_policy(first, Policy()),
            lambda: export_events(first, tmp_path, 2),
            lambda: tokens.create(name="late", team="red", role=Role.admin),
            lambda: tokens.revoke("t-none"),
        ):
            with pytest.raises(Refused) as refused:
                change()
            assert refused.value.code == "lease-lost"
        assert _rows(store) == before
        store.close()

    def test_jobs_of_another_executor_are_not_started_again(self, address: str):
        store = open_store(address)
        first = open_journal(store, "one", 1, FIRST)
        first.append([*JOINED, submitted(1), START])
        _expire(store)
        with pytest.raises(Refused) as refused:
            open_journal(store, "two", 2, ELSEWHERE)
        assert refused.value.code == "another-executor"
        assert "1 jobs of this journal run under `here`" in refused.value.message
        open_journal(store, "two", 2, replace(ELSEWHERE, requeues=True))
        _expire(store)
        first = open_journal(store, "one", 1, replace(FIRST, requeues=True))
        first.append([JobEnded(Millis(3), JobId("job-1"))])
        _expire(store)
        assert open_journal(store, "two", 2, ELSEWHERE).epoch == 4
        store.close()

    def test_control_planes_show_that_they_are_there(self, address: str):
        store = open_store(address)
        rows = [
            ControlPlaneRow(id=f"s/{one}", name=one, url=f"http://{one}", holder="h:1", version="1")
            for one in ("b", "a")
        ]
        for row in (*rows, rows[0]):
            note_seen(store, row, WITHIN_MS)
        shared = shared_by(store)
        assert [(one.name, one.url) for one in shared.rows] == [
            ("a", "http://a"),
            ("b", "http://b"),
        ]
        assert all(abs(one.seen_ms - shared.now_ms) < LEASE_MS for one in shared.rows)
        with store.writing() as connection:
            old = update(CONTROL_PLANES).where(CONTROL_PLANES.c.name == "a")
            connection.execute(old.values(seen_ms=shared.now_ms - GONE_MS - 1))
        note_seen(store, rows[0], WITHIN_MS)
        assert [one.name for one in shared_by(store).rows] == ["b"]
        forget(store, "s/b")
        assert shared_by(store).rows == ()
        store.close()


def _expire(store: Store) -> None:
    """Let the database's clock go on, as it does while a leader is paused."""
    with store.writing() as connection:
        connection.execute(update(LEASE).values(renewed_ms=LEASE.c.renewed_ms - LEASE_MS))


def _fence_of(writer: JournalWriter) -> Callable[[Connection], None]:
    return lambda connection: check_epoch(connection, writer.epoch)


def _rows(store: Store) -> list[object]:
    """Return all that a stale leader might have changed."""
    with store.reading() as connection:
        return [
            [tuple(row) for row in connection.execute(select(table))]
            for table in METADATA.sorted_tables
        ]
