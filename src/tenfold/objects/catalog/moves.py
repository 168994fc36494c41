"""What movers and scrubbers need of the catalogue: live blobs, moves, delayed deletes, rebuild."""

import sqlite3
from collections.abc import Sequence

import msgspec
from msgspec import Struct, structs

from tenfold.objects.blobs.refs import BlobRef
from tenfold.objects.catalog.buckets import (
    all_buckets,
    change_settings,
    create_bucket,
    find_bucket,
)
from tenfold.objects.catalog.catalog import Catalog
from tenfold.objects.catalog.records import (
    Bucket,
    BucketSettings,
    ObjectRecord,
    blobs_of,
    decode_part,
    decode_record,
    encode,
)
from tenfold.objects.catalog.versions import Condition, Quota, bury, put_version, with_ref

PARTS_KEY = ""
"""The version of a row that is a part of an upload; its key is the upload."""
_BUCKETS_MAX = 1 << 31

_REFS = msgspec.json.Decoder(BlobRef)


class LiveBlob(Struct, frozen=True):
    """A blob that a version uses, or a part of an upload that is not complete."""

    cursor: str
    """Give it to `live` to continue behind this blob."""
    bucket: int
    key: str
    version: str
    ref: BlobRef
    modified_ms: int
    storage_class: str
    is_current: bool


