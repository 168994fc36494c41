"""Access keys from the command line: created, listed without secrets, revoked; and usage."""

import json
from pathlib import Path

import pytest

from tenfold.cli.main import main
from tenfold.objects.catalog.buckets import create_bucket
from tenfold.objects.catalog.catalog import Catalog
from tenfold.objects.catalog.records import Bucket, BucketSettings
from tenfold.objects.serve.keys import KeyRing


def run(*words: str) -> int:
    return main(["objects", *words])


def test_a_key_is_created_listed_and_revoked(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    where = ("--dir", str(tmp_path))
    assert run("key", "create", "alice", "--team", "vision", *where, "--json") == 0
    made = json.loads(capsys.readouterr().out)
    path = tmp_path / "access-keys.json"
    assert path.stat().st_mode & 0o777 == 0o600
    ring = KeyRing(path)
    key = ring.key(made["access_key_id"])
    assert key is not None
    assert (key.secret, key.team) == (made["secret_access_key"], "vision")
    assert run("key", "list", *where) == 0
    listed = capsys.readouterr().out
    assert made["access_key_id"] in listed
    assert made["secret_access_key"] not in listed
    assert run("key", "revoke", made["access_key_id"], *where) == 0
    ring.refresh()
    assert ring.key(made["access_key_id"]) is None
    assert run("key", "revoke", "NONE", *where) == 1
    assert "there is no access key `NONE`" in capsys.readouterr().err


def test_a_quota_is_set_for_a_team(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    where = ("--dir", str(tmp_path))
    assert run("key", "quota", "vision", *where) == 2
    run("key", "create", "alice", "--team", "vision", *where)
    # Zero would read as no limit at all.
    for option in ("--stored-gb", "--objects"):
        assert run("key", "quota", "vision", option, "0", *where) == 2
    assert run("key", "quota", "vision", "--stored-gb", "2", "--objects", "5", *where) == 0
    team = KeyRing(tmp_path / "access-keys.json").team("vision")
    assert team is not None
    assert (team.quota_bytes, team.quota_objects) == (2_000_000_000, 5)
    capsys.readouterr()


def test_keys_that_others_can_read_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run("key", "create", "alice", "--team", "vision", "--dir", str(tmp_path))
    (tmp_path / "access-keys.json").chmod(0o644)
    capsys.readouterr()
    assert run("key", "list", "--dir", str(tmp_path)) == 2
    assert "hint: protect them: chmod 600" in capsys.readouterr().err


def test_a_server_needs_keys_and_the_network_needs_tls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert run("serve", "--dir", str(tmp_path)) == 2
    assert "there are no access keys" in capsys.readouterr().err
    assert run("serve", "--dir", str(tmp_path), "--host", "0.0.0.0") == 3
    assert "without TLS" in capsys.readouterr().err


def test_usage_is_shown_by_bucket_and_team(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run("du", "--dir", str(tmp_path)) == 2
    capsys.readouterr()
    catalog = Catalog(tmp_path / "catalog.db")
    wanted = Bucket(
        id=0, name="data", team="vision", created_ms=1, versioning="", settings=BucketSettings()
    )
    create_bucket(catalog.reader, wanted, 10)
    catalog.close()
    assert run("du", "--dir", str(tmp_path), "--json") == 0
    assert json.loads(capsys.readouterr().out) == [
        {"bucket": "data", "team": "vision", "versions": 0, "stored_bytes": 0}
    ]
