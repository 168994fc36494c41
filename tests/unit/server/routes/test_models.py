"""The model registry over HTTP: who may do what, and names that are not names."""

from collections.abc import Callable
from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import TestClient

Client = TestClient[Litestar]
BODY = {
    "artefact": {"location": "/models/chat", "kind": "folder", "digest": "0" * 64, "files": 2},
    "variants": [
        {
            "name": "int8",
            "artefact": {"location": "/models/chat8", "kind": "folder", "digest": "1" * 64},
        }
    ],
    "lineage": {"dataset": "d", "code": "abc1", "has_local_changes": True},
    "metrics": {"loss": 1.5},
    "note": "first",
}


def register(client: Client, model: str = "chat", status: int = 201, **more: Any) -> dict[str, Any]:
    answer = client.post(f"/api/v1/models/{model}/versions", json={**BODY, **more})
    assert answer.status_code == status, answer.text
    return answer.json()


def post(client: Client, path: str, status: int = 200, **body: Any) -> dict[str, Any]:
    answer = client.post(f"/api/v1/models/{path}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def get(client: Client, path: str, status: int = 200) -> dict[str, Any]:
    answer = client.get(f"/api/v1/models{path}")
    assert answer.status_code == status, answer.text
    return answer.json()


def as_role(client: Client, token: Callable[..., str], role: str, team: str = "red") -> Client:
    client.headers["Authorization"] = f"Bearer {token(role, team)}"
    return client


def test_a_version_is_shown_as_it_was_registered(member: Client):
    assert register(member) == {"team": "red", "model": "chat", "version": 1, "changed": True}
    shown = get(member, "/chat/versions/1")
    assert shown["artefact"] == {**BODY["artefact"]}
    assert [one["name"] for one in shown["variants"]] == ["int8"]
    assert shown["lineage"] == {"dataset": "d", "code": "abc1", "has_local_changes": True}
    assert (shown["metrics"], shown["note"]) == ({"loss": 1.5}, "first")
    assert (shown["stage"], shown["registered_by"]) == ("development", "member-of-red")
    assert register(member)["changed"] is False


def test_aliases_and_stages_move_and_the_history_says_who_moved_them(member: Client):
    register(member)
    register(member, note="second")
    post(member, "chat/aliases", alias="prod", version="1")
    post(member, "chat/aliases", alias="canary", version="latest")
    post(member, "chat/aliases", alias="prod", version="canary")
    post(member, "chat/stages", version="prod", stage="production")
    assert get(member, "/chat/versions/prod")["version"] == 2
    shown = get(member, "/chat")
    assert shown["aliases"] == {"canary": 2, "prod": 2}
    assert [(one["kind"], one["what"], one["before"]) for one in shown["changes"][:2]] == [
        ("stage", "production", "development"),
        ("alias", "prod", "1"),
    ]
    assert {one["by"] for one in shown["changes"]} == {"member-of-red"}
    assert post(member, "chat/aliases", alias="canary")["version"] == 0
    assert get(member, "/chat")["aliases"] == {"prod": 2}


def test_a_removed_version_is_shown_and_cannot_be_used(member: Client):
    register(member)
    post(member, "chat/aliases", alias="prod", version="1")
    assert member.delete("/api/v1/models/chat/versions/1").json()["code"] == "version-has-alias"
    post(member, "chat/aliases", alias="prod")
    assert member.delete("/api/v1/models/chat/versions/1").status_code == 200
    assert get(member, "/chat")["versions"][0]["removed_at"] is not None
    for version in ("1", "latest"):
        assert get(member, f"/chat/versions/{version}", 404)["code"] == "no-such-version"
    assert get(member, "")["models"][0]["latest"] is None


def test_models_of_other_teams_do_not_exist(client: Client, token: Callable[..., str]):
    register(as_role(client, token, "member", "blue"))
    as_role(client, token, "member", "red")
    assert get(client, "") == {"models": []}
    assert get(client, "?team=blue") == {"models": []}
    for path in ("/chat", "/chat?team=blue", "/chat/versions/1"):
        assert get(client, path, 404)["code"] == "no-such-model"
    assert post(client, "chat/aliases", 404, alias="prod", version="1")["code"] == "no-such-model"
    assert post(client, "chat/stages", 404, version="1", stage="staging", team="blue")
    assert client.delete("/api/v1/models/chat/versions/1?team=blue").status_code == 404
    assert register(client, status=403, team="blue")["code"] == "other-team"
    assert register(client)["version"] == 1
    as_role(client, token, "operator", "ops")
    assert [one["team"] for one in get(client, "")["models"]] == ["blue", "red"]
    assert get(client, "/chat", 422)["code"] == "several-models"
    assert get(client, "/chat?team=red")["team"] == "red"
    assert register(client, "own", team="red")["team"] == "red"
    assert get(client, "/own")["team"] == "red"


def test_a_viewer_sees_and_changes_nothing(client: Client, token: Callable[..., str]):
    register(as_role(client, token, "member"))
    as_role(client, token, "viewer")
    assert get(client, "/chat/versions/latest")["version"] == 1
    assert register(client, status=403)["code"] == "role-too-low"
    assert post(client, "chat/aliases", 403, alias="a", version="1")["code"] == "role-too-low"
    assert post(client, "chat/stages", 403, version="1", stage="staging")
    assert client.delete("/api/v1/models/chat/versions/1").status_code == 403


def test_the_job_of_a_version_must_be_one_of_the_team(client: Client, token: Callable[..., str]):
    as_role(client, token, "member", "blue")
    made = client.post("/api/v1/jobs", json={"command": ["true"], "name": "of-blue"}).json()["id"]
    assert register(client, lineage={"job": made})["version"] == 1
    as_role(client, token, "member", "red")
    for job in (made, "job-99"):
        assert register(client, status=422, lineage={"job": job})["code"] == "no-such-job"


@pytest.mark.parametrize(
    "name", ["a b", "..", "-x", "a@1", "a:b", "%00", "a%0Ab", "x" * 81, "%F0%9F%92%A3"]
)
def test_what_is_not_a_name_is_refused(member: Client, name: str):
    answer = member.post(f"/api/v1/models/{name}/versions", json=BODY)
    assert answer.status_code in (404, 405, 422), answer.text
    assert get(member, f"/{name}/versions/1", 404)
    assert get(member, "") == {"models": []}


@pytest.mark.parametrize("alias", ["1", "latest", "", "a b", "a/b", "a@b", "\u202e", "x" * 81])
def test_what_is_not_an_alias_is_refused(member: Client, alias: str):
    register(member)
    assert post(member, "chat/aliases", 422, alias=alias, version="1")
    assert get(member, "/chat")["aliases"] == {}


@pytest.mark.parametrize(
    "artefact",
    [
        {"location": "relative/path"},
        {"location": "/a\nb"},
        {"location": "/\x1b[2J"},
        {"digest": "0" * 63},
        {"digest": "Z" * 64},
        {"kind": "socket"},
        {"size_bytes": -1},
        {"extra": 1},
    ],
)
def test_what_is_not_an_artefact_is_refused(member: Client, artefact: dict[str, Any]):
    wrong = {**BODY["artefact"], **artefact}
    assert register(member, status=422, artefact=wrong)["errors"]
    variant = {"name": "v", "artefact": wrong}
    assert register(member, status=422, variants=[variant])["errors"]


def test_other_fields_are_checked(member: Client):
    twice = [BODY["variants"][0]] * 2
    for body in (
        {"variants": twice},
        {"metrics": {"a=b": 1}},
        {"metrics": {"loss": "low"}},
        {"note": "a\nb"},
        {"lineage": {"parent": "chat@prod"}},
        {"lineage": {"parent": "../etc"}},
    ):
        register(member, status=422, **body)
    assert get(member, "") == {"models": []}
