"""`tenfold up --objects`: teams of the control plane own access keys; the store is its child."""

import json
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import psutil
import pytest
from botocore.exceptions import BotoCoreError, ClientError

from patience import HANG_S, until
from tenfold.cli.main import main
from tenfold.client.client import Client
from tenfold.client.endpoint import read_address
from tenfold.model.api.objects import NewAccessKey
from tenfold.model.errors import InputError, Refused, TenfoldError
from tests.rigs.objects import s3_client
from unit.up_process import Up, commands_find

OPTIONS = ("--virtual-nodes", "1", "--team-users", "off", "--objects-listen", "127.0.0.1:0")


class Plane:
    """A control plane with an object store."""

    def __init__(self, folder: Path) -> None:
        self.up = Up(folder / "home")
        said = self.up.start(*OPTIONS, "--objects", str(folder / "store"))
        self.said = [line for line in said if line.startswith("objects: ")]
        address = read_address(folder / "home")
        assert address is not None
        self.address = address
        self.admin = Client(address.url, address.token)
        until(lambda: bool(self.admin.object_store().url), explain=lambda: str(said))
        self.url = self.admin.object_store().url

    def client(self, team: str) -> tuple[Client, str]:
        """Return a client of a member of a team, and the id of its token."""
        made = self.admin.create_token(f"{team}-user", team=team)
        return Client(self.address.url, made.token), made.record.id

    def is_serving(self) -> bool:
        return self.admin.object_store().url == self.url

    def s3(self, key: NewAccessKey) -> Any:
        return s3_client(self.url, key.access_key_id, key.secret_access_key)


def code(call: Any, **arguments: Any) -> str:
    """Return the code with which S3 refuses a request; empty if it does not."""
    try:
        call(**arguments)
    except ClientError as error:
        answer: Any = error.response
        return answer["Error"]["Code"]
    except BotoCoreError:
        return "unreachable"
    return ""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Generator[Plane]:
    made = Plane(tmp_path_factory.mktemp("up"))
    yield made
    made.admin.close()
    store = object_store_of(made.up)
    made.up.interrupt()
    _, alive = psutil.wait_procs([store], timeout=HANG_S)
    assert not alive, "it is stopped with the control plane"


def object_store_of(up: Up) -> psutil.Process:
    assert up.process is not None
    [found] = [
        one
        for one in psutil.Process(up.process.pid).children(recursive=True)
        if "serve" in one.cmdline() and "objects" in one.cmdline()
    ]
    return found


def test_keys_belong_to_teams_and_members_reach_only_their_own(plane: Plane):
    assert plane.said == [f"objects: {plane.url}"]
    (vision, _), (speech, _) = plane.client("vision"), plane.client("speech")
    with vision, speech:
        ours, theirs = vision.create_access_key("alice"), speech.create_access_key("bob")
        assert (ours.team, ours.state, ours.expires_at is None) == ("vision", "active", False)
        s3 = plane.s3(ours)
        until(lambda: not code(s3.create_bucket, Bucket="vision-data"))
        s3.put_object(Bucket="vision-data", Key="k", Body=b"data")
        other = plane.s3(theirs)
        until(lambda: code(other.list_buckets) != "InvalidAccessKeyId")
        denied = "AccessDenied"
        assert code(other.get_object, Bucket="vision-data", Key="k") == denied
        assert [one.name for one in speech.access_keys()] == ["bob"]
        with pytest.raises(InputError, match="no access key"):
            speech.revoke_access_key(ours.access_key_id)
        with pytest.raises(Refused, match="team `vision`"):
            speech.create_access_key("mallory", team="vision")
        assert [one.team for one in speech.object_store().teams] == ["speech"]
        stored = {one.team: one for one in plane.admin.object_store().teams}
        assert (stored["vision"].objects, stored["vision"].stored_bytes) == (1, 4)


def test_a_team_stores_no_more_than_an_admin_allows(plane: Plane):
    small, _ = plane.client("small")
    with small:
        s3 = plane.s3(small.create_access_key("carol"))
        with pytest.raises(TenfoldError, match="role"):
            small.set_storage_quota("small", stored_bytes=10**9)
        plane.admin.set_storage_quota("small", stored_bytes=10_000)
        until(lambda: not code(s3.create_bucket, Bucket="small-data"))
        put = {"Bucket": "small-data", "Body": bytes(20_000)}
        until(lambda: code(s3.put_object, Key="k", **put) == "QuotaExceeded")
        assert small.object_store().teams[0].quota_bytes == 10_000


def test_a_key_ends_with_the_token_that_created_it(plane: Plane):
    owner, token = plane.client("brief")
    with owner:
        s3 = plane.s3(owner.create_access_key("dave"))
    until(lambda: not code(s3.list_buckets))
    # What an admin creates for a program does not depend on the admin's token.
    kept = plane.s3(plane.admin.create_access_key("ingest", team="brief"))
    plane.admin.revoke_token(token)
    until(lambda: code(s3.list_buckets) == "InvalidAccessKeyId")
    until(lambda: not code(kept.list_buckets))


def test_an_object_store_that_is_killed_is_started_again(plane: Plane):
    key = plane.admin.create_access_key("erin", team="steady")
    s3 = plane.s3(key)
    until(lambda: not code(s3.create_bucket, Bucket="steady-data"))
    s3.put_object(Bucket="steady-data", Key="k", Body=b"data")
    object_store_of(plane.up).send_signal(signal.SIGKILL)
    where = {"Bucket": "steady-data", "Key": "k"}
    until(lambda: code(s3.head_object, **where) == "unreachable" or not plane.is_serving())
    until(lambda: not code(s3.head_object, **where))
    assert s3.get_object(**where)["Body"].read() == b"data"


def test_commands_show_the_store_and_manage_its_keys(
    plane: Plane, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    commands_find(plane.up, monkeypatch)
    until(plane.is_serving)
    capsys.readouterr()
    assert main(["status"]) == 0
    assert f"objects: {plane.url}" in capsys.readouterr().out
    assert main(["objects", "key", "create", "frank", "--team", "ops", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert main(["objects", "key", "list"]) == 0
    listed = capsys.readouterr().out
    assert made["access_key_id"] in listed
    assert made["secret_access_key"] not in listed
    assert main(["objects", "key", "quota", "ops", "--objects", "5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["quota_objects"] == 5
    assert main(["objects", "key", "revoke", made["access_key_id"], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "revoked"
    assert main(["objects", "key", "revoke", "NONE"]) == 2
    capsys.readouterr()