class Description(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a blob says about its row: enough to insert it into an empty catalogue."""

    bucket: str
    team: str
    versioning: str = ""
    has_lock: bool = False
    record: ObjectRecord
    """For the blob of an object in one piece `parts` lacks the blob itself: its ref is not known
    before it is written."""
    is_part: bool = False
    """A part of an upload: of use only with the manifest of its object."""
    upload: str = ""


class Moves:
    """The catalogue as a mover sees it."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def live(self, after: str = "", limit: int = 1000) -> list[LiveBlob]:
        """Return blobs in use behind a cursor; an empty list is the end.

        What is written meanwhile comes last; what is replaced meanwhile may be missing.
        """
        kind, _, at = after.partition(":")
        found: list[LiveBlob] = []
        if kind in ("", "v"):
            found = self._live_versions(int(at or 0), limit)
            if found:
                return found
            kind, at = "p", ""
        return self._live_parts(at, limit)

    async def swap(
        self,
        name: tuple[int, str, str],
        old: BlobRef,
        new: BlobRef,
        dead: BlobRef | None,
        due_ms: int,
    ) -> bool:
        """Replace a blob of a version if it still uses it; `dead` is deleted later.

        `name` is the bucket, the key and the version. `dead` is the old blob, or only those of its
        shards that the new one does not share. Returns False, and changes nothing, if the version
        is gone or uses another blob.
        """
        bucket, key, version = name

        def change(connection: sqlite3.Connection) -> bool:
            if version == PARTS_KEY:
                is_swapped = _swap_part(connection, key, old, new)
            else:
                is_swapped = _swap_version(connection, (bucket, key, version), old, new)
            if is_swapped and dead is not None:
                bury(connection, [dead], due_ms)
            return is_swapped

        return await self._catalog.write(change)

    async def bury(self, refs: Sequence[BlobRef], due_ms: int) -> None:
        """Put blobs that no row uses into the queue of deletes."""
        await self._catalog.write(lambda connection: bury(connection, refs, due_ms))

    def due(self, now_ms: int, limit: int = 1000) -> list[tuple[int, BlobRef]]:
        """Return blobs to delete now; call `buried` with the ids of those that are gone."""
        rows = self._catalog.reader.execute(
            "SELECT id, ref FROM dead_blobs WHERE due_ms <= ? ORDER BY due_ms, id LIMIT ?",
            (now_ms, limit),
        )
        return [(row[0], _REFS.decode(row[1])) for row in rows]

    async def buried(self, ids: Sequence[int]) -> None:
        """Take deleted blobs out of the queue."""

        def change(connection: sqlite3.Connection) -> None:
            connection.executemany("DELETE FROM dead_blobs WHERE id = ?", [(one,) for one in ids])

        await self._catalog.write(change)

    async def postpone(self, ids: Sequence[int], due_ms: int) -> None:
        """Try later to delete blobs that could not be deleted, so that others get their turn."""

        def change(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "UPDATE dead_blobs SET due_ms = ? WHERE id = ?", [(due_ms, one) for one in ids]
            )

        await self._catalog.write(change)

    def bucket_names(self) -> list[str]:
        """Return the names of all buckets."""
        return [bucket.name for bucket in all_buckets(self._catalog.reader)]

    async def restore_bucket(self, found: Bucket) -> None:
        """Give a bucket that was just rebuilt what is known of it beside its objects."""

        def change(connection: sqlite3.Connection) -> None:
            bucket = find_bucket(connection, found.name)
            if bucket is None or bucket.team != found.team:
                return
            has_lock = found.settings.has_lock or bucket.settings.has_lock
            settings = structs.replace(found.settings, has_lock=has_lock)
            change_settings(connection, bucket.id, lambda _: settings)
            # Objects may tell of a later change of versioning.
            connection.execute(
                "UPDATE buckets SET created_ms = ?, versioning = ? WHERE id = ?",
                (found.created_ms, found.versioning or bucket.versioning, bucket.id),
            )

        await self._catalog.write(change)

    async def insert(self, description: Description, created_ms: int) -> bool:
        """Insert a row from its description; False if the catalogue has it already.

        Rows of one key must come oldest first.
        """

        def change(connection: sqlite3.Connection) -> bool:
            return _insert(connection, description, created_ms)

        return await self._catalog.write(change)

    def _live_versions(self, after: int, limit: int) -> list[LiveBlob]:
        rows = self._catalog.reader.execute(
            "SELECT seq, bucket, record, is_current FROM versions WHERE seq > ?"
            " ORDER BY seq LIMIT ?",
            (after, limit),
        ).fetchall()
        found: list[LiveBlob] = []
        for seq, bucket, text, is_current in rows:
            record = decode_record(text)
            found += [
                LiveBlob(
                    f"v:{seq}",
                    bucket,
                    record.key,
                    record.version,
                    ref,
                    record.modified_ms,
                    record.storage_class,
                    bool(is_current),
                )
                for ref in blobs_of(record)
            ]
        if not found and rows:
            return self._live_versions(rows[-1][0], limit)
        return found

    def _live_parts(self, after: str, limit: int) -> list[LiveBlob]:
        upload, _, number = after.rpartition("/")
        rows = self._catalog.reader.execute(
            "SELECT parts.upload, parts.number, parts.part, uploads.bucket FROM parts"
            " JOIN uploads ON uploads.id = parts.upload"
            " WHERE (parts.upload, parts.number) > (?, ?)"
            " ORDER BY parts.upload, parts.number LIMIT ?",
            (upload, int(number or 0), limit),
        )
        found: list[LiveBlob] = []
        for upload, number, text, bucket in rows:
            part = decode_part(text)
            cursor = f"p:{upload}/{number}"
            found.append(
                LiveBlob(cursor, bucket, upload, PARTS_KEY, part.ref, part.modified_ms, "", False)
            )
        return found


def _swap_version(
    connection: sqlite3.Connection, name: tuple[int, str, str], old: BlobRef, new: BlobRef
) -> bool:
    row = connection.execute(
        "SELECT seq, record FROM versions WHERE bucket = ? AND key = ? AND version = ?", name
    ).fetchone()
    if row is None:
        return False
    changed = with_ref(decode_record(row[1]), old, new)
    if changed is None:
        return False
    connection.execute("UPDATE versions SET record = ? WHERE seq = ?", (encode(changed), row[0]))
    return True


def _swap_part(connection: sqlite3.Connection, upload: str, old: BlobRef, new: BlobRef) -> bool:
    rows = connection.execute("SELECT number, part FROM parts WHERE upload = ?", (upload,))
    for number, text in rows.fetchall():
        part = decode_part(text)
        if part.ref == old:
            connection.execute(
                "UPDATE parts SET part = ? WHERE upload = ? AND number = ?",
                (encode(msgspec.structs.replace(part, ref=new)), upload, number),
            )
            return True
    return False


def _insert(connection: sqlite3.Connection, description: Description, created_ms: int) -> bool:
    wanted = Bucket(
        id=0,
        name=description.bucket,
        team=description.team,
        created_ms=created_ms,
        versioning=description.versioning,
        settings=BucketSettings(has_lock=description.has_lock),
    )
    bucket, _ = create_bucket(connection, wanted, _BUCKETS_MAX)
    record = description.record
    known = connection.execute(
        "SELECT 1 FROM versions WHERE bucket = ? AND key = ? AND version = ?",
        (bucket.id, record.key, record.version),
    ).fetchone()
    if known is not None:
        return False
    state = "Enabled" if record.version != "null" else bucket.versioning
    state = "Suspended" if record.version == "null" and state == "Enabled" else state
    connection.execute("UPDATE buckets SET versioning = ? WHERE id = ?", (state, bucket.id))
    put_version(connection, bucket.id, record, Condition(), Quota())
    after = description.versioning or ("Enabled" if state == "Enabled" else state)
    connection.execute("UPDATE buckets SET versioning = ? WHERE id = ?", (after, bucket.id))
    return True
