"""Versions of keys: find, put, delete and change them, each as one transaction."""

import sqlite3
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import Struct

from tenfold.objects.blobs.refs import BlobRef
from tenfold.objects.catalog.buckets import add_usage, bucket_by_id, team_usage
from tenfold.objects.catalog.records import (
    NULL_VERSION,
    Bucket,
    ObjectRecord,
    Refusal,
    blobs_of,
    decode_record,
    encode,
)

DELETE_GRACE_MS = 60_000
"""How long the blobs of a deleted version stay, for readers that have found them."""


class Condition(Struct, frozen=True):
    """What must hold of the current version, or nothing is written."""

    if_match: str = ""
    if_none_match: str = ""
    size_bytes: int = -1
    modified_ms: int = -1


class Quota(Struct, frozen=True):
    """What a team may store; 0 is no limit."""

    stored_bytes: int = 0
    versions: int = 0


class Deletion(Struct, frozen=True, kw_only=True):
    """A wish to delete a key, or one version of it."""

    key: str
    version: str = ""
    marker: ObjectRecord | None = None
    """What is left behind where the bucket is versioned."""
    bypass_governance: bool = False
    condition: Condition = Condition()


class Deleted(Struct, frozen=True, kw_only=True):
    """What a deletion did."""

    version: str = ""
    is_marker: bool = False
    made_marker: bool = False


def find_version(
    connection: sqlite3.Connection, bucket: int, key: str, version: str = ""
) -> ObjectRecord | None:
    """Return the current version of a key, or a named one; it may be a delete marker."""
    if version:
        row = connection.execute(
            "SELECT record FROM versions WHERE bucket = ? AND key = ? AND version = ?",
            (bucket, key, version),
        ).fetchone()
    else:
        row = connection.execute(
            "SELECT record FROM versions WHERE bucket = ? AND key = ? ORDER BY seq DESC LIMIT 1",
            (bucket, key),
        ).fetchone()
    return None if row is None else decode_record(row[0])


def put_version(
    connection: sqlite3.Connection,
    bucket: int,
    record: ObjectRecord,
    condition: Condition,
    quota: Quota,
) -> None:
    """Make a version the current one; a null version that exists is replaced."""
    owner = bucket_by_id(connection, bucket)
    _check_version(owner, record)
    check_condition(find_version(connection, bucket, record.key), condition)
    if record.version == NULL_VERSION:
        _remove(connection, bucket, record.key, NULL_VERSION, record.modified_ms)
    _insert(connection, bucket, record)
    _check_quota(connection, owner, quota)


def delete_version(
    connection: sqlite3.Connection, bucket: int, deletion: Deletion, now_ms: int
) -> Deleted:
    """Delete one version for good, or put a marker in front of all."""
    owner = bucket_by_id(connection, bucket)
    if deletion.condition != Condition():
        found = find_version(connection, bucket, deletion.key, deletion.version)
        check_delete_condition(found, deletion.condition)
    if deletion.version:
        return _delete_named(connection, bucket, deletion, now_ms)
    if not owner.is_versioned:
        _remove(connection, bucket, deletion.key, NULL_VERSION, now_ms)
        return Deleted()
    marker = deletion.marker
    assert marker is not None, "a delete in a versioned bucket brings its marker"
    _check_version(owner, marker)
    if marker.version == NULL_VERSION:
        _remove(connection, bucket, deletion.key, NULL_VERSION, now_ms)
    _insert(connection, bucket, marker)
    return Deleted(version=marker.version, is_marker=True, made_marker=True)


def change_version(
    connection: sqlite3.Connection,
    bucket: int,
    key: str,
    version: str,
    change: Callable[[ObjectRecord], ObjectRecord],
) -> ObjectRecord:
    """Replace what is stored about a version by a function of what it is now."""
    found = find_version(connection, bucket, key, version)
    if found is None:
        raise Refusal("NoSuchVersion" if version else "NoSuchKey")
    if found.is_marker:
        raise Refusal("MethodNotAllowed")
    record = change(found)
    connection.execute(
        "UPDATE versions SET record = ?, storage_class = ?"
        " WHERE bucket = ? AND key = ? AND version = ?",
        (encode(record), record.storage_class, bucket, key, record.version),
    )
    return record


def check_condition(current: ObjectRecord | None, condition: Condition) -> None:
    """Refuse a write whose condition on the current version does not hold."""
    exists = current is not None and not current.is_marker
    if condition.if_match:
        if not exists or current is None:
            raise Refusal("NoSuchKey")
        if not matches_etag(condition.if_match, current.etag):
            raise Refusal("PreconditionFailed")
    wanted = condition.if_none_match
    if wanted and exists and current is not None and matches_etag(wanted, current.etag):
        raise Refusal("PreconditionFailed")


