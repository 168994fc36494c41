"""What is due without a request: deleted blobs, expired versions, uploads that were given up.

One process of a server does it at a time: the one that holds the lock file.
"""

import asyncio
import contextlib
import fcntl
import logging
import os
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from tenfold.objects.catalog.buckets import all_buckets
from tenfold.objects.catalog.listing import Entry, Query, list_uploads, list_versions
from tenfold.objects.catalog.moves import Description, LiveBlob
from tenfold.objects.catalog.records import Bucket, ObjectRecord, Refusal, blobs_of
from tenfold.objects.catalog.uploads import abort_upload, forget_completed
from tenfold.objects.catalog.versions import Deletion, change_version, delete_version
from tenfold.objects.s3.call import Dependencies
from tenfold.objects.serve.counts import Counts
from tenfold.objects.serve.expiry import Due, DueMove, due_moves, due_versions, upload_is_due
from tenfold.objects.tiers.bucket_notes import BucketNotes
from tenfold.objects.tiers.mover import Mover

PAGE = 500
COMPLETED_KEPT_MS = 7 * 86_400_000
RETRY_MS = 600_000
_LOG = logging.getLogger("tenfold.objects")
_ENCODER = msgspec.json.Encoder()


class UpkeepSettings(Struct, frozen=True):
    """How often to look, and how long a day of a lifecycle rule is."""

    every_s: float
    day_s: int
    lock: Path


class Upkeep:
    """Does what is due, every few seconds."""

    def __init__(
        self, deps: Dependencies, mover: Mover, counts: Counts, settings: UpkeepSettings
    ) -> None:
        self._deps = deps
        self._mover = mover
        self._counts = counts
        self._settings = settings
        self._moves = mover.moves
        self._notes = BucketNotes(mover.store, deps.settings.tiers["STANDARD"])
        self._lock = os.open(settings.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await asyncio.sleep(self._settings.every_s)
            if not self._is_mine():
                continue
            try:
                await self.once()
            except Exception:
                _LOG.exception("upkeep failed; it is tried again")

    async def once(self) -> None:
        """Do everything that is due now."""
        await self.delete_blobs()
        buckets = all_buckets(self._deps.catalog.reader)
        await self._notes.keep(buckets, self._deps.now_ms())
        for bucket in buckets:
            if bucket.settings.lifecycle:
                await self.expire(bucket)
        before_ms = self._deps.now_ms() - COMPLETED_KEPT_MS
        await self._deps.catalog.write(lambda c: forget_completed(c, before_ms))

    async def delete_blobs(self) -> None:
        """Delete the blobs whose grace period is over."""
        failures: list[Exception] = []
        while due := self._moves.due(self._deps.now_ms(), PAGE):
            gone: list[int] = []
            kept: list[int] = []
            for number, ref in due:
                try:
                    await self._deps.blobs.delete(ref)
                    gone.append(number)
                except Exception as error:
                    kept.append(number)
                    failures.append(error)
            await self._moves.buried(gone)
            self._counts.increase("blobs_deleted", len(gone))
            # Otherwise a broken backend would keep everything else from being deleted.
            await self._moves.postpone(kept, self._deps.now_ms() + RETRY_MS)
        if failures:
            _LOG.warning(
                "%d deleted blobs keep shards on backends that fail, tried again in %d minutes: %s",
                len(failures),
                RETRY_MS // 60_000,
                failures[0],
            )

    async def expire(self, bucket: Bucket) -> None:
        """Apply the lifecycle rules of a bucket."""
        rules = [rule for rule in bucket.settings.lifecycle if rule.is_enabled]
        day_ms = self._settings.day_s * 1000
        page = list_versions(self._deps.catalog.reader, Query(bucket=bucket.id, limit=PAGE))
        rest: list[Entry] = []
        while True:
            entries = [*rest, *page.items]
            # The versions of the last key may go on in the next page.
            rest = []
            if page.is_truncated:
                last = entries[-1].record.key
                rest = [entry for entry in entries if entry.record.key == last]
                entries = entries[: len(entries) - len(rest)]
            now_ms = self._deps.now_ms()
            for due in due_versions(rules, entries, now_ms, day_ms):
                await self._delete(bucket, due)
            for move in due_moves(rules, entries, now_ms, day_ms):
                await self._move(bucket, move)
            if not page.is_truncated or not page.items:
                break
            mark = page.items[-1]
            query = Query(bucket=bucket.id, after=mark.record.key, after_seq=mark.seq, limit=PAGE)
            page = list_versions(self._deps.catalog.reader, query)
        await self._abort_uploads(bucket, day_ms)

    async def _delete(self, bucket: Bucket, due: Due) -> None:
        record = due.record
        deletion = Deletion(key=record.key, version=record.version if due.for_good else "")
        now_ms = self._deps.now_ms()
        if not due.for_good and bucket.is_versioned:
            deletion = structs.replace(deletion, marker=await self._marker(bucket, record))
        try:
            await self._deps.catalog.write(lambda c: delete_version(c, bucket.id, deletion, now_ms))
            self._counts.increase("versions_expired")
        except Refusal:
            # Object lock is stronger than a lifecycle rule.
            if deletion.marker is not None and deletion.marker.manifest is not None:
                await self._deps.blobs.delete(deletion.marker.manifest)

    async def _move(self, bucket: Bucket, move: DueMove) -> None:
        """Copy the blobs of a version to the tier of its new storage class, then rename it."""
        record = move.record
        tier = self._deps.settings.tiers[move.storage_class]
        for ref in blobs_of(record):
            live = LiveBlob(
                "", bucket.id, record.key, record.version, ref, record.modified_ms, "", True
            )
            outcome = await self._mover.move_blob(live, tier)
            if outcome.result != "moved":
                _LOG.warning("`%s` stays in its tier: %s", record.key, outcome.problem)
                return

        def change(found: ObjectRecord) -> ObjectRecord:
            return structs.replace(found, storage_class=move.storage_class)

        with contextlib.suppress(Refusal):
            await self._deps.catalog.write(
                lambda c: change_version(c, bucket.id, record.key, record.version, change)
            )
            self._counts.increase("versions_moved")

    async def _marker(self, bucket: Bucket, record: ObjectRecord) -> ObjectRecord:
        marker = ObjectRecord(
            key=record.key,
            version=self._deps.new_id() if bucket.versioning == "Enabled" else "null",
            is_marker=True,
            modified_ms=self._deps.now_ms(),
            owner=record.owner,
        )
        described = Description(
            bucket=bucket.name,
            team=bucket.team,
            versioning=bucket.versioning,
            has_lock=bucket.settings.has_lock,
            record=marker,
        )
        writer = self._deps.blobs.create(self._deps.settings.tiers["STANDARD"], 0)
        manifest = await writer.commit(_ENCODER.encode(described))
        return structs.replace(marker, manifest=manifest)

    async def _abort_uploads(self, bucket: Bucket, day_ms: int) -> None:
        now_ms = self._deps.now_ms()
        rules = [rule for rule in bucket.settings.lifecycle if rule.is_enabled]
        query = Query(bucket=bucket.id, limit=PAGE)
        for upload in list_uploads(self._deps.catalog.reader, query).items:
            if any(upload_is_due(rule, upload, now_ms, day_ms) for rule in rules):
                key, name = upload.record.key, upload.id
                await self._deps.catalog.write(
                    lambda c, k=key, n=name: abort_upload(c, bucket.id, k, n, now_ms)
                )
                self._counts.increase("uploads_aborted")

    def _is_mine(self) -> bool:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
