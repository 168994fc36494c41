"""Which registered version a service serves: named by an alias, recorded by its number."""

from typing import Any

from litestar import Litestar
from litestar.testing import TestClient

Client = TestClient[Litestar]
FIRST = {
    "artefact": {"location": "/models/chat-1", "kind": "folder", "digest": "0" * 64, "files": 2},
    "variants": [
        {
            "name": "int8",
            "artefact": {"location": "/models/chat-8", "kind": "folder", "digest": "1" * 64},
        }
    ],
}
SECOND = {"artefact": {"location": "/models/chat-2", "kind": "folder", "digest": "2" * 64}}
SERVICE: dict[str, Any] = {
    "name": "web",
    "command": ["sh", "-c", "serve {model}", "{port}"],
    "env": {"WEIGHTS": "{model}/weights"},
    "nodes": 1,
    "gpus_per_node": 1,
    "model": "chat@prod",
}


def deployed(client: Client, status: int = 200, **changes: Any) -> dict[str, Any]:
    answer = client.post("/api/v1/services", json={**SERVICE, **changes})
    assert answer.status_code == status, answer.text
    return answer.json()


def register(client: Client, body: dict[str, Any], alias: str = "") -> int:
    made = client.post("/api/v1/models/chat/versions", json=body).json()["version"]
    if alias:
        client.post("/api/v1/models/chat/aliases", json={"alias": alias, "version": str(made)})
    return made


def test_an_alias_is_resolved_when_the_service_is_deployed_and_another_version_is_a_revision(
    member: Client,
):
    register(member, FIRST, "prod")
    first = deployed(member)
    (revision,) = first["revisions"]
    assert revision["model"] == "chat@1"
    assert revision["command"] == ["sh", "-c", "serve /models/chat-1", "{port}"]
    assert first["spec"]["model"] == "chat@1"
    assert first["spec"]["command"] == SERVICE["command"]
    # The alias moves: nothing changes until the next deployment, which is a new revision.
    register(member, SECOND, "prod")
    assert member.get("/api/v1/services/web").json()["revisions"] == first["revisions"]
    second = deployed(member)
    assert [one["model"] for one in second["revisions"]] == ["chat@1", "chat@2"]
    assert second["canary"] == "r2"
    assert deployed(member, model="chat@1")["canary"] == ""


def test_a_variant_has_its_own_files(member: Client):
    register(member, FIRST)
    (revision,) = deployed(member, model="chat@1:int8")["revisions"]
    assert revision["model"] == "chat@1:int8"
    assert "serve /models/chat-8" in revision["command"]


def test_what_is_not_there_cannot_be_served(member: Client):
    register(member, FIRST)
    assert deployed(member, 404, model="other@1")["code"] == "no-such-model"
    assert deployed(member, 404, model="chat@9")["code"] == "no-such-version"
    missing = deployed(member, 404, model="chat@1:int4")
    assert missing["code"] == "no-such-version"
    assert missing["hint"] == "it has `int8`"
    member.delete("/api/v1/models/chat/versions/1")
    assert deployed(member, 404, model="chat@1")["code"] == "no-such-version"


def test_a_model_of_another_team_does_not_exist(member: Client, token: Any):
    register(member, FIRST)
    member.headers["Authorization"] = f"Bearer {token('member', 'blue')}"
    assert deployed(member, 404, model="chat@1")["code"] == "no-such-model"


def test_a_reference_that_is_none_and_a_placeholder_without_a_model_are_faults(member: Client):
    bad = deployed(member, 422, model="chat@@1")
    assert (bad["code"], bad["field"]) == ("bad-model-reference", "model")
    missing = deployed(member, 422, model="")
    assert missing["detail"].endswith("`{model}` is used, but `model` is missing")
