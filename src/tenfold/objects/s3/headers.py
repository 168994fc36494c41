"""Headers of objects: what a request stores with them, and what an answer shows of them."""

from collections.abc import Mapping
from urllib.parse import parse_qsl

from tenfold.objects.catalog.records import NULL_VERSION, Bucket, Lock, LockDefault, ObjectRecord
from tenfold.objects.s3.call import Call
from tenfold.objects.s3.checksums import header_of
from tenfold.objects.s3.errors import S3Error, argument
from tenfold.objects.s3.times import http_date, iso, parse_iso

METADATA_BYTES_MAX = 2_048
TAGS_MAX = 10
DAY_MS = 86_400_000
STORED = (
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-type",
    "expires",
    "x-amz-website-redirect-location",
)
_OVERRIDES = (
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-type",
    "expires",
)
_META = "x-amz-meta-"
_ENCRYPTION = "x-amz-server-side-encryption"
_MODES = ("GOVERNANCE", "COMPLIANCE")


def refuse_unsupported(call: Call) -> None:
    """Refuse headers whose promise is not kept here."""
    for name in call.headers:
        if _ENCRYPTION in name:
            raise S3Error("NotImplemented", "Encryption by the server is not implemented.")


def stored_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that are stored with an object."""
    found = {name: headers[name] for name in STORED if headers.get(name)}
    encoding = found.pop("content-encoding", "")
    kept = [one.strip() for one in encoding.split(",") if one.strip() not in ("", "aws-chunked")]
    if kept:
        found["content-encoding"] = ", ".join(kept)
    found.setdefault("content-type", "binary/octet-stream")
    return found


def metadata_of(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the user metadata of a request."""
    found = {name.removeprefix(_META): headers[name] for name in headers if name.startswith(_META)}
    if sum(len(name) + len(value) for name, value in found.items()) > METADATA_BYTES_MAX:
        raise S3Error("MetadataTooLarge")
    return found


def tags_of_header(text: str) -> dict[str, str]:
    """Parse the header `x-amz-tagging`."""
    pairs = parse_qsl(text, keep_blank_values=True)
    return check_tags(pairs, TAGS_MAX)


def check_tags(pairs: list[tuple[str, str]], most: int) -> dict[str, str]:
    """Return tags that are few, short and distinct."""
    tags = dict(pairs)
    if len(tags) != len(pairs):
        raise S3Error("InvalidTag", "A tag key is given twice.")
    if len(tags) > most:
        raise S3Error(
            "InvalidTag" if most > TAGS_MAX else "BadRequest", f"There may be at most {most} tags."
        )
    for key, value in pairs:
        if not 1 <= len(key) <= 128 or len(value) > 256:
            raise S3Error("InvalidTag", "Tag keys have up to 128 characters, values up to 256.")
    return tags


def storage_class_of(call: Call) -> str:
    """Return the storage class that a request asks for."""
    found = call.headers.get("x-amz-storage-class", "STANDARD")
    if found not in call.deps.settings.tiers:
        raise S3Error("InvalidStorageClass")
    return found


def new_version(call: Call, bucket: Bucket) -> str:
    """Return the id for a version that is written to a bucket now."""
    return call.deps.new_id() if bucket.versioning == "Enabled" else NULL_VERSION


def lock_of(call: Call, bucket: Bucket) -> Lock:
    """Return the lock that a request, or the bucket, puts on a new version."""
    headers = call.headers
    mode = headers.get("x-amz-object-lock-mode", "")
    until = headers.get("x-amz-object-lock-retain-until-date", "")
    hold = headers.get("x-amz-object-lock-legal-hold", "")
    if not (mode or until or hold):
        return _default_lock(bucket.settings.lock_default, call.now_ms)
    if not bucket.settings.has_lock:
        raise S3Error("InvalidRequest", "The bucket has no object lock.")
    if bool(mode) != bool(until):
        raise argument("A retention needs a mode and a date.")
    if hold not in ("", "ON", "OFF"):
        raise argument("The legal hold must be ON or OFF.")
    until_ms = retention(mode, until, call.now_ms) if mode else 0
    return Lock(mode, until_ms, hold == "ON")


def retention(mode: str, until: str, now_ms: int) -> int:
    """Return until when a retention lasts, in milliseconds."""
    if mode not in _MODES:
        raise argument("The retention mode must be GOVERNANCE or COMPLIANCE.")
    until_ms = parse_iso(until)
    if until_ms is None:
        raise argument("The retention date is malformed.")
    if until_ms <= now_ms:
        raise argument("The retention date must be in the future.")
    return until_ms


def _default_lock(default: LockDefault, now_ms: int) -> Lock:
    if not default.mode:
        return Lock()
    return Lock(default.mode, now_ms + (default.days + 365 * default.years) * DAY_MS)


def object_headers(record: ObjectRecord, is_versioned: bool) -> dict[str, str]:
    """Return the headers of an answer about an object, without its length."""
    headers = {
        "last-modified": http_date(record.modified_ms // 1000),
        "etag": f'"{record.etag}"',
        "accept-ranges": "bytes",
        **record.headers,
    }
    for name, value in record.metadata.items():
        headers[f"{_META}{name}"] = value
    if is_versioned:
        headers["x-amz-version-id"] = record.version
    if record.storage_class != "STANDARD":
        headers["x-amz-storage-class"] = record.storage_class
    if record.tags:
        headers["x-amz-tagging-count"] = str(len(record.tags))
    _add_lock(headers, record)
    return headers


def _add_lock(headers: dict[str, str], record: ObjectRecord) -> None:
    lock = record.lock
    if lock.mode:
        headers["x-amz-object-lock-mode"] = lock.mode
        headers["x-amz-object-lock-retain-until-date"] = iso(lock.until_ms)
    if lock.has_legal_hold:
        headers["x-amz-object-lock-legal-hold"] = "ON"
    if record.restored_until_ms:
        until = http_date(record.restored_until_ms // 1000)
        headers["x-amz-restore"] = f'ongoing-request="false", expiry-date="{until}"'


def checksum_headers(record: ObjectRecord) -> dict[str, str]:
    """Return the checksums of a whole object."""
    headers = {header_of(name): value for name, value in record.checksums.items()}
    if headers:
        headers["x-amz-checksum-type"] = record.checksum_type
    return headers


def override(call: Call, headers: dict[str, str]) -> None:
    """Replace headers by what the query of a signed request asks for."""
    given = {
        name: call.query[f"response-{name}"]
        for name in _OVERRIDES
        if f"response-{name}" in call.query
    }
    if not given:
        return
    if call.caller.is_anonymous:
        raise S3Error("InvalidRequest", "Response headers can be set by signed requests only.")
    for name, value in given.items():
        if any(ord(character) < 32 or ord(character) > 255 for character in value):
            raise argument(f"response-{name} has a character that no header may have.")
    headers.update(given)
