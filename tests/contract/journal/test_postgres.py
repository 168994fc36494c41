"""The journal in a PostgreSQL that really runs."""

from collections.abc import Iterator
from itertools import count

import pytest

from contract.journal.contract import JournalContract
from engines.postgres import new_database, running_postgres

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
