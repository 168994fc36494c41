"""GetObject, HeadObject and GetObjectAttributes: ranges, parts and conditions."""

import re
from collections.abc import AsyncIterator, Callable

from tenfold.objects.blobs.refs import BlobReading
from tenfold.objects.catalog.records import Bucket, ObjectRecord
from tenfold.objects.catalog.versions import find_version, matches_etag
from tenfold.objects.s3.access import READ, missing_key, require_object
from tenfold.objects.s3.call import Blobs, Call
from tenfold.objects.s3.errors import S3Error
from tenfold.objects.s3.headers import checksum_headers, object_headers, override
from tenfold.objects.s3.http.answer import Answer, Stream
from tenfold.objects.s3.times import http_date, parse_http_date
from tenfold.objects.s3.uri import check_key
from tenfold.objects.s3.xml import boolean, document, maybe, node, tag

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_ATTRIBUTES = ("ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize")


async def get_object(call: Call) -> Answer:
    """Send an object, or a range or a part of it."""
    bucket, record = readable(call)
    return _answer(call, bucket, record, is_head=False)


async def head_object(call: Call) -> Answer:
    """Send what is known about an object."""
    bucket, record = readable(call)
    return _answer(call, bucket, record, is_head=True)


async def get_attributes(call: Call) -> Answer:
    """Send the parts of what is known that were asked for."""
    bucket, record = readable(call)
    text = call.headers.get("x-amz-object-attributes", "")
    wanted = [one.strip() for one in text.split(",") if one.strip()]
    if not wanted:
        raise S3Error("InvalidRequest", "The header x-amz-object-attributes is missing.")
    if any(one not in _ATTRIBUTES for one in wanted):
        raise S3Error("InvalidArgument", "An object attribute is unknown.")
    shown = {
        "ETag": lambda: tag("ETag", record.etag),
        "Checksum": lambda: _checksum_node(record),
        "ObjectParts": lambda: _parts_node(call, record),
        "StorageClass": lambda: tag("StorageClass", record.storage_class),
        "ObjectSize": lambda: tag("ObjectSize", record.size_bytes),
    }
    body = document(
        "GetObjectAttributesResponse", [shown[name]() for name in _ATTRIBUTES if name in wanted]
    )
    headers = {
        "content-type": "application/xml",
        "last-modified": http_date(record.modified_ms // 1000),
    }
    if bucket.is_versioned:
        headers["x-amz-version-id"] = record.version
    return Answer(200, headers, body)


def readable(call: Call) -> tuple[Bucket, ObjectRecord]:
    """Return the version that a request names, if the caller may read it."""
    bucket = call.bucket
    check_key(call.key)
    record = existing(call, bucket, call.key, call.version)
    require_object(call, bucket, record, READ)
    return bucket, record


def existing(call: Call, bucket: Bucket, key: str, version: str) -> ObjectRecord:
    """Return a version that must exist and be no delete marker."""
    record = find_version(call.deps.catalog.reader, bucket.id, key, version)
    if record is None:
        raise missing_key(call, bucket, "NoSuchVersion" if version else "NoSuchKey")
    if record.is_marker:
        error = missing_key(call, bucket, "MethodNotAllowed" if version else "NoSuchKey")
        error.headers["x-amz-delete-marker"] = "true"
        error.headers["x-amz-version-id"] = record.version
        raise error
    return record


def require_restored(call: Call, record: ObjectRecord) -> None:
    """Refuse to read an archived object that was not restored."""
    is_archived = record.storage_class in call.deps.settings.archived
    if is_archived and record.restored_until_ms < call.now_ms:
        raise S3Error("InvalidObjectState")


def stream_of(blobs: Blobs, record: ObjectRecord, start: int, end: int) -> Stream:
    """Return a range of an object, opened blob by blob as it is sent."""

    async def readings() -> AsyncIterator[BlobReading]:
        offset = 0
        for part in record.parts:
            low, high = max(start - offset, 0), min(end - offset, part.size_bytes)
            offset += part.size_bytes
            if low < high:
                yield await blobs.open(part.ref, low, high)
            if offset >= end:
                return

    return Stream(end - start, readings)


def check_conditions(header: Callable[[str], str | None], record: ObjectRecord) -> S3Error | None:
    """Return why a conditional read is not answered with the object; None if it is."""
    modified_s = record.modified_ms // 1000
    if_match, if_none_match = header("if-match"), header("if-none-match")
    since, unmodified = header("if-modified-since"), header("if-unmodified-since")
    if if_match is not None:
        if not matches_etag(if_match, record.etag):
            return S3Error("PreconditionFailed")
    elif unmodified is not None and _is_before(unmodified, modified_s):
        return S3Error("PreconditionFailed")
    if if_none_match is not None:
        if matches_etag(if_none_match, record.etag):
            return _not_modified()
    elif since is not None and not _is_before(since, modified_s):
        return _not_modified()
    return None


def _not_modified() -> S3Error:
    error = S3Error("PreconditionFailed")
    error.status = 304
    return error


def _is_before(text: str, modified_s: int) -> bool:
    """Return whether a date is before the last change; what is no date is ignored."""
    at_ms = parse_http_date(text)
    return at_ms is not None and at_ms // 1000 < modified_s


def _answer(call: Call, bucket: Bucket, record: ObjectRecord, *, is_head: bool) -> Answer:
    failed = check_conditions(call.headers.get, record)
    headers = object_headers(record, bucket.is_versioned)
    if failed is not None:
        if failed.status != 304:
            raise failed
        headers.pop("content-type", None)
        return Answer(304, headers)
    if not is_head:
        require_restored(call, record)
    override(call, headers)
    start, end = 0, record.size_bytes
    status = 200
    ranged = _range(call, record)
    if ranged is not None:
        status = 206
        start, end = ranged
        headers["content-range"] = f"bytes {start}-{end - 1}/{record.size_bytes}"
    if record.is_multipart and "partNumber" in call.query:
        headers["x-amz-mp-parts-count"] = str(len(record.parts))
    # A checksum of the whole would be taken for one of the range.
    if ranged is None and call.headers.get("x-amz-checksum-mode", "").upper() == "ENABLED":
        headers |= checksum_headers(record)
    if is_head:
        return Answer(status, headers, head_length=end - start)
    return Answer(status, headers, stream=stream_of(call.deps.blobs, record, start, end))


def _range(call: Call, record: ObjectRecord) -> tuple[int, int] | None:
    """Return the bytes that a request asks for; None for all of them."""
    text = call.headers.get("range")
    if "partNumber" in call.query:
        if text is not None:
            raise S3Error("InvalidRequest", "A request has either a range or a part number.")
        return _part_range(call, record)
    match = _RANGE.fullmatch(text.strip()) if text is not None else None
    if match is None or match.groups() == ("", ""):
        # Several ranges, or another unit: the whole is a valid answer.
        return None
    first, last = match.groups()
    size = record.size_bytes
    if not first:
        start, end = max(0, size - int(last)), size
        is_empty = int(last) == 0 or size == 0
    else:
        start, end = int(first), min(int(last) + 1 if last else size, size)
        if last and int(last) < int(first):
            return None
        is_empty = start >= size
    if is_empty:
        raise S3Error("InvalidRange", headers={"content-range": f"bytes */{size}"})
    return start, end


def _part_range(call: Call, record: ObjectRecord) -> tuple[int, int] | None:
    number = call.number("partNumber", 0, 10_001)
    if number == 0:
        raise S3Error("InvalidArgument", "partNumber must be between 1 and 10000.")
    if not record.is_multipart:
        if number != 1:
            raise S3Error("InvalidPart" if number > 1 else "InvalidPartNumber")
        return (0, record.size_bytes) if record.size_bytes else None
    offset = 0
    for part in record.parts:
        if part.number == number:
            return offset, offset + part.size_bytes
        offset += part.size_bytes
    raise S3Error("InvalidPart")


def _checksum_node(record: ObjectRecord) -> str:
    if not record.checksums:
        return ""
    values = [tag(f"Checksum{name}", value) for name, value in record.checksums.items()]
    return node("Checksum", *values, tag("ChecksumType", record.checksum_type))


def _parts_node(call: Call, record: ObjectRecord) -> str:
    if not record.is_multipart:
        return ""
    most = _header_number(call, "x-amz-max-parts", 1000)
    after = _header_number(call, "x-amz-part-number-marker", 0)
    following = [part for part in record.parts if part.number > after]
    shown = following[:most]
    algorithm = next(iter(record.checksums), "")
    parts = [
        node(
            "Part",
            tag("PartNumber", part.number),
            tag("Size", part.size_bytes),
            maybe(f"Checksum{algorithm}", part.checksum),
        )
        for part in shown
    ]
    return node(
        "ObjectParts",
        tag("PartsCount", len(record.parts)),
        tag("PartNumberMarker", after),
        maybe("NextPartNumberMarker", shown[-1].number if shown else ""),
        tag("MaxParts", most),
        tag("IsTruncated", boolean(len(shown) < len(following))),
        *(parts if algorithm else []),
    )


def _header_number(call: Call, name: str, usual: int) -> int:
    text = call.headers.get(name, "")
    if text and not (text.isdigit() and len(text) < 9):
        raise S3Error("InvalidArgument", f"{name} must be a number.")
    return int(text) if text else usual
