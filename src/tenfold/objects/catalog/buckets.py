"""Buckets: create, find, change, delete, and what they hold."""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from tenfold.objects.catalog.records import Bucket, BucketSettings, Refusal, decode_settings, encode

_COLUMNS = "id, name, team, created_ms, versioning, settings, stored_bytes, stored_versions"


def find_bucket(connection: sqlite3.Connection, name: str) -> Bucket | None:
    """Return a bucket by name."""
    row = connection.execute(f"SELECT {_COLUMNS} FROM buckets WHERE name = ?", (name,)).fetchone()
    return None if row is None else _bucket(row)


def bucket_by_id(connection: sqlite3.Connection, bucket: int) -> Bucket:
    """Return a bucket that exists when the change that names it is made."""
    row = connection.execute(f"SELECT {_COLUMNS} FROM buckets WHERE id = ?", (bucket,)).fetchone()
    if row is None:
        raise Refusal("NoSuchBucket")
    return _bucket(row)


def list_buckets(
    connection: sqlite3.Connection, team: str, prefix: str = "", after: str = "", limit: int = -1
) -> list[Bucket]:
    """Return the buckets of a team by name."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM buckets WHERE team = ? AND name > ? AND substr(name, 1, ?) = ?"
        " ORDER BY name LIMIT ?",
        (team, after, len(prefix), prefix, limit),
    )
    return [_bucket(row) for row in rows]


def all_buckets(connection: sqlite3.Connection) -> list[Bucket]:
    """Return every bucket by name."""
    return [
        _bucket(row) for row in connection.execute(f"SELECT {_COLUMNS} FROM buckets ORDER BY name")
    ]


def create_bucket(
    connection: sqlite3.Connection, bucket: Bucket, buckets_max: int
) -> tuple[Bucket, bool]:
    """Create a bucket, unless its name is taken; return it and whether it is new.

    A team that owns the bucket already gets it as it is.
    """
    found = find_bucket(connection, bucket.name)
    if found is not None:
        if found.team != bucket.team:
            raise Refusal("BucketAlreadyExists")
        return found, False
    count = connection.execute(
        "SELECT count(*) FROM buckets WHERE team = ?", (bucket.team,)
    ).fetchone()[0]
    if count >= buckets_max:
        raise Refusal("TooManyBuckets")
    connection.execute(
        "INSERT INTO buckets(name, team, created_ms, versioning, settings) VALUES (?, ?, ?, ?, ?)",
        (bucket.name, bucket.team, bucket.created_ms, bucket.versioning, encode(bucket.settings)),
    )
    made = find_bucket(connection, bucket.name)
    assert made is not None
    return made, True


def delete_bucket(connection: sqlite3.Connection, name: str, due_ms: int) -> None:
    """Delete an empty bucket; unfinished uploads go with it, and their blobs at `due_ms`."""
    bucket = find_bucket(connection, name)
    if bucket is None:
        raise Refusal("NoSuchBucket")
    row = connection.execute("SELECT 1 FROM versions WHERE bucket = ? LIMIT 1", (bucket.id,))
    if row.fetchone() is not None:
        raise Refusal("BucketNotEmpty")
    _drop_uploads(connection, bucket.id, due_ms)
    connection.execute("DELETE FROM completed WHERE bucket = ?", (bucket.id,))
    connection.execute("DELETE FROM buckets WHERE id = ?", (bucket.id,))


def change_settings(
    connection: sqlite3.Connection,
    bucket: int,
    change: Callable[[BucketSettings], BucketSettings],
) -> BucketSettings:
    """Replace the settings of a bucket by a function of what they are now."""
    settings = change(bucket_by_id(connection, bucket).settings)
    connection.execute("UPDATE buckets SET settings = ? WHERE id = ?", (encode(settings), bucket))
    return settings


def set_versioning(connection: sqlite3.Connection, bucket: int, state: str) -> None:
    """Enable or suspend versioning; a bucket with object lock stays versioned."""
    if bucket_by_id(connection, bucket).settings.has_lock and state != "Enabled":
        raise Refusal("InvalidBucketState")
    connection.execute("UPDATE buckets SET versioning = ? WHERE id = ?", (state, bucket))


def add_usage(
    connection: sqlite3.Connection, bucket: int, stored_bytes: int, versions: int
) -> None:
    """Count what a change added to a bucket, or removed from it."""
    connection.execute(
        "UPDATE buckets SET stored_bytes = stored_bytes + ?, stored_versions = stored_versions + ?"
        " WHERE id = ?",
        (stored_bytes, versions, bucket),
    )


def team_usage(connection: sqlite3.Connection, team: str) -> tuple[int, int]:
    """Return the bytes and versions that a team stores."""
    row = connection.execute(
        "SELECT coalesce(sum(stored_bytes), 0), coalesce(sum(stored_versions), 0)"
        " FROM buckets WHERE team = ?",
        (team,),
    ).fetchone()
    return row[0], row[1]


def _drop_uploads(connection: sqlite3.Connection, bucket: int, due_ms: int) -> None:
    of_bucket = "upload IN (SELECT id FROM uploads WHERE bucket = ?)"
    connection.execute(
        "INSERT INTO dead_blobs(due_ms, ref)"
        f" SELECT ?, json_extract(part, '$.ref') FROM parts WHERE {of_bucket}",
        (due_ms, bucket),
    )
    connection.execute(f"DELETE FROM parts WHERE {of_bucket}", (bucket,))
    connection.execute("DELETE FROM uploads WHERE bucket = ?", (bucket,))


def _bucket(row: Sequence[Any]) -> Bucket:
    return Bucket(
        id=row[0],
        name=row[1],
        team=row[2],
        created_ms=row[3],
        versioning=row[4],
        settings=decode_settings(row[5]),
        stored_bytes=row[6],
        stored_versions=row[7],
    )
