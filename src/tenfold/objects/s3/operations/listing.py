"""ListObjects, ListObjectsV2, ListObjectVersions and ListMultipartUploads."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from urllib.parse import quote

from tenfold.objects.catalog.listing import (
    Entry,
    Query,
    list_objects,
    list_uploads,
    list_versions,
    seq_of,
)
from tenfold.objects.catalog.records import Bucket, Upload
from tenfold.objects.s3.access import READ, require_bucket
from tenfold.objects.s3.call import Call
from tenfold.objects.s3.errors import argument
from tenfold.objects.s3.http.answer import Answer
from tenfold.objects.s3.operations.buckets import XML, owner_node
from tenfold.objects.s3.times import iso
from tenfold.objects.s3.xml import boolean, document, maybe, node, tag

PAGE_MAX = 1_000


async def list_v1(call: Call) -> Answer:
    """List objects after a marker."""
    bucket = require_bucket(call, READ)
    query, encode = _query(call, bucket, call.query.get("marker", ""))
    page = list_objects(call.deps.catalog.reader, query)
    # Without a delimiter a client continues after the last key.
    is_next_shown = page.is_truncated and query.delimiter
    body = document(
        "ListBucketResult",
        [
            tag("Name", bucket.name),
            # Clients do not decode the prefix of this version.
            tag("Prefix", query.prefix if _is_printable(query.prefix) else encode(query.prefix)),
            tag("Marker", encode(query.after)),
            maybe("NextMarker", encode(page.last) if is_next_shown else ""),
            *_shape(call, query, encode),
            tag("IsTruncated", boolean(page.is_truncated)),
            *(_contents(call, entry, encode, has_owner=True) for entry in page.items),
            *_prefixes(page.prefixes, encode),
        ],
    )
    return Answer(200, dict(XML), body)


async def list_v2(call: Call) -> Answer:
    """List objects after a key, or on from a token."""
    bucket = require_bucket(call, READ)
    token = call.query.get("continuation-token")
    after = call.query.get("start-after", "")
    query, encode = _query(call, bucket, after if token is None else _key_of(token) or after)
    page = list_objects(call.deps.catalog.reader, query)
    has_owner = call.query.get("fetch-owner", "").lower() == "true"
    body = document(
        "ListBucketResult",
        [
            tag("Name", bucket.name),
            tag("Prefix", encode(query.prefix)),
            maybe("StartAfter", encode(after)),
            "" if token is None else tag("ContinuationToken", token),
            maybe("NextContinuationToken", _token_of(page.last) if page.is_truncated else ""),
            tag("KeyCount", len(page.items) + len(page.prefixes)),
            *_shape(call, query, encode),
            tag("IsTruncated", boolean(page.is_truncated)),
            *(_contents(call, entry, encode, has_owner) for entry in page.items),
            *_prefixes(page.prefixes, encode),
        ],
    )
    return Answer(200, dict(XML), body)


async def list_all_versions(call: Call) -> Answer:
    """List every version and delete marker."""
    bucket = require_bucket(call, READ)
    key_marker = call.query.get("key-marker", "")
    version_marker = call.query.get("version-id-marker", "")
    if version_marker and not key_marker:
        raise argument("A version id marker needs a key marker.")
    reader = call.deps.catalog.reader
    seq = seq_of(reader, bucket.id, key_marker, version_marker) if version_marker else None
    query, encode = _query(call, bucket, key_marker, seq)
    page = list_versions(reader, query)
    last = page.last_item
    body = document(
        "ListVersionsResult",
        [
            tag("Name", bucket.name),
            tag("Prefix", encode(query.prefix)),
            tag("KeyMarker", encode(key_marker)),
            tag("VersionIdMarker", version_marker),
            maybe("NextKeyMarker", encode(page.last) if page.is_truncated else ""),
            maybe("NextVersionIdMarker", last.record.version if page.is_truncated and last else ""),
            *_shape(call, query, encode),
            tag("IsTruncated", boolean(page.is_truncated)),
            *(_version(call, entry, encode) for entry in page.items),
            *_prefixes(page.prefixes, encode),
        ],
    )
    return Answer(200, dict(XML), body)


async def list_all_uploads(call: Call) -> Answer:
    """List multipart uploads that are not complete."""
    bucket = require_bucket(call, READ)
    key_marker = call.query.get("key-marker", "")
    id_marker = call.query.get("upload-id-marker", "") if key_marker else ""
    limit = call.number("max-uploads", PAGE_MAX, PAGE_MAX)
    encode = _encoder(call)
    query = Query(
        bucket=bucket.id,
        prefix=call.query.get("prefix", ""),
        delimiter=call.query.get("delimiter", ""),
        after=key_marker,
        after_id=id_marker or None,
        limit=limit,
    )
    page = list_uploads(call.deps.catalog.reader, query)
    last = page.last_item
    body = document(
        "ListMultipartUploadsResult",
        [
            tag("Bucket", bucket.name),
            tag("KeyMarker", encode(key_marker)),
            tag("UploadIdMarker", id_marker),
            maybe("NextKeyMarker", encode(page.last) if page.is_truncated else ""),
            maybe("NextUploadIdMarker", last.id if page.is_truncated and last else ""),
            tag("Prefix", encode(query.prefix)),
            maybe("Delimiter", encode(query.delimiter)),
            maybe("EncodingType", call.query.get("encoding-type", "")),
            tag("MaxUploads", limit),
            tag("IsTruncated", boolean(page.is_truncated)),
            *(_upload(call, upload, encode) for upload in page.items),
            *_prefixes(page.prefixes, encode),
        ],
    )
    return Answer(200, dict(XML), body)


_Encode = Callable[[str], str]


def _query(
    call: Call, bucket: Bucket, after: str, after_seq: int | None = None
) -> tuple[Query, _Encode]:
    query = Query(
        bucket=bucket.id,
        prefix=call.query.get("prefix", ""),
        delimiter=call.query.get("delimiter", ""),
        after=after,
        after_seq=after_seq,
        limit=call.number("max-keys", PAGE_MAX, PAGE_MAX),
    )
    return query, _encoder(call)


def _encoder(call: Call) -> _Encode:
    kind = call.query.get("encoding-type", "")
    if kind == "url":
        return lambda text: quote(text, safe="-_.~/*")
    if kind:
        raise argument("The encoding type must be url.")
    return lambda text: text


def _shape(call: Call, query: Query, encode: _Encode) -> list[str]:
    return [
        maybe("Delimiter", encode(query.delimiter)),
        tag("MaxKeys", query.limit),
        maybe("EncodingType", call.query.get("encoding-type", "")),
    ]


def _prefixes(prefixes: Sequence[str], encode: _Encode) -> list[str]:
    return [node("CommonPrefixes", tag("Prefix", encode(one))) for one in prefixes]


def _contents(call: Call, entry: Entry, encode: _Encode, has_owner: bool) -> str:
    record = entry.record
    return node(
        "Contents",
        tag("Key", encode(record.key)),
        tag("LastModified", iso(record.modified_ms)),
        tag("ETag", f'"{record.etag}"'),
        *(tag("ChecksumAlgorithm", name) for name in record.checksums),
        maybe("ChecksumType", record.checksum_type),
        tag("Size", record.size_bytes),
        owner_node(call, record.owner) if has_owner else "",
        tag("StorageClass", record.storage_class),
    )


def _version(call: Call, entry: Entry, encode: _Encode) -> str:
    record = entry.record
    start = [
        tag("Key", encode(record.key)),
        tag("VersionId", record.version),
        tag("IsLatest", boolean(entry.is_current)),
        tag("LastModified", iso(record.modified_ms)),
    ]
    if record.is_marker:
        return node("DeleteMarker", *start, owner_node(call, record.owner))
    return node(
        "Version",
        *start,
        tag("ETag", f'"{record.etag}"'),
        *(tag("ChecksumAlgorithm", name) for name in record.checksums),
        tag("Size", record.size_bytes),
        owner_node(call, record.owner),
        tag("StorageClass", record.storage_class),
    )


def _upload(call: Call, upload: Upload, encode: _Encode) -> str:
    record = upload.record
    return node(
        "Upload",
        tag("Key", encode(record.key)),
        tag("UploadId", upload.id),
        owner_node(call, record.owner, "Initiator"),
        owner_node(call, record.owner),
        tag("StorageClass", record.storage_class),
        tag("Initiated", iso(upload.started_ms)),
        maybe("ChecksumAlgorithm", upload.checksum_algorithm),
        maybe("ChecksumType", upload.checksum_type),
    )


def _is_printable(text: str) -> bool:
    return all(character >= " " or character in "\t\n" for character in text)


def _token_of(key: str) -> str:
    return urlsafe_b64encode(key.encode()).decode()


def _key_of(token: str) -> str:
    try:
        return urlsafe_b64decode(token).decode()
    except ValueError:
        raise argument("The continuation token is invalid.") from None
