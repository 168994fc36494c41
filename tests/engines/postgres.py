"""A real PostgreSQL for tests, from a wheel: no root, no port, its own folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

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


@contextmanager
def running_postgres() -> Iterator[str]:
    """Give the address of a server whose data lies in a folder of its own and goes with it."""
    require_postgres()
    import pgserver  # noqa: PLC0415

    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        # Under root the server runs as another user, who must be able to reach its data.
        Path(folder).chmod(0o755)
        server = pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            yield server.get_uri()
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