def check_delete_condition(found: ObjectRecord | None, condition: Condition) -> None:
    """Refuse a delete whose condition does not hold; what is gone is deleted already."""
    if found is None or found.is_marker:
        if condition.if_match and condition.if_match != "*":
            raise Refusal("NoSuchKey")
        return
    if condition.if_match and not matches_etag(condition.if_match, found.etag):
        raise Refusal("PreconditionFailed")
    if condition.size_bytes >= 0 and condition.size_bytes != found.size_bytes:
        raise Refusal("PreconditionFailed")
    if condition.modified_ms >= 0 and condition.modified_ms // 1000 != found.modified_ms // 1000:
        raise Refusal("PreconditionFailed")


def matches_etag(wanted: str, etag: str) -> bool:
    """Return whether a list of entity tags, or `*`, names this one."""
    return any(
        one == "*" or one.removeprefix("W/").strip('"') == etag
        for one in (part.strip() for part in wanted.split(","))
    )


def bury(connection: sqlite3.Connection, refs: Iterable[BlobRef], due_ms: int) -> None:
    """Put blobs into the queue of delayed deletes."""
    connection.executemany(
        "INSERT INTO dead_blobs(due_ms, ref) VALUES (?, ?)",
        [(due_ms, encode(ref)) for ref in refs],
    )


def _delete_named(
    connection: sqlite3.Connection, bucket: int, deletion: Deletion, now_ms: int
) -> Deleted:
    found = find_version(connection, bucket, deletion.key, deletion.version)
    if found is None:
        return Deleted(version=deletion.version)
    lock = found.lock
    is_held = lock.mode and lock.until_ms > now_ms
    is_bypassed = lock.mode == "GOVERNANCE" and deletion.bypass_governance
    if lock.has_legal_hold or (is_held and not is_bypassed):
        raise Refusal("AccessDenied", "the version is protected by object lock")
    _remove(connection, bucket, deletion.key, deletion.version, now_ms)
    connection.execute(
        "UPDATE versions SET is_current = 1 WHERE seq ="
        " (SELECT seq FROM versions WHERE bucket = ? AND key = ? ORDER BY seq DESC LIMIT 1)",
        (bucket, deletion.key),
    )
    return Deleted(version=found.version, is_marker=found.is_marker)


def _remove(
    connection: sqlite3.Connection, bucket: int, key: str, version: str, now_ms: int
) -> None:
    row = connection.execute(
        "SELECT seq, record FROM versions WHERE bucket = ? AND key = ? AND version = ?",
        (bucket, key, version),
    ).fetchone()
    if row is None:
        return
    record = decode_record(row[1])
    connection.execute("DELETE FROM versions WHERE seq = ?", (row[0],))
    add_usage(connection, bucket, -record.size_bytes, -1)
    bury(connection, blobs_of(record), now_ms + DELETE_GRACE_MS)


def _insert(connection: sqlite3.Connection, bucket: int, record: ObjectRecord) -> None:
    connection.execute(
        "UPDATE versions SET is_current = 0 WHERE bucket = ? AND key = ? AND is_current = 1",
        (bucket, record.key),
    )
    connection.execute(
        "INSERT INTO versions(bucket, key, version, is_current, is_marker, size_bytes, etag,"
        " modified_ms, storage_class, record) VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?, ?)",
        _row(bucket, record),
    )
    add_usage(connection, bucket, record.size_bytes, 1)


def _row(bucket: int, record: ObjectRecord) -> tuple[Any, ...]:
    return (
        bucket,
        record.key,
        record.version,
        int(record.is_marker),
        record.size_bytes,
        record.etag,
        record.modified_ms,
        record.storage_class,
        encode(record),
    )


def _check_version(bucket: Bucket, record: ObjectRecord) -> None:
    """Refuse a version that was named before versioning of the bucket changed."""
    if (bucket.versioning == "Enabled") != (record.version != NULL_VERSION):
        raise Refusal("OperationAborted", "versioning of the bucket changed meanwhile")


def _check_quota(connection: sqlite3.Connection, bucket: Bucket, quota: Quota) -> None:
    limit = bucket.settings.quota_bytes
    if limit and bucket_by_id(connection, bucket.id).stored_bytes > limit:
        raise Refusal("QuotaExceeded", f"bucket `{bucket.name}` may hold {limit} bytes")
    if quota == Quota():
        return
    stored_bytes, versions = team_usage(connection, bucket.team)
    if quota.stored_bytes and stored_bytes > quota.stored_bytes:
        raise Refusal("QuotaExceeded", f"the team may store {quota.stored_bytes} bytes")
    if quota.versions and versions > quota.versions:
        raise Refusal("QuotaExceeded", f"the team may store {quota.versions} objects")


def with_ref(record: ObjectRecord, old: BlobRef, new: BlobRef) -> ObjectRecord | None:
    """Return a version with one blob replaced; None if it does not use that blob."""
    if old not in blobs_of(record):
        return None
    return msgspec.structs.replace(
        record,
        parts=tuple(
            msgspec.structs.replace(part, ref=new) if part.ref == old else part
            for part in record.parts
        ),
        manifest=new if record.manifest == old else record.manifest,
    )
