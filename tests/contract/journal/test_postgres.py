"""The journal in a PostgreSQL that really runs."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import count

import pytest
from msgspec.structs import replace
from sqlalchemy import update
from sqlalchemy.exc import SQLAlchemyError

from contract.journal.contract import JournalContract
from contract.journal.leadership import FIRST, SECOND
from engines.postgres import new_database, running_postgres
from patience import until
from tenfold.journal.append import open_journal
from tenfold.journal.leadership.lease import lease_of, limit_statements
from tenfold.journal.store import open_store
from tenfold.journal.tables import LEASE

pytestmark = pytest.mark.engine

NUMBERS = count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_postgres() as address:
        yield address


class TestPostgres(JournalContract):
    @pytest.fixture
    def address(self, server: str) -> str:
        return new_database(server, f"journal{next(NUMBERS)}")

    def test_a_renewal_that_stalls_before_its_commit_does_not_keep_the_lease(self, address: str):
        """A process that is stopped between the statement and the commit holds a row lock."""
        store, stalled = open_store(address), open_store(address)
        first = open_journal(store, "one", 1, FIRST)
        claim = replace(SECOND, dead_epoch=first.epoch)

        def renew_slowly() -> None:
            with stalled.writing() as connection:
                limit_statements(connection, 200)
                connection.execute(update(LEASE).values(renewed_ms=1))
                assert open_journal(store, "two", 2, claim).epoch == 2

        with pytest.raises(SQLAlchemyError):
            renew_slowly()
        lease = lease_of(store)
        assert lease is not None
        assert lease.control_plane == "s/second"
        stalled.close()
        store.close()

    def test_a_leader_that_stalls_where_no_limit_counts_does_not_keep_its_expired_lease(
        self, address: str
    ):
        """A process that is stopped in the middle of a batch of messages has no idle session."""
        store, stalled = open_store(address), open_store(address)
        open_journal(store, "one", 1, replace(FIRST, lease_ms=200))
        with stalled.engine.connect() as connection:
            connection.exec_driver_sql("SELECT epoch FROM lease FOR UPDATE")
            until(lambda: (lease := lease_of(store)) is not None and lease.left_ms < -200)
            assert open_journal(store, "two", 2, SECOND).epoch == 2
            with suppress(SQLAlchemyError):
                connection.rollback()
        stalled.close()
        store.close()
