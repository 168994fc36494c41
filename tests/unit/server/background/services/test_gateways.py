"""Gateways are read in turn; what they say of draining replicas counts once all know of it."""

from collections.abc import Generator

import pytest

from patience import until
from stub_gateway import StubGateway, stub_gateway
from tenfold.decide.serve.load import FORGOTTEN_MS
from tenfold.model.ids import JobId
from tenfold.model.service.traffic import RolledBack
from tenfold.model.units import Millis
from tenfold.server.background.services.gateways import Gateways

ONE = JobId("chat-1")


@pytest.fixture
def stubs() -> Generator[tuple[StubGateway, StubGateway]]:
    with stub_gateway() as one, stub_gateway() as other:
        yield one, other


def read(gateways: Gateways, now_ms: int) -> None:
    """Read every gateway once."""
    gateways.read(["chat"], Millis(now_ms))
    until(lambda: all(one.running is None or one.running.done() for one in gateways._gateways))
    gateways.read(["chat"], Millis(now_ms))


def test_a_draining_replica_is_idle_once_every_gateway_knows_and_has_no_requests(
    stubs: tuple[StubGateway, StubGateway],
):
    one, other = stubs
    one.routing_version, other.routing_version = 7, 8
    other.busy = {ONE: 1}
    gateways = Gateways(lambda: [one.url, other.url])
    draining = {ONE: 8}
    read(gateways, 0)
    assert gateways.idle("chat", draining, Millis(0)) == []
    one.routing_version = 8
    read(gateways, 1_000)
    assert gateways.idle("chat", draining, Millis(1_000)) == []
    other.busy.clear()
    read(gateways, 2_000)
    assert gateways.idle("chat", draining, Millis(2_000)) == [ONE]
    # One that has not answered for long may still have requests there.
    assert gateways.idle("chat", draining, Millis(2_000 + FORGOTTEN_MS)) == []
    gateways.close()


def test_without_gateways_nothing_is_known_to_be_idle():
    gateways = Gateways(list)
    gateways.read(["chat"], Millis(0))
    assert gateways.idle("chat", {ONE: 1}, Millis(0)) == []
    history = gateways.history("chat")
    assert history is not None
    assert history.load(Millis(0)) is None


def test_a_canary_that_a_gateway_took_out_is_told_of_its_service_only(
    stubs: tuple[StubGateway, StubGateway],
):
    one, _ = stubs
    lost = RolledBack(
        service="chat",
        revision="r2",
        at_ms=0,
        cause="errors",
        requests=1,
        percent=1.0,
        percent_others=0.0,
    )
    one.rolled_back = (lost,)
    gateways = Gateways(lambda: [one.url])
    read(gateways, 0)
    assert gateways.rolled_back("chat", Millis(0)) == [lost]
    assert gateways.rolled_back("other", Millis(0)) == []
    gateways.close()


def test_what_is_no_load_is_ignored_and_a_gateway_at_another_address_is_read(
    stubs: tuple[StubGateway, StubGateway],
):
    one, other = stubs
    urls = [f"{one.url}/elsewhere"]
    gateways = Gateways(lambda: urls)
    read(gateways, 0)
    assert list(gateways._answering(Millis(0))) == []
    urls[0] = other.url
    read(gateways, 1_000)
    assert len(list(gateways._answering(Millis(1_000)))) == 1
    gateways.close()
