"""Tokens: shown once, kept as a digest, expiring, revocable, and never written down."""

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from tenfold.journal.store import open_store
from tenfold.server.auth.tokens import CACHED_MS, Role, Tokens
from tenfold.server.runtime.logs import JsonLines, log_to
from tenfold.server.runtime.runtime import Runtime

Client = TestClient[Litestar]
DAY_MS = 86_400_000


class Time:
    def __init__(self) -> None:
        self.ms = 1_800_000_000_000

    def now(self) -> int:
        return self.ms


def test_a_token_is_made_used_listed_and_ended_over_http(client: Client, token: Callable[..., str]):
    admin = {"Authorization": f"Bearer {token('admin', 'ops')}"}
    ask = {"name": "ci", "team": "red", "role": "viewer", "days": 2}
    made = client.post("/api/v1/tokens", json=ask, headers=admin)
    assert made.status_code == 201
    secret, record = made.json()["token"], made.json()["record"]
    assert secret.startswith("tf_")
    assert len(secret) == 3 + 43
    theirs = {"Authorization": f"Bearer {secret}"}
    assert client.get("/api/v1/whoami", headers=theirs).json()["id"] == record["id"]
    listed = client.get("/api/v1/tokens", headers=admin)
    assert secret not in listed.text
    assert [one["name"] for one in listed.json()["tokens"]] == ["admin-of-ops", "ci"]
    ended = client.delete(f"/api/v1/tokens/{record['id']}", headers=admin)
    assert ended.json()["revoked_at"]
    refused = client.get("/api/v1/whoami", headers=theirs)
    assert (refused.status_code, refused.json()["code"]) == (401, "token-revoked")
    assert client.delete("/api/v1/tokens/none", headers=admin).status_code == 404


def test_what_a_token_is_to_be_is_checked(client: Client, token: Callable[..., str]):
    admin = {"Authorization": f"Bearer {token('admin', 'ops')}"}
    for ask, field in (
        ({"team": "red"}, "name"),
        ({"name": "a", "team": "red", "role": "king"}, "role"),
        ({"name": "a", "team": "../red"}, "team"),
        ({"name": "a", "team": "red", "days": 0}, "days"),
        ({"name": "a", "team": "red", "digest": "x"}, "digest"),
    ):
        answer = client.post("/api/v1/tokens", json=ask, headers=admin)
        assert (answer.status_code, answer.json()["field"]) == (422, field)


def test_a_token_that_another_process_revoked_is_gone_within_seconds(tmp_path: Path):
    time = Time()
    here = Tokens(open_store(tmp_path / "journal.db"), time.now)
    there = Tokens(open_store(tmp_path / "journal.db"), time.now)
    secret, token = here.create(name="a", team="red", role=Role.member)
    assert here.find(secret) is not None
    there.revoke(token.id)
    kept = here.cached(secret)
    assert kept is not None
    assert kept.revoked_ms is None
    time.ms += CACHED_MS
    assert here.cached(secret) is None
    found = here.find(secret)
    assert found is not None
    assert found.revoked_ms is not None


def test_the_day_of_last_use_is_noted(tmp_path: Path):
    time = Time()
    tokens = Tokens(open_store(tmp_path / "journal.db"), time.now)
    secret, _ = tokens.create(name="a", team="red", role=Role.member)
    tokens.find(secret)
    time.ms += DAY_MS
    tokens.find(secret)
    (token,) = tokens.all()
    assert token.last_used == time.ms // DAY_MS


def test_no_token_stands_in_the_journal_or_the_log(
    client: Client, token: Callable[..., str], runtime: Runtime, tmp_path: Path
):
    log = tmp_path / "server.jsonl"
    handler = log_to(log)
    try:
        secrets = [token(role) for role in ("viewer", "member", "operator", "admin")]
        for secret in secrets:
            header = {"Authorization": f"Bearer {secret}"}
            client.post("/api/v1/jobs", json={"command": ["true"]}, headers=header)
            client.get(f"/api/v1/jobs/{secret}?team={secret}", headers=header)
            client.get(f"/api/v1/nothing/{secret}", headers=header)
            client.get("/api/v1/whoami", headers={"Authorization": f"Bearer {secret}x"})
            logging.getLogger("tenfold.server").error("it was %s", secret)
    finally:
        handler.close()
        for name in ("tenfold", "uvicorn", "litestar"):
            logging.getLogger(name).handlers = []
            logging.getLogger(name).propagate = True
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name for path in written} >= {"journal.db", "server.jsonl"}
    for path in written:
        content = path.read_bytes()
        assert not [one for one in secrets if one.encode() in content], path
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert any(line.get("path") == "/api/v1/jobs" for line in lines)
    assert all(line["at"].endswith("Z") and line["level"] for line in lines)
    assert log.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("where", ["message", "argument", "trace", "field"])
def test_whatever_looks_like_a_token_is_struck_out(where: str):
    secret = "tf_" + "A1-_" * 10
    record = logging.LogRecord("x", logging.ERROR, "", 0, "plain", (), None)
    if where == "message":
        record.msg = f"it was {secret}"
    elif where == "argument":
        record.msg, record.args = "it was %s", (secret,)
    elif where == "field":
        record.fields = {"asked": secret}
    else:
        error = ValueError(secret)
        record.exc_info = (ValueError, error, None)
    line = JsonLines().format(record)
    assert secret not in line
    assert "tf_***" in line
    assert json.loads(line)["level"] == "error"
