"""Gateways and replicas as processes; all are ended after each test."""

from collections.abc import Callable, Generator

import pytest

from tenfold.model.service.routing import RoutingState
from tests.rigs.gateway import GatewayProcess
from tests.rigs.openai_replica import ReplicaProcess


@pytest.fixture
def replica() -> Generator[Callable[..., ReplicaProcess], None, None]:
    """Starts replicas."""
    made: list[ReplicaProcess] = []

    def start(*options: str) -> ReplicaProcess:
        made.append(ReplicaProcess(*options))
        return made[-1]

    yield start
    for one in made:
        one.close()


@pytest.fixture
def gateway() -> Generator[Callable[..., GatewayProcess], None, None]:
    """Starts gateways."""
    made: list[GatewayProcess] = []

    def start(state: RoutingState, *options: str) -> GatewayProcess:
        made.append(GatewayProcess(state, *options))
        return made[-1]

    yield start
    for one in made:
        one.close()
        assert "Traceback" not in one.log(), one.log()
