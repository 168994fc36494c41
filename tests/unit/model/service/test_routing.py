"""Routing state crosses the wire unchanged, and holds nothing that could be used to call."""

import msgspec
import pytest

from tenfold.model.service.routing import (
    Hold,
    Overflow,
    Replica,
    Revision,
    RoutingState,
    Service,
    TeamLimits,
    TokenDigest,
    models_of,
)

STATE = RoutingState(
    version=3,
    services=(
        Service(
            name="chat",
            models=("llama-8b", "chat"),
            teams=("research",),
            revisions=(
                Revision(name="r1", replicas=(Replica(id="r1-0", url="http://127.0.0.1:9000"),)),
                Revision(name="r2", weight=0.1, is_canary=True),
            ),
            hold=Hold(requests_max=10),
            overflow=(Overflow(name="api", url="https://api.example.com/v1", key="api"),),
        ),
    ),
    teams=(TeamLimits(name="research", weight=2, tokens_per_minute=1_000),),
    tokens=(TokenDigest(digest="0" * 64, team="research"),),
)


def test_routing_state_crosses_the_wire_unchanged():
    assert msgspec.json.decode(msgspec.json.encode(STATE), type=RoutingState) == STATE


def test_a_service_without_models_is_its_own_model():
    assert models_of(STATE.services[0]) == ("llama-8b", "chat")
    assert models_of(Service(name="embed")) == ("embed",)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a",
        "http://user:secret@host/",
        "http://host/a?key=1",
        "http://host/a b",
        "http://host/\r\nX: 1",
        "http://host\n",
    ],
)
def test_an_address_with_credentials_queries_or_breaks_is_refused(url: str):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"id": "a", "url": url}, Replica)


def test_a_secret_does_not_fit_where_a_digest_belongs():
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"digest": "tf_secret", "team": "research"}, TokenDigest)


def test_an_unknown_key_is_refused():
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"name": "chat", "slots": 3}, Service)
