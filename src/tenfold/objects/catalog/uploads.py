"""Multipart uploads: start, add parts, complete, abort."""

import sqlite3
from collections.abc import Sequence

from tenfold.objects.catalog.buckets import bucket_by_id, team_usage
from tenfold.objects.catalog.records import (
    ObjectRecord,
    Part,
    Refusal,
    Upload,
    decode_part,
    decode_upload,
    encode,
)
from tenfold.objects.catalog.versions import (
    DELETE_GRACE_MS,
    Condition,
    Quota,
    bury,
    put_version,
)


def start_upload(connection: sqlite3.Connection, upload: Upload) -> None:
    """Record an upload."""
    bucket_by_id(connection, upload.bucket)
    connection.execute(
        "INSERT INTO uploads(id, bucket, key, started_ms, record) VALUES (?, ?, ?, ?, ?)",
        (upload.id, upload.bucket, upload.record.key, upload.started_ms, encode(upload)),
    )


def find_upload(
    connection: sqlite3.Connection, bucket: int, key: str, upload: str
) -> Upload | None:
    """Return an upload that is not complete."""
    row = connection.execute(
        "SELECT record FROM uploads WHERE id = ? AND bucket = ? AND key = ?", (upload, bucket, key)
    ).fetchone()
    return None if row is None else decode_upload(row[0])


def find_completed(
    connection: sqlite3.Connection, bucket: int, key: str, upload: str
) -> tuple[str, str] | None:
    """Return the version and the etag that a completed upload became."""
    return connection.execute(
        "SELECT version, etag FROM completed WHERE upload = ? AND bucket = ? AND key = ?",
        (upload, bucket, key),
    ).fetchone()


def put_part(
    connection: sqlite3.Connection, upload: str, part: Part, now_ms: int, quota: Quota
) -> None:
    """Record a part; the blob of a part with the same number is freed."""
    bucket = connection.execute("SELECT bucket FROM uploads WHERE id = ?", (upload,)).fetchone()
    if bucket is None:
        raise Refusal("NoSuchUpload")
    row = connection.execute(
        "SELECT part FROM parts WHERE upload = ? AND number = ?", (upload, part.number)
    ).fetchone()
    if row is not None:
        bury(connection, [decode_part(row[0]).ref], now_ms + DELETE_GRACE_MS)
    connection.execute(
        "INSERT OR REPLACE INTO parts(upload, number, part) VALUES (?, ?, ?)",
        (upload, part.number, encode(part)),
    )
    if quota.stored_bytes:
        _check_quota(connection, bucket_by_id(connection, bucket[0]).team, quota)


def _check_quota(connection: sqlite3.Connection, team: str, quota: Quota) -> None:
    """Count unfinished uploads too: otherwise a team could store anything in them."""
    (parts_bytes,) = connection.execute(
        "SELECT coalesce(sum(json_extract(part, '$.size_bytes')), 0) FROM parts"
        " WHERE upload IN (SELECT uploads.id FROM uploads"
        " JOIN buckets ON buckets.id = uploads.bucket WHERE buckets.team = ?)",
        (team,),
    ).fetchone()
    stored_bytes, _ = team_usage(connection, team)
    if stored_bytes + parts_bytes > quota.stored_bytes:
        raise Refusal(
            "QuotaExceeded",
            f"the team may store {quota.stored_bytes} bytes, unfinished uploads included",
        )


def list_parts(
    connection: sqlite3.Connection, upload: str, after: int = 0, limit: int = -1
) -> list[Part]:
    """Return parts by number."""
    rows = connection.execute(
        "SELECT part FROM parts WHERE upload = ? AND number > ? ORDER BY number LIMIT ?",
        (upload, after, limit),
    )
    return [decode_part(row[0]) for row in rows]


def complete_upload(
    connection: sqlite3.Connection,
    upload: Upload,
    record: ObjectRecord,
    condition: Condition,
    quota: Quota,
) -> None:
    """Make the object of its parts; parts that it does not use are freed.

    A part that was sent again since the parts were read makes the caller read them again.
    """
    if find_upload(connection, upload.bucket, record.key, upload.id) is None:
        raise Refusal("NoSuchUpload")
    stored = list_parts(connection, upload.id)
    known = {part.number: part.ref for part in stored}
    if any(known.get(part.number) != part.ref for part in record.parts):
        raise Refusal("OperationAborted", "a part was sent again while the upload was completed")
    put_version(connection, upload.bucket, record, condition, quota)
    used = {part.number for part in record.parts}
    _forget(connection, upload.id, [p for p in stored if p.number not in used], record.modified_ms)
    connection.execute(
        "INSERT INTO completed(upload, bucket, key, version, etag, completed_ms)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (upload.id, upload.bucket, record.key, record.version, record.etag, record.modified_ms),
    )


def abort_upload(
    connection: sqlite3.Connection, bucket: int, key: str, upload: str, now_ms: int
) -> None:
    """Drop an upload and free its parts."""
    if find_upload(connection, bucket, key, upload) is None:
        raise Refusal("NoSuchUpload")
    _forget(connection, upload, list_parts(connection, upload), now_ms)


def forget_completed(connection: sqlite3.Connection, before_ms: int) -> None:
    """Forget uploads that were completed long ago; no client repeats their completion."""
    connection.execute("DELETE FROM completed WHERE completed_ms < ?", (before_ms,))


def _forget(
    connection: sqlite3.Connection, upload: str, unused: Sequence[Part], now_ms: int
) -> None:
    bury(connection, [part.ref for part in unused], now_ms + DELETE_GRACE_MS)
    connection.execute("DELETE FROM parts WHERE upload = ?", (upload,))
    connection.execute("DELETE FROM uploads WHERE id = ?", (upload,))
