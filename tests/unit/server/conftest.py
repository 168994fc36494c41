"""A control plane with a real journal and a real loop, and clients with every kind of token."""

from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from patience import HANG_S
from tenfold.model.fleet.node import Node
from tenfold.model.ids import NodeId, PoolId, SiteId
from tenfold.server.app import make_app
from tenfold.server.auth.tokens import Role
from tenfold.server.runtime.runtime import Runtime, ServerDeps
from unit.server.fake_executor import FakeExecutor, FakeProcesses

NODES = [
    Node(id=NodeId(f"n{one}"), pool=PoolId("p"), site=SiteId("s"), gpus=4, cpus_milli=8_000)
    for one in (1, 2)
]


@pytest.fixture
def processes(tmp_path: Path) -> FakeProcesses:
    return FakeProcesses(tmp_path)


@pytest.fixture
def runtime(tmp_path: Path, processes: FakeProcesses) -> Generator[Runtime, None, None]:
    made = Runtime(
        ServerDeps(
            journal=str(tmp_path / "journal.db"),
            executor=lambda: FakeExecutor(processes),
            logs=processes,
            wait_s=HANG_S,
        )
    )
    made.start(NODES)
    yield made
    made.stop()


@pytest.fixture
def app(runtime: Runtime) -> Litestar:
    return make_app(runtime.control)


@pytest.fixture
def token(runtime: Runtime) -> Callable[..., str]:
    """Return a token of a role, as a header."""

    def made(role: str = "member", team: str = "red", days: float = 1) -> str:
        secret, _ = runtime.control.tokens.create(
            name=f"{role}-of-{team}", team=team, role=Role[role], days=days
        )
        return secret

    return made


@pytest.fixture
def client(app: Litestar) -> Generator[TestClient[Litestar], None, None]:
    with TestClient(app, raise_server_exceptions=False) as made:
        yield made


@pytest.fixture
def member(client: TestClient[Litestar], token: Callable[..., str]) -> TestClient[Litestar]:
    """A client that shows the token of a member of team `red` unless it is told otherwise."""
    client.headers["Authorization"] = f"Bearer {token()}"
    return client
