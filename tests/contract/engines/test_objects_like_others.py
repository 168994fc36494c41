"""One script of operations on our server, and on a real Ceph and SeaweedFS: the same answers.

Where an answer differs, the difference is listed here with both.
"""

from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from tests.rigs.object_stores.radosgw import running_radosgw
from tests.rigs.object_stores.running import ObjectStore
from tests.rigs.object_stores.seaweedfs import running_seaweedfs
from tests.rigs.objects import object_server
from tests.rigs.s3_script import outcomes

pytestmark = pytest.mark.engine
FAILED = (412, "PreconditionFailed")
CEPH_DIFFERS: dict[str, tuple[object, object]] = {
    # It refuses the entity tag that it sent itself.
    "replace": (200, FAILED),
    "get if match": (FAILED, 200),
    # It answers the completion without an entity tag.
    "complete": ('"217bcdbfd94559bd33931bf9e67899f6-2"', ""),
}
"""Step -> (ours, radosgw 16.2)."""
SEAWEED_DIFFERS: dict[str, tuple[object, object]] = {
    # It deletes the bucket with all that it holds.
    "not empty": ((409, "BucketNotEmpty"), 204),
}
"""Step -> (ours, SeaweedFS)."""


def client_of(store: ObjectStore) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=store.endpoint,
        aws_access_key_id=store.access_key,
        aws_secret_access_key=store.secret_key,
        region_name="us-east-1",
        config=Config(retries={"max_attempts": 1}, s3={"addressing_style": "path"}),
    )


def test_our_server_answers_as_a_real_ceph_does(tmp_path: Path):
    with running_radosgw() as ceph, object_server(tmp_path) as server:
        assert differing(server.s3(), client_of(ceph)) == CEPH_DIFFERS


def test_our_server_answers_as_a_real_seaweedfs_does(tmp_path: Path):
    with running_seaweedfs() as weed, object_server(tmp_path) as server:
        assert differing(server.s3(), client_of(weed)) == SEAWEED_DIFFERS


def differing(ours: Any, theirs: Any) -> dict[str, tuple[object, object]]:
    """Return the steps that two servers answered differently, with both answers."""
    mine, other = outcomes(ours, "script"), outcomes(theirs, "script")
    assert len(mine) > 50
    return {
        name: (answer, other.get(name))
        for name, answer in mine.items()
        if answer != other.get(name)
    }
