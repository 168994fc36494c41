"""A real PostgreSQL for tests, from a wheel: no root, no port, its own folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from sqlalchemy import create_engine, make_url, text


def require_postgres() -> None:
    """Skip the test where PostgreSQL cannot run; fail instead where engines are required."""
    missing = [name for name in ("pgserver", "psycopg") if find_spec(name) is None]
    if not missing:
        return
    reason = f"no {' and no '.join(missing)} here: pip install pgserver 'psycopg[binary]'"
    if os.environ.get("TENFOLD_REQUIRE_ENGINES") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


class Server:
    """A server that runs, and can be stopped and started."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self.address: str = server.get_uri()

    def stop(self) -> None:
        """Stop it as an upgrade of its machine would: who is connected is cut off."""
        from pgserver._commands import pg_ctl  # noqa: PLC0415

        words = ["-m", "fast", "-w", "stop"]
        pg_ctl(words, pgdata=self._server.pgdata, user=self._server.system_user)

    def start(self) -> None:
        """Start it again, at the same address."""
        self._server.ensure_postgres_running()
        assert self._server.get_uri() == self.address

    def cut_off(self, database: str) -> int:
        """End every connection to a database; return how many there were."""
        url = make_url(self.address).set(drivername="postgresql+psycopg")
        engine = create_engine(url, isolation_level="AUTOCOMMIT")
        ending = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"
        with engine.connect() as connection:
            ended = connection.execute(text(ending), {"name": database}).all()
        engine.dispose()
        return len(ended)


@contextmanager
def running_postgres() -> Iterator[str]:
    """Give the address of a server whose data lies in a folder of its own and goes with it."""
    with running_server() as server:
        yield server.address


@contextmanager
def running_server() -> Iterator[Server]:
    """Give such a server."""
    require_postgres()
    import pgserver  # noqa: PLC0415

    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        # Under root the server runs as another user, who must be able to reach its data.
        Path(folder).chmod(0o755)
        server = pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            yield Server(server)
        finally:
            server.cleanup()


def new_database(address: str, name: str) -> str:
    """Make an empty database and return its address."""
    url = make_url(address).set(drivername="postgresql+psycopg")
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f'CREATE DATABASE "{name}"'))
    engine.dispose()
    return url.set(database=name).render_as_string(hide_password=False)
