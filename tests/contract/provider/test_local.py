"""Virtual nodes of this machine as a provider: they join a real control plane and leave it."""

from collections.abc import Generator, Sequence
from pathlib import Path

import msgspec
import pytest

from contract.provider.contract import ProviderContract
from tenfold.client.client import Client
from tenfold.live.providers.local import RELEASED, LocalProvider
from tenfold.live.providers.provider import Provider
from tenfold.model.api.nodes import JoiningNode
from tenfold.model.fleet.node import Node
from tenfold.model.market.burst import Zone
from tenfold.model.units import usd_micros
from unit.up_process import commands_find, running

ZONE = Zone(
    name="zone-1",
    accelerator="H100-80G-SXM",
    gpus_per_node=8,
    usd_micros_per_hour=usd_micros(24.0),
    tags=("EU",),
)


class ClientGate:
    """Nodes join and leave over the HTTP API."""

    def join(self, nodes: Sequence[Node]) -> None:
        with Client() as client:
            client.join_nodes(
                [msgspec.convert(msgspec.to_builtins(one), JoiningNode) for one in nodes]
            )

    def leave(self, nodes: Sequence[str], cause: str) -> None:
        with Client() as client:
            client.mark_nodes(list(nodes), "fail", cause)

    def nodes(self) -> dict[str, str]:
        with Client() as client:
            return {one.id: one.state for one in client.nodes()}


class TestLocal(ProviderContract):
    @pytest.fixture
    def provider(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Provider]:
        with running(tmp_path, "--virtual-nodes", "1") as up:
            commands_find(up, monkeypatch)
            yield LocalProvider(ClientGate(), [ZONE], nodes_max=4)

    def test_a_node_that_left_stays_in_the_record_with_its_cause(self, provider: Provider):
        (only,) = provider.rent("zone-1", 1)
        provider.release([only])
        with Client() as client:
            (left,) = [one for one in client.nodes() if one.id == only]
        assert (left.state, left.cause, left.site, left.pool) == (
            "down",
            RELEASED,
            "zone-1",
            "burst",
        )

    def test_names_of_nodes_that_left_are_not_used_again(self, provider: Provider):
        (first,) = provider.rent("zone-1", 1)
        provider.release([first])
        (second,) = provider.rent("zone-1", 1)
        assert second != first
