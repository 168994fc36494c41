"""Damage to a journal in PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from engines.postgres import new_database, running_postgres
from hostile.journal.damage import NUMBERS, Damage, cloned, live
from journal_builders import JOINED, submitted
from tenfold.model.errors import TenfoldError


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_postgres() as address:
        yield address


@pytest.mark.engine
class TestPostgres(Damage):
    @pytest.fixture
    def address(self, server: str) -> str:
        return new_database(server, f"damaged{next(NUMBERS)}")

    def test_a_replica_that_was_behind_is_found_after_a_failover(
        self, server: str, address: str, head: Path
    ):
        """Copy the database, write on, and go back to the copy, as an asynchronous replica."""
        journal = live(address, head)
        journal.append(JOINED)
        journal.close()
        behind = cloned(server, address, f"replica{next(NUMBERS)}")
        journal = live(address, head)
        journal.append([submitted(1)])
        journal.close()
        with pytest.raises(TenfoldError) as caught:
            live(behind, head)
        assert caught.value.code == "journal-cut"
        assert "other database server" in caught.value.hint
