"""CopyObject and UploadPartCopy: bytes are read from one blob and written to another."""

import contextlib
import re
from collections.abc import AsyncIterator
from urllib.parse import unquote

from msgspec import Struct, structs

from tenfold.objects.catalog.records import Bucket, ObjectRecord
from tenfold.objects.s3.access import READ, WRITE, require_bucket, require_object
from tenfold.objects.s3.call import Call
from tenfold.objects.s3.checksums import algorithm_of
from tenfold.objects.s3.errors import S3Error, argument
from tenfold.objects.s3.headers import checksum_headers
from tenfold.objects.s3.http.answer import Answer, Stream
from tenfold.objects.s3.ingest import Expected
from tenfold.objects.s3.operations.buckets import XML
from tenfold.objects.s3.operations.multipart import part_number, require_upload, store_part
from tenfold.objects.s3.operations.reading import (
    check_conditions,
    existing,
    require_restored,
    stream_of,
)
from tenfold.objects.s3.operations.writing import check_room, condition_of, draft_of, store
from tenfold.objects.s3.times import iso
from tenfold.objects.s3.uri import check_key
from tenfold.objects.s3.xml import document, tag

_SOURCE_RANGE = re.compile(r"bytes=(\d{1,18})-(\d{1,18})")


class _Source(Struct, frozen=True):
    bucket: Bucket
    record: ObjectRecord


class _Copied:
    """The bytes of a source as the body of a write."""

    def __init__(self, stream: Stream) -> None:
        self._chunks = _chunks_of(stream)

    async def read(self) -> bytes:
        """Return the next bytes; none at the end."""
        with contextlib.suppress(StopAsyncIteration):
            return await anext(self._chunks)
        return b""


async def copy_object(call: Call) -> Answer:
    """Copy an object, with its metadata or with new."""
    bucket = require_bucket(call, WRITE)
    source = _source(call)
    draft = _draft(call, bucket, source)
    size = source.record.size_bytes
    check_room(call, bucket, size)
    algorithm = algorithm_of(call.headers.get("x-amz-checksum-algorithm", ""))
    if not algorithm and source.record.checksums and not source.record.is_multipart:
        algorithm = next(iter(source.record.checksums))
    expected = Expected(size_bytes=size, size_bytes_max=size, algorithm=algorithm)
    payload = _Copied(stream_of(call.deps.blobs, source.record, 0, size))
    record = await store(call, draft, payload, expected, condition_of(call))
    values = [tag(f"Checksum{name}", value) for name, value in record.checksums.items()]
    body = document(
        "CopyObjectResult",
        [tag("LastModified", iso(record.modified_ms)), tag("ETag", f'"{record.etag}"'), *values],
    )
    headers = {**XML, **_source_version(source), **checksum_headers(record)}
    if bucket.is_versioned:
        headers["x-amz-version-id"] = record.version
    return Answer(200, headers, body)


async def copy_part(call: Call) -> Answer:
    """Copy a range of an object into a part of an upload."""
    bucket = require_bucket(call, WRITE)
    upload, number = require_upload(call, bucket), part_number(call)
    source = _source(call)
    start, end = _range(call, source.record.size_bytes)
    check_room(call, bucket, end - start)
    payload = _Copied(stream_of(call.deps.blobs, source.record, start, end))
    expected = Expected(size_bytes=end - start, size_bytes_max=end - start)
    part = await store_part(call, upload, number, payload, expected)
    body = document(
        "CopyPartResult",
        [tag("LastModified", iso(part.modified_ms)), tag("ETag", f'"{part.etag}"')],
    )
    return Answer(200, {**XML, **_source_version(source)}, body)


async def _chunks_of(stream: Stream) -> AsyncIterator[bytes]:
    async for reading in stream.readings():
        try:
            async for chunk in reading.chunks():
                yield chunk
        finally:
            await reading.close()


def _source(call: Call) -> _Source:
    """Return the version that the copy source names, if the caller may read it."""
    text, _, query = call.headers["x-amz-copy-source"].partition("?versionId=")
    path = unquote(text, encoding="utf-8", errors="strict") if "%" in text else _utf8(text)
    name, slash, key = path.removeprefix("/").partition("/")
    if not name or not slash or not key:
        raise argument("x-amz-copy-source must be bucket/key.")
    check_key(key)
    bucket = call.find_bucket(name)
    call.check_source_owner(bucket)
    record = existing(call, bucket, key, query)
    require_object(call, bucket, record, READ)
    require_restored(call, record)
    failed = check_conditions(
        lambda header: call.headers.get(f"x-amz-copy-source-{header}"), record
    )
    if failed is not None:
        raise S3Error("PreconditionFailed")
    return _Source(bucket, record)


def _utf8(text: str) -> str:
    try:
        return text.encode("latin-1").decode()
    except UnicodeDecodeError:
        raise argument("x-amz-copy-source is not UTF-8.") from None


def _draft(call: Call, bucket: Bucket, source: _Source) -> ObjectRecord:
    draft = draft_of(call, bucket)
    record = source.record
    directive = _directive(call, "x-amz-metadata-directive")
    is_same = source.bucket.id == bucket.id and record.key == call.key
    is_changed = directive == "REPLACE" or draft.storage_class != record.storage_class
    is_old_version = "?versionId=" in call.headers["x-amz-copy-source"]
    if is_same and not is_changed and not is_old_version:
        raise S3Error(
            "InvalidRequest",
            "A copy to itself must change the metadata, the storage class or the version.",
        )
    if directive == "COPY":
        draft = structs.replace(draft, headers=record.headers, metadata=record.metadata)
    if _directive(call, "x-amz-tagging-directive") == "COPY":
        draft = structs.replace(draft, tags=record.tags)
    return draft


def _directive(call: Call, header: str) -> str:
    directive = call.headers.get(header, "COPY").upper()
    if directive not in ("COPY", "REPLACE"):
        raise argument(f"{header} must be COPY or REPLACE.")
    return directive


def _source_version(source: _Source) -> dict[str, str]:
    if not source.bucket.is_versioned:
        return {}
    return {"x-amz-copy-source-version-id": source.record.version}


def _range(call: Call, size: int) -> tuple[int, int]:
    text = call.headers.get("x-amz-copy-source-range")
    if text is None:
        return 0, size
    match = _SOURCE_RANGE.fullmatch(text)
    if match is None or int(match[1]) > int(match[2]):
        raise argument("x-amz-copy-source-range must be bytes=first-last.")
    if int(match[2]) >= size:
        raise S3Error("InvalidRange", "The copy source does not have these bytes.")
    return int(match[1]), int(match[2]) + 1
