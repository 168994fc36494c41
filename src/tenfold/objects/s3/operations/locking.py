"""Object lock: the configuration of buckets, retention and legal hold of versions."""

from msgspec import structs

from tenfold.objects.catalog.buckets import change_settings
from tenfold.objects.catalog.records import (
    Bucket,
    BucketSettings,
    Lock,
    LockDefault,
    ObjectRecord,
    Refusal,
)
from tenfold.objects.s3.access import require_owner
from tenfold.objects.s3.call import Call
from tenfold.objects.s3.errors import S3Error
from tenfold.objects.s3.headers import retention
from tenfold.objects.s3.http.answer import Answer
from tenfold.objects.s3.operations.buckets import XML
from tenfold.objects.s3.operations.changing import change_object
from tenfold.objects.s3.operations.reading import existing
from tenfold.objects.s3.times import iso
from tenfold.objects.s3.xml import document, node, read_xml, tag

YEARS_MAX = 100


async def get_configuration(call: Call) -> Answer:
    """Send whether a bucket has object lock, and its default retention."""
    bucket = require_owner(call)
    if not bucket.settings.has_lock:
        raise S3Error("ObjectLockConfigurationNotFoundError")
    default = bucket.settings.lock_default
    rule = ""
    if default.mode:
        length = tag("Days", default.days) if default.days else tag("Years", default.years)
        rule = node("Rule", node("DefaultRetention", tag("Mode", default.mode), length))
    body = document("ObjectLockConfiguration", [tag("ObjectLockEnabled", "Enabled"), rule])
    return Answer(200, dict(XML), body)


async def put_configuration(call: Call) -> Answer:
    """Set the default retention of a bucket; lock stays on once it is on."""
    bucket = require_owner(call)
    root = read_xml(await call.document(), "ObjectLockConfiguration")
    if root.value("ObjectLockEnabled") != "Enabled":
        raise S3Error("MalformedXML")
    if bucket.versioning != "Enabled":
        raise S3Error("InvalidBucketState", "Object lock needs versioning.")
    default = LockDefault()
    rule = root.first("Rule")
    if rule is not None:
        default = _default(
            rule.value("DefaultRetention", "Mode"),
            rule.value("DefaultRetention", "Days"),
            rule.value("DefaultRetention", "Years"),
        )

    def change(settings: BucketSettings) -> BucketSettings:
        return structs.replace(settings, has_lock=True, lock_default=default)

    await call.deps.catalog.write(lambda c: change_settings(c, bucket.id, change))
    return Answer(200)


def _default(mode: str, days: str, years: str) -> LockDefault:
    if mode not in ("GOVERNANCE", "COMPLIANCE") or bool(days) == bool(years):
        raise S3Error("MalformedXML")
    length = days or years
    if not length.lstrip("-").isdigit():
        raise S3Error("MalformedXML")
    most = 365 * YEARS_MAX if days else YEARS_MAX
    if not 1 <= int(length) <= most:
        raise S3Error("InvalidRetentionPeriod")
    return LockDefault(mode, int(days or 0), int(years or 0))


async def get_retention(call: Call) -> Answer:
    """Send until when a version is protected."""
    _, record = _locked(call)
    lock = record.lock
    if not lock.mode:
        raise S3Error("NoSuchObjectLockConfiguration")
    body = document(
        "Retention", [tag("Mode", lock.mode), tag("RetainUntilDate", iso(lock.until_ms))]
    )
    return Answer(200, dict(XML), body)


async def put_retention(call: Call) -> Answer:
    """Protect a version, or change for how long."""
    _, record = _locked(call)
    root = read_xml(await call.document(), "Retention")
    mode, until = root.value("Mode"), root.value("RetainUntilDate")
    if mode not in ("GOVERNANCE", "COMPLIANCE") or not until:
        raise S3Error("MalformedXML")
    until_ms = retention(mode, until, call.now_ms)
    bypass = call.headers.get("x-amz-bypass-governance-retention", "").lower() == "true"
    now_ms = call.now_ms

    def change(found: ObjectRecord) -> ObjectRecord:
        _check_weaker(found.lock, Lock(mode, until_ms), now_ms, bypass)
        lock = structs.replace(found.lock, mode=mode, until_ms=until_ms)
        return structs.replace(found, lock=lock)

    await change_object(call, record, change)
    return Answer(200)


def _check_weaker(old: Lock, new: Lock, now_ms: int, bypass: bool) -> None:
    """Refuse to make a retention shorter, or to leave compliance."""
    if not old.mode or old.until_ms <= now_ms:
        return
    is_weaker = new.until_ms < old.until_ms or (old.mode == "COMPLIANCE" and new.mode != old.mode)
    # From governance to compliance is stronger, but only its owner may decide that.
    is_changed = old.mode == "GOVERNANCE" and new.mode != old.mode
    if old.mode == "COMPLIANCE" and is_weaker:
        raise Refusal("AccessDenied", "The version is protected in compliance mode.")
    if old.mode == "GOVERNANCE" and (is_weaker or is_changed) and not bypass:
        raise Refusal("AccessDenied", "The version is protected in governance mode.")


async def get_legal_hold(call: Call) -> Answer:
    """Send whether a version is under legal hold."""
    _, record = _locked(call)
    status = "ON" if record.lock.has_legal_hold else "OFF"
    return Answer(200, dict(XML), document("LegalHold", [tag("Status", status)]))


async def put_legal_hold(call: Call) -> Answer:
    """Set or lift a legal hold."""
    _, record = _locked(call)
    status = read_xml(await call.document(), "LegalHold").value("Status")
    if status not in ("ON", "OFF"):
        raise S3Error("MalformedXML")

    def change(found: ObjectRecord) -> ObjectRecord:
        return structs.replace(
            found, lock=structs.replace(found.lock, has_legal_hold=status == "ON")
        )

    await change_object(call, record, change)
    return Answer(200)


def _locked(call: Call) -> tuple[Bucket, ObjectRecord]:
    bucket = require_owner(call)
    if not bucket.settings.has_lock:
        raise S3Error("InvalidRequest", "The bucket has no object lock.")
    return bucket, existing(call, bucket, call.key, call.version)
