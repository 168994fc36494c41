"""The catalogue: one SQLite file that several processes read and write at once."""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tenfold.objects.catalog.schema import connect, create_tables
from tenfold.objects.catalog.writer import Writer

T = TypeVar("T")


class Catalog:
    """Reads run at once in the calling thread; writes share commits in a thread of their own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        first = connect(path)
        create_tables(first)
        self._local = threading.local()
        self._local.connection = first
        self._readers = [first]
        self.writer = Writer(path)

    @property
    def reader(self) -> sqlite3.Connection:
        """A connection of the calling thread; it sees what was committed last."""
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            found = connect(self.path)
            self._local.connection = found
            self._readers.append(found)
        return found

    async def write(self, change: Callable[[sqlite3.Connection], T]) -> T:
        """Run `change` in a transaction; return its result once it is on disk."""
        return await self.writer.write(change)

    def close(self) -> None:
        """Finish the changes under way and close the file."""
        self.writer.close()
        for connection in self._readers:
            connection.close()
