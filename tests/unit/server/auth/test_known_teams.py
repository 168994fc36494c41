"""A team that nothing else names gets a note, for a token that may submit for any team."""

from collections.abc import Callable

from litestar import Litestar
from litestar.testing import TestClient

Client = TestClient[Litestar]
JOBS = "/api/v1/jobs"


def notes_on(client: Client, secret: str, team: str, path: str = JOBS) -> list[str]:
    headers = {"Authorization": f"Bearer {secret}"}
    answer = client.post(path, json={"command": ["true"], "team": team}, headers=headers)
    assert answer.status_code in (200, 201)
    return answer.json().get("notes", [])


def test_a_team_that_nothing_names_is_noted_once_with_a_team_of_a_similar_name(
    client: Client, token: Callable[..., str]
):
    admin = token("admin", team="red")
    token("member", team="vision")
    said = ["no other job, token or quota names team `vison`; did you mean `vision`?"]
    dry_run = "/api/v1/jobs/dry-run"
    assert notes_on(client, admin, "vison", dry_run) == said
    assert notes_on(client, admin, "vison") == said
    assert notes_on(client, admin, "vison") == []
    assert notes_on(client, admin, "vision") == []
    assert notes_on(client, admin, "red") == []
    (far,) = notes_on(client, admin, "zzz")
    assert far == "no other job, token or quota names team `zzz`"
    near = "no other job, token or quota names team `zzzz`; did you mean `zzz`?"
    assert notes_on(client, admin, "zzzz") == [near]
