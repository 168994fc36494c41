"""After a run with known secrets every file is read: they stand where they must, no more."""

from pathlib import Path

import httpx

import tenfold
from patience import HANG_S
from tenfold.client.endpoint import read_address
from unit.up_process import Up

VALUE = "a-secret-in-the-environment-of-a-job"
MAY_HOLD_VALUES = ("journal.db", "journal.db-wal", "run/")
"""What a job is given must be kept to give it again: in the journal, and with its attempt."""


def holding(home: Path, secret: str) -> list[str]:
    """Return the files in which a secret stands."""
    return [
        str(path.relative_to(home))
        for path in home.rglob("*")
        if path.is_file() and not path.is_symlink() and secret.encode() in path.read_bytes()
    ]


def test_secrets_stand_where_they_must_and_nowhere_else(up: Up):
    said = up.start("--virtual-nodes", "2")
    (admin,) = [line.split()[-1] for line in said if line.startswith("admin token")]
    at = read_address(up.home)
    assert at is not None
    with httpx.Client(base_url=at.url, timeout=HANG_S) as client:
        client.headers["Authorization"] = f"Bearer {admin}"
        ask = {"name": "ann", "team": "red", "role": "member"}
        member = client.post("/api/v1/tokens", json=ask).json()["token"]
        red = {"Authorization": f"Bearer {member}"}
        # In places where a careless program would log it.
        client.get("/api/v1/jobs", params={"team": member}, headers=red)
        client.get(f"/api/v1/jobs/{member}", headers=red)
        client.get(f"/api/v1/{member}", headers={"Authorization": f"Bearer {member}x"})
        client.post("/api/v1/jobs", content=f'{{"token": "{member}"', headers=red)
    with tenfold.Client(url=at.url, token=member) as own:
        made = own.submit(command=["printenv", "WORD"], env={"WORD": VALUE})
        assert own.wait(made.id, timeout_s=HANG_S).state == "succeeded"
        assert own.logs(made.id).strip() == VALUE
    assert holding(up.home, at.token) == ["address.json"]
    said.append(up.interrupt())
    for token in (admin, member, at.token):
        assert holding(up.home, token) == [], token
    assert "".join(said).count(admin) == 1
    assert member not in "".join(said)
    for name in holding(up.home, VALUE):
        assert name.startswith(MAY_HOLD_VALUES), name
    assert VALUE not in "".join(said)
    log = (up.home / "logs" / "server.jsonl").read_text()
    assert "/api/v1/jobs/tf_***" in log


def test_nobody_else_can_read_what_is_kept(up: Up):
    up.start("--virtual-nodes", "1")
    with tenfold.Client() as client:
        made = client.submit(command=["true"], env={"WORD": VALUE})
        client.wait(made.id, timeout_s=HANG_S)
    up.interrupt()
    assert up.home.stat().st_mode & 0o077 == 0
    for name in holding(up.home, VALUE):
        assert (up.home / name).stat().st_mode & 0o077 == 0, name
