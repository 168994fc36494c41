"""The journal in a file of SQLite."""

from pathlib import Path

import pytest

from contract.journal.contract import JournalContract


class TestSqlite(JournalContract):
    @pytest.fixture
    def address(self, tmp_path: Path) -> str:
        return str(tmp_path / "journal.db")
