"""A gateway answers what its replicas answer, and says plainly why it does not."""

import json
from collections.abc import Callable
from zlib import crc32

from contract.gateway.clients import CHAT, chat
from patience import until
from tenfold.model.service.routing import Service, TeamLimits
from tests.rigs.gateway import GatewayProcess, chat_service, revision_of, state_of, token_for
from tests.rigs.openai_replica import ReplicaProcess

Start = Callable[..., ReplicaProcess]
Run = Callable[..., GatewayProcess]


def test_answers_and_streams_pass_through(replica: Start, gateway: Run):
    one = replica("--name", "one")
    front = gateway(state_of(chat_service([one.url])))
    status, headers, body = front.post(CHAT, chat())
    assert status == 200
    assert headers["Server"] == "tenfold"
    assert headers["X-Request-Id"]
    answer = json.loads(body)
    status, headers, streamed = front.post(CHAT, chat(stream=True))
    assert headers["Content-Type"] == "text/event-stream; charset=utf-8"
    events = [part.removeprefix("data: ") for part in streamed.decode().split("\n\n") if part]
    assert events[-1] == "[DONE]"
    words = [json.loads(one)["choices"][0]["delta"].get("content", "") for one in events[:-1]]
    assert "".join(words) == answer["choices"][0]["message"]["content"]
    assert json.loads(front.send("GET", "/v1/models", None, {})[2])["data"][0]["id"] == "stub"
    assert front.send("GET", "/v1/models/other", None, {})[0] == 404
    counted = front.service()
    assert (counted.arrivals, counted.ended, counted.outstanding_requests) == (2, 2, 0)
    assert counted.outstanding_tokens == 0


def test_other_routes_and_plain_services_are_reached_by_path_and_header(
    replica: Start, gateway: Run
):
    one = replica()
    plain = Service(name="plain", paths=("/",), revisions=(revision_of("v1", [one.url]),))
    front = gateway(state_of(chat_service([one.url]), plain))
    body = b"\x00\x01" * 400_000
    for path, headers in (
        ("/services/plain/put/it?a=1&b=%2F", {}),
        ("/put/it?a=1&b=%2F", {"X-Tenfold-Service": "plain"}),
    ):
        status, _, said = front.send("PUT", path, body, {"traceparent": "00-ab-cd-01", **headers})
        seen = json.loads(said)
        assert status == 200
        assert (seen["path"], seen["crc32"]) == ("/put/it?a=1&b=%2F", crc32(body))
        names = {name.lower(): value for name, value in seen["headers"]}
        assert names["traceparent"] == "00-ab-cd-01"
        assert "x-tenfold-service" not in names
        assert names["host"] == one.url.removeprefix("http://")
    embedded = front.post("/v1/embeddings", {"model": "stub", "input": ["a", "bc"]})
    assert len(json.loads(embedded[2])["data"]) == 2
    # What a service of models does not offer is not reached, whatever its replicas have.
    assert front.send("GET", "/services/chat/stats", None, {})[0] == 404
    assert front.send("POST", "/control", b"{}", {"X-Tenfold-Service": "chat"})[0] == 404


def test_refusals_have_the_form_of_the_api(replica: Start, gateway: Run):
    one = replica()
    limited = TeamLimits(name="small", requests_per_minute=1)
    front = gateway(
        state_of(
            chat_service([one.url], teams=("red", "small")),
            Service(name="secret", teams=("blue",), revisions=(revision_of("v1", [one.url]),)),
            teams=(limited,),
            tokens=(token_for("tf_red", "red"), token_for("tf_small", "small")),
        )
    )
    red = {"Authorization": "Bearer tf_red"}

    def refused(status: int, code: str, body: object, headers: dict[str, str]) -> dict[str, str]:
        got, back, text = front.post(CHAT, body, headers)
        assert (got, json.loads(text)["error"]["code"]) == (status, code)
        return back

    assert refused(401, "no_api_key", chat(), {})["WWW-Authenticate"] == "Bearer"
    refused(401, "invalid_api_key", chat(), {"Authorization": "Bearer other"})
    refused(404, "model_not_found", chat(model="nothing"), red)
    refused(404, "model_not_found", chat(model="secret"), red)
    refused(404, "model_not_found", chat(), {**red, "X-Tenfold-Service": "secret"})
    refused(400, "no_model", {"messages": []}, red)
    refused(400, "invalid_body", b"{", red)
    refused(400, "invalid_body", {"model": 7}, red)
    small = {"Authorization": "Bearer tf_small"}
    assert front.post(CHAT, chat(), small)[0] == 200
    assert 1 <= int(refused(429, "rate_limit_exceeded", chat(), small)["Retry-After"]) <= 60
    # The replica's own refusals are the client's.
    assert front.post(CHAT, chat(max_tokens=-1), red)[0] == 400
    assert one.stats()["seen"][-1]["credentials"] == []
    models = json.loads(front.send("GET", "/v1/models", None, red)[2])["data"]
    assert [each["id"] for each in models] == ["stub"]


def test_a_changed_file_is_used_and_a_broken_one_is_not(replica: Start, gateway: Run):
    one, two = replica("--name", "one"), replica("--name", "two")
    front = gateway(state_of(chat_service([one.url]), version=1))
    front.write(state_of(chat_service([two.url]), version=2))
    until(lambda: front.traffic().routing_version == 2)
    assert front.post(CHAT, chat())[1]["X-Replica"] == "two"
    front.routing.write_text("services: 7\n")
    until(lambda: "routing file not used" in front.log())
    assert front.post(CHAT, chat())[1]["X-Replica"] == "two"


def test_the_admin_address_serves_metrics_and_knows_no_clients(replica: Start, gateway: Run):
    front = gateway(state_of(chat_service([replica().url])))
    front.post(CHAT, chat())
    text = front.get("/metrics").decode()
    assert 'tenfold_gateway_requests_total{service="chat"} 1.0' in text
    assert (
        'tenfold_gateway_time_to_first_byte_seconds_count{revision="v1",service="chat"} 1.0' in text
    )
    assert front.get("/v1/models") == b'{"error":"no such path"}'
    assert front.send("GET", "/metrics", None, {})[0] == 404
    assert front.send("GET", "/gateway/load", None, {})[0] == 404
