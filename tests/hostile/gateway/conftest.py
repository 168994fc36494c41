"""A gateway and a replica for a whole module of attacks, and raw connections to them."""

from collections.abc import Callable, Generator

import pytest
from msgspec.structs import replace

from hostile.gateway.attacked import Attacked, Raw
from tenfold.model.service.routing import Service
from tests.rigs.gateway import (
    GatewayProcess,
    chat_service,
    revision_of,
    state_of,
    token_for,
)
from tests.rigs.openai_replica import ReplicaProcess


@pytest.fixture(scope="module")
def attacked() -> Generator[Attacked, None, None]:
    replica = ReplicaProcess()
    chat = chat_service([replica.url], retries_max=0, idle_timeout_s=2)
    hasty = replace(chat, name="hasty", models=("hasty",), first_byte_timeout_s=2)
    plain = Service(name="plain", paths=("/",), revisions=(revision_of("v1", [replica.url]),))
    secret = Service(name="secret", teams=("blue",), revisions=chat.revisions)
    front = GatewayProcess(
        state_of(
            chat,
            plain,
            secret,
            hasty,
            tokens=(token_for("tf_red-secret", "red"), token_for("tf_blue-secret", "blue")),
        ),
        "--body-max-mib",
        "1",
    )
    made = Attacked(front, replica)
    yield made
    front.close()
    replica.close()
    assert "Traceback" not in front.log(), front.log()


@pytest.fixture
def raw(attacked: Attacked) -> Generator[Callable[[], Raw], None, None]:
    """Opens connections; after each attack the gateway must still answer."""
    opened: list[Raw] = []

    def connect() -> Raw:
        opened.append(Raw(attacked.front.url))
        return opened[-1]

    yield connect
    for one in opened:
        one.close()
    attacked.replica.control("ok")
    assert attacked.ask()[0] == 200
