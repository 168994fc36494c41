"""Buckets: create, list, locate, delete, and versioning."""

from tenfold.objects.catalog.buckets import (
    create_bucket,
    delete_bucket,
    list_buckets,
    set_versioning,
)
from tenfold.objects.catalog.records import Bucket, BucketSettings
from tenfold.objects.catalog.versions import DELETE_GRACE_MS
from tenfold.objects.s3.access import READ, acl_of_headers, require_bucket, require_owner
from tenfold.objects.s3.call import Call
from tenfold.objects.s3.errors import S3Error
from tenfold.objects.s3.http.answer import Answer
from tenfold.objects.s3.times import iso
from tenfold.objects.s3.uri import check_bucket_name
from tenfold.objects.s3.xml import document, maybe, node, read_xml, tag

XML = {"content-type": "application/xml"}
BUCKETS_PAGE_MAX = 10_000


async def list_all(call: Call) -> Answer:
    """List the buckets of the caller's team; anyone else has none."""
    limit = call.number("max-buckets", BUCKETS_PAGE_MAX, BUCKETS_PAGE_MAX)
    after = call.query.get("continuation-token", "")
    prefix = call.query.get("prefix", "")
    found = list_buckets(call.deps.catalog.reader, call.caller.team, prefix, after, limit + 1)
    shown = found[:limit]
    buckets = [
        node("Bucket", tag("Name", one.name), tag("CreationDate", iso(one.created_ms)))
        for one in shown
    ]
    body = document(
        "ListAllMyBucketsResult",
        [
            owner_node(call, call.caller.team),
            node("Buckets", *buckets),
            maybe("ContinuationToken", shown[-1].name if shown and len(found) > limit else ""),
            maybe("Prefix", prefix),
        ],
    )
    return Answer(200, dict(XML), body)


async def create(call: Call) -> Answer:
    """Create a bucket; repeating it does no harm."""
    if call.caller.is_anonymous:
        raise S3Error("AccessDenied")
    check_bucket_name(call.bucket_name)
    await _check_location(call)
    team = call.team(call.caller.team)
    has_lock = call.headers.get("x-amz-bucket-object-lock-enabled", "").lower() == "true"
    acl = acl_of_headers(call, team.name, team.name)
    wanted = Bucket(
        id=0,
        name=call.bucket_name,
        team=team.name,
        created_ms=call.now_ms,
        versioning="Enabled" if has_lock else "",
        settings=BucketSettings(has_lock=has_lock, acl=acl),
    )
    found, is_new = await call.deps.catalog.write(
        lambda c: create_bucket(c, wanted, team.buckets_max)
    )
    if not is_new and found.settings.acl != acl:
        raise S3Error("BucketAlreadyExists", "The bucket exists with another access list.")
    return Answer(200, {"location": f"/{call.bucket_name}"})


async def _check_location(call: Call) -> None:
    data = await call.document()
    if not data:
        return
    location = read_xml(data, "CreateBucketConfiguration").value("LocationConstraint")
    if location not in ("", call.deps.settings.region):
        region = call.deps.settings.region
        raise S3Error("InvalidLocationConstraint", f"The location of this server is {region}.")


async def head(call: Call) -> Answer:
    """Say that a bucket exists."""
    require_bucket(call, READ)
    return Answer(200, {"x-amz-bucket-region": call.deps.settings.region})


async def delete(call: Call) -> Answer:
    """Delete an empty bucket."""
    bucket = require_owner(call)
    due_ms = call.now_ms + DELETE_GRACE_MS
    await call.deps.catalog.write(lambda c: delete_bucket(c, bucket.name, due_ms))
    return Answer(204)


async def get_location(call: Call) -> Answer:
    """Send the region; the first region of S3 has no name here."""
    require_owner(call)
    region = call.deps.settings.region
    text = "" if region == "us-east-1" else region
    return Answer(200, dict(XML), document("LocationConstraint", [text]))


async def get_versioning(call: Call) -> Answer:
    """Send whether the bucket keeps versions."""
    bucket = require_owner(call)
    body = document("VersioningConfiguration", [maybe("Status", bucket.versioning)])
    return Answer(200, dict(XML), body)


async def put_versioning(call: Call) -> Answer:
    """Begin or suspend keeping versions."""
    bucket = require_owner(call)
    root = read_xml(await call.document(), "VersioningConfiguration")
    status = root.value("Status")
    if status not in ("Enabled", "Suspended"):
        raise S3Error("MalformedXML")
    if root.value("MfaDelete") == "Enabled":
        raise S3Error("NotImplemented", "MFA delete is not implemented.")
    await call.deps.catalog.write(lambda c: set_versioning(c, bucket.id, status))
    return Answer(200)


def owner_node(call: Call, team: str, name: str = "Owner") -> str:
    """Return a team as the owner of something."""
    shown = call.team(team)
    return node(name, tag("ID", shown.name), tag("DisplayName", shown.display_name or shown.name))
