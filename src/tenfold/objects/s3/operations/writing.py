"""PutObject: a body becomes a blob, and the blob becomes a version."""

from msgspec import structs

from tenfold.objects.catalog.records import Bucket, ObjectRecord, Part
from tenfold.objects.catalog.versions import (
    Condition,
    check_condition,
    find_version,
    put_version,
)
from tenfold.objects.s3.access import WRITE, acl_of_headers, require_bucket
from tenfold.objects.s3.call import Call
from tenfold.objects.s3.checksums import FULL_OBJECT
from tenfold.objects.s3.errors import S3Error
from tenfold.objects.s3.headers import (
    checksum_headers,
    lock_of,
    metadata_of,
    new_version,
    refuse_unsupported,
    storage_class_of,
    stored_headers,
    tags_of_header,
)
from tenfold.objects.s3.http.answer import Answer
from tenfold.objects.s3.http.body import Readable
from tenfold.objects.s3.ingest import Expected, describe, expected_of, receive
from tenfold.objects.s3.uri import check_key


async def put_object(call: Call) -> Answer:
    """Store a body under a key."""
    bucket = require_bucket(call, WRITE)
    draft = draft_of(call, bucket)
    condition = condition_of(call)
    # Cheaper now than after the body; decided again in the transaction.
    check_condition(find_version(call.deps.catalog.reader, bucket.id, call.key), condition)
    expected = expected_of(call, call.deps.settings.object_bytes_max)
    check_room(call, bucket, expected.size_bytes or 0)
    record = await store(call, draft, call.payload, expected, condition)
    return written(bucket, record)


async def store(
    call: Call, draft: ObjectRecord, payload: Readable, expected: Expected, condition: Condition
) -> ObjectRecord:
    """Write a body to a blob and make it the current version of its key."""
    blobs = call.deps.blobs
    bucket = call.bucket
    tier = call.deps.settings.tiers[draft.storage_class]
    writer = blobs.create(tier, expected.size_bytes)
    try:
        received = await receive(payload, writer, expected)
    except BaseException:
        await writer.abort()
        raise
    has_checksum = bool(received.algorithm)
    record = structs.replace(
        draft,
        size_bytes=received.size_bytes,
        etag=received.md5,
        modified_ms=call.deps.now_ms(),
        checksums={received.algorithm: received.checksum} if has_checksum else {},
        checksum_type=FULL_OBJECT if has_checksum else "",
    )
    ref = await writer.commit(describe(bucket, record))
    part = Part(0, received.size_bytes, received.md5, ref)
    record = structs.replace(record, parts=(part,))
    try:
        await call.deps.catalog.write(
            lambda c: put_version(c, bucket.id, record, condition, call.quota())
        )
    except Exception:
        await blobs.delete(ref)
        raise
    return record


def draft_of(call: Call, bucket: Bucket) -> ObjectRecord:
    """Return a version as the headers of a request describe it, without its content."""
    check_key(call.key)
    refuse_unsupported(call)
    headers = call.headers
    owner = call.caller.team or bucket.team
    return ObjectRecord(
        key=call.key,
        version=new_version(call, bucket),
        storage_class=storage_class_of(call),
        owner=owner,
        headers=stored_headers(headers),
        metadata=metadata_of(headers),
        tags=tags_of_header(headers["x-amz-tagging"]) if "x-amz-tagging" in headers else {},
        acl=acl_of_headers(call, owner, bucket.team),
        lock=lock_of(call, bucket),
    )


def condition_of(call: Call) -> Condition:
    """Return what a conditional write wants of the current version."""
    condition = Condition(call.headers.get("if-match", ""), call.headers.get("if-none-match", ""))
    if condition.if_none_match not in ("", "*") and not condition.if_none_match.strip('"'):
        raise S3Error("InvalidArgument", "If-None-Match must be * or an entity tag.")
    return condition


def check_room(call: Call, bucket: Bucket, size_bytes: int) -> None:
    """Refuse a body that cannot fit into the quota, before it is sent."""
    limit = bucket.settings.quota_bytes
    if limit and bucket.stored_bytes + size_bytes > limit:
        raise S3Error("QuotaExceeded", f"The bucket may hold {limit} bytes.")
    quota = call.quota()
    if quota.stored_bytes and size_bytes > quota.stored_bytes:
        raise S3Error("QuotaExceeded", f"The team may store {quota.stored_bytes} bytes.")


def written(bucket: Bucket, record: ObjectRecord) -> Answer:
    """Return the answer to a write."""
    headers = {"etag": f'"{record.etag}"', **checksum_headers(record)}
    if bucket.is_versioned:
        headers["x-amz-version-id"] = record.version
    return Answer(200, headers)
