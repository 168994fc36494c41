"""Pages of keys, versions and uploads, with common prefixes, read in order of UTF-8 bytes.

A common prefix is answered with one seek past it, however many keys it stands for.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from tenfold.objects.catalog.records import ObjectRecord, Upload, decode_record, decode_upload

_BATCH = 250
_HIGHEST = "\U0010ffff"

T = TypeVar("T")
_Fetch = Callable[[str, bool, str | None], list[T]]
_Rest = tuple[list[T], Callable[[T], list[T]]]


class Entry(Struct, frozen=True):
    """One version in a listing."""

    record: ObjectRecord
    is_current: bool
    seq: int


class Page(Struct, Generic[T], frozen=True):
    """Part of a listing; `last` is the key or common prefix to continue after."""

    items: Sequence[T]
    prefixes: Sequence[str]
    is_truncated: bool
    last: str
    last_item: T | None = None
    """What `last` belongs to; None if it is a common prefix."""


class Query(Struct, frozen=True, kw_only=True):
    """What is listed."""

    bucket: int
    prefix: str = ""
    delimiter: str = ""
    after: str = ""
    """A key or common prefix; only what follows it is listed."""
    after_seq: int | None = None
    """With versions: the version of `after` to continue behind."""
    after_id: str | None = None
    """With uploads: the upload of `after` to continue behind."""
    limit: int = 1000


def list_objects(connection: sqlite3.Connection, query: Query) -> Page[Entry]:
    """List current versions that are no delete markers."""

    def fetch(low: str, is_after: bool, high: str | None) -> list[Entry]:
        where, values = _range(low, is_after, high)
        rows = connection.execute(
            "SELECT seq, record, is_current FROM versions"
            f" WHERE bucket = ? AND is_current = 1 AND is_marker = 0{where} ORDER BY key LIMIT ?",
            (query.bucket, *values, _BATCH),
        )
        return [_entry(row) for row in rows]

    return _page(query, fetch, lambda entry: entry.record.key)


def list_versions(connection: sqlite3.Connection, query: Query) -> Page[Entry]:
    """List every version, by key and then newest first."""

    def fetch(low: str, is_after: bool, high: str | None) -> list[Entry]:
        where, values = _range(low, is_after, high)
        rows = connection.execute(
            "SELECT seq, record, is_current FROM versions"
            f" WHERE bucket = ?{where} ORDER BY key, seq DESC LIMIT ?",
            (query.bucket, *values, _BATCH),
        )
        return [_entry(row) for row in rows]

    def fetch_rest(entry: Entry) -> list[Entry]:
        rows = connection.execute(
            "SELECT seq, record, is_current FROM versions"
            " WHERE bucket = ? AND key = ? AND seq < ? ORDER BY seq DESC LIMIT ?",
            (query.bucket, entry.record.key, entry.seq, _BATCH),
        )
        return [_entry(row) for row in rows]

    first: list[Entry] = []
    if query.after_seq is not None:
        start = Entry(ObjectRecord(key=query.after), False, query.after_seq)
        first = _all_of(start, fetch_rest)
    return _page(query, fetch, lambda entry: entry.record.key, (first, fetch_rest))


def list_uploads(connection: sqlite3.Connection, query: Query) -> Page[Upload]:
    """List uploads that are not complete, by key and then by id."""

    def fetch(low: str, is_after: bool, high: str | None) -> list[Upload]:
        where, values = _range(low, is_after, high)
        rows = connection.execute(
            f"SELECT record FROM uploads WHERE bucket = ?{where} ORDER BY key, id LIMIT ?",
            (query.bucket, *values, _BATCH),
        )
        return [decode_upload(row[0]) for row in rows]

    def fetch_rest(upload: Upload) -> list[Upload]:
        return uploads_after(connection, query.bucket, upload.record.key, upload.id)

    first: list[Upload] = []
    if query.after_id is not None:
        first = uploads_after(connection, query.bucket, query.after, query.after_id)
    return _page(query, fetch, lambda upload: upload.record.key, (first, fetch_rest))


def uploads_after(
    connection: sqlite3.Connection, bucket: int, key: str, after_id: str
) -> list[Upload]:
    """Return the uploads of one key whose id is higher."""
    rows = connection.execute(
        "SELECT record FROM uploads WHERE bucket = ? AND key = ? AND id > ? ORDER BY id",
        (bucket, key, after_id),
    )
    return [decode_upload(row[0]) for row in rows]


def seq_of(connection: sqlite3.Connection, bucket: int, key: str, version: str) -> int | None:
    """Return the place of a version in the order of commits."""
    row = connection.execute(
        "SELECT seq FROM versions WHERE bucket = ? AND key = ? AND version = ?",
        (bucket, key, version),
    ).fetchone()
    return None if row is None else row[0]


def successor(prefix: str) -> str | None:
    """Return the lowest text above every text with this prefix; None if there is none."""
    stripped = prefix.rstrip(_HIGHEST)
    if not stripped:
        return None
    code = ord(stripped[-1]) + 1
    # Surrogates are no characters of their own.
    code = 0xE000 if code == 0xD800 else code
    return stripped[:-1] + chr(code)


def _page(
    query: Query, fetch: _Fetch[T], key_of: Callable[[T], str], rest: _Rest[T] | None = None
) -> Page[T]:
    """Read until the page is full and one more is known to exist."""
    items: list[T] = []
    prefixes: list[str] = []
    last, last_item = "", None
    if query.limit == 0:
        return Page(items, prefixes, False, "")
    for found, prefix in _merged(query, fetch, key_of, rest):
        if len(items) + len(prefixes) == query.limit:
            return Page(items, prefixes, True, last, last_item)
        if found is None:
            prefixes.append(prefix)
            last, last_item = prefix, None
        else:
            items.append(found)
            last, last_item = key_of(found), found
    return Page(items, prefixes, False, last, last_item)


def _merged(
    query: Query, fetch: _Fetch[T], key_of: Callable[[T], str], rest: _Rest[T] | None
) -> Iterator[tuple[T | None, str]]:
    """Yield items and common prefixes in order; a prefix comes without an item."""
    high = successor(query.prefix) if query.prefix else None
    low, is_after = _start(query)
    for item in rest[0] if rest else []:
        yield item, ""
    while True:
        batch = fetch(low, is_after, high)
        skipped_to: str | None = None
        for item in batch:
            common = _common_prefix(key_of(item), query)
            if common:
                yield None, common
                skipped_to = successor(common)
                break
            yield item, ""
        if skipped_to is not None:
            low, is_after = skipped_to, False
            continue
        if len(batch) < _BATCH:
            return
        if rest:
            yield from ((item, "") for item in _all_of(batch[-1], rest[1]))
        low, is_after = key_of(batch[-1]), True


def _all_of(item: T, fetch_rest: Callable[[T], list[T]]) -> list[T]:
    """Return what follows an item under the same key."""
    found: list[T] = []
    while more := fetch_rest(item):
        found.extend(more)
        item = more[-1]
        if len(more) < _BATCH:
            break
    return found


def _start(query: Query) -> tuple[str, bool]:
    """Return the text to start at, and whether to start behind it."""
    if not query.after or query.after < query.prefix:
        return query.prefix, False
    common = _common_prefix(query.after, query)
    if common and common == query.after:
        # The page before ended with this common prefix.
        return successor(common) or _HIGHEST, False
    return query.after, True


def _common_prefix(key: str, query: Query) -> str:
    if not query.delimiter or not key.startswith(query.prefix):
        return ""
    at = key.find(query.delimiter, len(query.prefix))
    return "" if at < 0 else key[: at + len(query.delimiter)]


def _range(low: str, is_after: bool, high: str | None) -> tuple[str, list[str]]:
    where, values = f" AND key {'>' if is_after else '>='} ?", [low]
    if high is not None:
        where += " AND key < ?"
        values.append(high)
    return where, values


def _entry(row: Sequence[Any]) -> Entry:
    return Entry(decode_record(row[1]), bool(row[2]), row[0])
