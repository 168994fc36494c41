"""DeleteObject and DeleteObjects."""

from msgspec import structs

from tenfold.objects.catalog.records import Bucket, ObjectRecord
from tenfold.objects.catalog.versions import Condition, Deleted, Deletion, delete_version
from tenfold.objects.s3.access import WRITE, require_bucket
from tenfold.objects.s3.call import Call
from tenfold.objects.s3.checksums import claimed
from tenfold.objects.s3.errors import S3Error, s3_error
from tenfold.objects.s3.headers import new_version
from tenfold.objects.s3.http.answer import Answer
from tenfold.objects.s3.ingest import content_md5, write_manifest
from tenfold.objects.s3.times import parse_http_date, parse_iso
from tenfold.objects.s3.uri import check_key
from tenfold.objects.s3.xml import Element, boolean, document, maybe, node, read_xml, tag

KEYS_MAX = 1_000


async def delete_object(call: Call) -> Answer:
    """Delete a key, or one version of it."""
    bucket = require_bucket(call, WRITE)
    headers = call.headers
    check_key(call.key)
    size = headers.get("x-amz-if-match-size", "")
    modified = parse_http_date(headers.get("x-amz-if-match-last-modified-time", ""))
    condition = Condition(
        if_match=headers.get("if-match", ""),
        size_bytes=int(size) if size.isdigit() else -1,
        modified_ms=-1 if modified is None else modified,
    )
    deleted = await _delete(call, bucket, call.key, call.version, condition)
    shown: dict[str, str] = {}
    if deleted.is_marker:
        shown["x-amz-delete-marker"] = "true"
    if deleted.version and bucket.is_versioned:
        shown["x-amz-version-id"] = deleted.version
    return Answer(204, shown)


async def delete_objects(call: Call) -> Answer:
    """Delete up to a thousand keys; each succeeds or fails on its own."""
    bucket = require_bucket(call, WRITE)
    data = await call.document()
    if content_md5(call.headers.get("content-md5")) is None and claimed(call.headers) is None:
        _require_hash(call)
    root = read_xml(data, "Delete")
    wishes = list(root.all("Object"))
    if not wishes or len(wishes) > KEYS_MAX or any(not _key_of(one) for one in wishes):
        raise S3Error("MalformedXML")
    is_quiet = root.value("Quiet").lower() == "true"
    lines: list[str] = []
    for wish in wishes:
        lines.append(await _delete_one(call, bucket, wish, is_quiet))
    return Answer(200, {"content-type": "application/xml"}, document("DeleteResult", lines))


def _require_hash(call: Call) -> None:
    """A list of keys to delete must not be damaged on its way."""
    payload = call.headers.get("x-amz-content-sha256", "UNSIGNED-PAYLOAD")
    if payload == "UNSIGNED-PAYLOAD":
        raise S3Error("InvalidRequest", "DeleteObjects needs a Content-MD5 or a checksum.")


async def _delete_one(call: Call, bucket: Bucket, wish: Element, is_quiet: bool) -> str:
    key = _key_of(wish)
    version = wish.value("VersionId")
    modified = parse_http_date(wish.value("LastModifiedTime"))
    if modified is None:
        modified = parse_iso(wish.value("LastModifiedTime"))
    size = wish.value("Size")
    condition = Condition(
        if_match=wish.value("ETag"),
        size_bytes=int(size) if size.isdigit() else -1,
        modified_ms=-1 if modified is None else modified,
    )
    try:
        check_key(key)
        deleted = await _delete(call, bucket, key, version, condition)
    except Exception as raised:
        error = s3_error(raised)
        if error is None:
            raise
        return node(
            "Error",
            tag("Key", key),
            maybe("VersionId", version),
            tag("Code", error.code),
            tag("Message", error.message),
        )
    if is_quiet:
        return ""
    marker_version = deleted.version if deleted.is_marker else ""
    return node(
        "Deleted",
        tag("Key", key),
        maybe("VersionId", version),
        maybe("DeleteMarker", boolean(True) if deleted.is_marker else ""),
        maybe("DeleteMarkerVersionId", marker_version),
    )


def _key_of(wish: Element) -> str:
    """Return a key as it is: spaces belong to it."""
    found = wish.first("Key")
    return "" if found is None else found.text


async def _delete(
    call: Call, bucket: Bucket, key: str, version: str, condition: Condition
) -> Deleted:
    bypass = call.headers.get("x-amz-bypass-governance-retention", "").lower() == "true"
    wish = Deletion(
        key=key,
        version=version,
        bypass_governance=bypass and call.caller.team == bucket.team,
        condition=condition,
    )
    if not version and bucket.is_versioned:
        marker = ObjectRecord(
            key=key,
            version=new_version(call, bucket),
            is_marker=True,
            modified_ms=call.deps.now_ms(),
            owner=call.caller.team or bucket.team,
        )
        manifest = await write_manifest(call, marker)
        wish = structs.replace(wish, marker=structs.replace(marker, manifest=manifest))
    now_ms = call.deps.now_ms()
    try:
        return await call.deps.catalog.write(lambda c: delete_version(c, bucket.id, wish, now_ms))
    except Exception:
        if wish.marker is not None and wish.marker.manifest is not None:
            await call.deps.blobs.delete(wish.marker.manifest)
        raise
