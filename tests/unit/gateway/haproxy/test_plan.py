"""What HAProxy is trusted with, and the text that it is told."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tenfold.gateway.haproxy.config import HaproxySettings, config_text, map_text
from tenfold.gateway.haproxy.control import Counters, read_stats, worker_pids
from tenfold.gateway.haproxy.plan import hot_service, plan_of, server_name
from tenfold.model.service.routing import (
    Overflow,
    Replica,
    Revision,
    RoutingState,
    Service,
    TeamLimits,
    TokenDigest,
)

NOW = 1_000
RED, BLUE = "a" * 64, "b" * 64
SETTINGS = HaproxySettings(
    folder=Path("/run/hx"),
    listen=("127.0.0.1", 80),
    python=Path("/run/hx/gateway.sock"),
    connections_max=100,
    body_bytes_max=1_000,
    drain_s=60.0,
)


def revision(name: str = "v1", url: str = "http://127.0.0.1:9000", **fields: Any) -> Revision:
    return Revision(name=name, replicas=(Replica(id="r", url=url),), **fields)


def service(name: str = "chat", **fields: Any) -> Service:
    return Service(name=name, **{"revisions": (revision(),), **fields})


@pytest.mark.parametrize(
    "cold",
    [
        {"revisions": (revision(), revision("v2"))},
        {"revisions": (revision(is_canary=True),)},
        {"revisions": (revision(), revision("v2", weight=0.0, shadow_percent=5.0))},
        {"revisions": ()},
        {"revisions": (revision(url="https://127.0.0.1:9000"),)},
        {"revisions": (revision(url="http://127.0.0.1:9000/path"),)},
        {"revisions": (revision(url="http://127.0.0.1:99999"),)},
        {"key": "vllm"},
        {"hedge_after_s": 1.0},
        {"overflow": (Overflow(name="far", url="https://far.example"),)},
        {"paths": ("/",)},
        {"paths": ("/v1/{x}",)},
        {"paths": ('/v1/"',)},
    ],
)
def test_what_needs_a_decision_is_not_hot(cold: dict[str, Any]):
    assert hot_service(service()) is not None
    assert hot_service(service(**cold)) is None


def test_a_caller_is_a_digest_with_a_service_that_it_may_use():
    state = RoutingState(
        services=(service(), service("own", teams=("red",)), service("cold", key="k")),
        teams=(TeamLimits(name="green", tokens_per_minute=5), TeamLimits(name="blue", weight=2.0)),
        tokens=(
            TokenDigest(digest=RED, team="red"),
            TokenDigest(digest=BLUE, team="blue", services=("chat",)),
            TokenDigest(digest="c" * 64, team="green"),
            TokenDigest(digest="d" * 64, team="red", expires_ms=NOW),
        ),
        team_without_token="blue",
    )
    assert plan_of(state, NOW).callers == {
        f"{RED}/chat": "red",
        f"{BLUE}/chat": "blue",
        "-/chat": "blue",
        f"{RED}/own": "red",
    }


def test_a_model_of_two_services_or_with_odd_characters_is_the_gateways():
    state = RoutingState(
        services=(
            service(models=("shared", "plain/model:1", "a b", "x;y")),
            service("other", models=("shared", "mine")),
        )
    )
    assert plan_of(state, NOW).models == {"plain/model:1": "chat", "mine": "other"}


def test_what_moves_is_not_structure():
    before = plan_of(RoutingState(services=(service(),)), NOW)
    moved = service(revisions=(revision("v9", "http://10.0.0.1:1"),), models=("x",))
    assert plan_of(RoutingState(services=(moved,)), NOW).structure == before.structure
    for other in (service("b"), service(slots_per_replica=4), service(affinity="session")):
        assert plan_of(RoutingState(services=(other,)), NOW).structure != before.structure


def test_ids_of_replicas_never_reach_the_configuration():
    evil = 'x\tserver y 1.2.3.4:5 "'
    one = Replica(id=evil, url="http://127.0.0.1:9000", weight=2.0)
    state = RoutingState(services=(service(revisions=(Revision(name="v", replicas=(one,)),)),))
    text = config_text(plan_of(state, NOW), SETTINGS)
    assert "1.2.3.4" not in text
    assert f"server {server_name(one)} 127.0.0.1:9000 weight 32\n" in text


def test_the_configuration_says_what_it_must():
    plan = plan_of(RoutingState(services=(service(slots_per_replica=3),)), NOW)
    text = config_text(plan, SETTINGS)
    assert "    option http-no-delay\n" in text
    assert "maxconn 3" in text
    assert "be_conn_free(svc.chat) gt 0" in text
    for name in ("authorization", "cookie", "x-api-key", "x-forwarded-for"):
        assert f"http-request del-header {name}\n" in text
    assert text.count("default_backend gateway") == 1
    even = config_text(plan_of(RoutingState(services=(service(affinity="none"),)), NOW), SETTINGS)
    assert "balance leastconn" in even
    assert "be_conn_free" not in even


def test_ipv6_and_maps_are_written_as_haproxy_reads_them():
    six = replace(service(), revisions=(revision(url="http://[::1]:9000"),))
    text = config_text(plan_of(RoutingState(services=(six,)), NOW), SETTINGS)
    assert " [::1]:9000 " in text
    assert map_text({"m": "chat"}) == "m chat\n"


def test_counters_are_read_by_name_and_odd_lines_are_zero():
    text = (
        "# pxname,svname,scur,stot,bin,econ,eresp,hrsp_5xx,wretr,wredis,\nsvc.a,r1,1,5,,0,2,3,1,1,"
    )
    assert read_stats(text) == {("svc.a", "r1"): Counters(1, 5, 0, 0, 2, 3, 2)}
    assert read_stats("") == {}
    assert worker_pids("#<PID> <type>\n12 master 0\n# workers\n13 worker 0\n9 worker 1\n") == [
        13,
        9,
    ]
