"""Lifecycle configurations: read, checked, stored and sent; `serve/upkeep` acts on them."""

from msgspec import structs

from tenfold.objects.catalog.buckets import change_settings
from tenfold.objects.catalog.records import Bucket, BucketSettings, LifecycleRule, Transition
from tenfold.objects.s3.access import require_owner
from tenfold.objects.s3.call import Call
from tenfold.objects.s3.errors import S3Error, argument
from tenfold.objects.s3.http.answer import Answer
from tenfold.objects.s3.operations.buckets import XML
from tenfold.objects.s3.times import iso, parse_iso
from tenfold.objects.s3.xml import Element, document, maybe, node, read_xml, tag

RULES_MAX = 1_000
DAY_MS = 86_400_000
_ACTIONS = (
    "Expiration",
    "Transition",
    "NoncurrentVersionExpiration",
    "NoncurrentVersionTransition",
    "AbortIncompleteMultipartUpload",
)


async def get_lifecycle(call: Call) -> Answer:
    """Send the rules of a bucket."""
    bucket = require_owner(call)
    if not bucket.settings.lifecycle:
        raise S3Error("NoSuchLifecycleConfiguration")
    rules = [_node(rule) for rule in bucket.settings.lifecycle]
    return Answer(200, dict(XML), document("LifecycleConfiguration", rules))


async def put_lifecycle(call: Call) -> Answer:
    """Replace the rules of a bucket."""
    bucket = require_owner(call)
    root = read_xml(await call.document(), "LifecycleConfiguration")
    rules = tuple(_rule(call, at, one) for at, one in enumerate(root.all("Rule")))
    if not 1 <= len(rules) <= RULES_MAX:
        raise S3Error("MalformedXML")
    if len({rule.id for rule in rules}) != len(rules):
        raise argument("Rule IDs must be distinct.")
    await _set(call, bucket, rules)
    return Answer(200)


async def delete_lifecycle(call: Call) -> Answer:
    """Remove the rules of a bucket."""
    await _set(call, require_owner(call), ())
    return Answer(204)


async def _set(call: Call, bucket: Bucket, rules: tuple[LifecycleRule, ...]) -> None:
    def change(settings: BucketSettings) -> BucketSettings:
        return structs.replace(settings, lifecycle=rules)

    await call.deps.catalog.write(lambda c: change_settings(c, bucket.id, change))


def _rule(call: Call, at: int, element: Element) -> LifecycleRule:
    name = element.value("ID") or f"rule-{at + 1}-{call.deps.new_id()[:8]}"
    status = element.value("Status")
    if status not in ("Enabled", "Disabled") or not any(element.has(one) for one in _ACTIONS):
        raise S3Error("MalformedXML")
    if len(name) > 255:
        raise argument("A rule ID has at most 255 characters.")
    rule = LifecycleRule(
        id=name,
        is_enabled=status == "Enabled",
        abort_upload_days=_days(element, "AbortIncompleteMultipartUpload", "DaysAfterInitiation"),
        noncurrent_days=_days(element, "NoncurrentVersionExpiration", "NoncurrentDays"),
        noncurrent_kept=_days(element, "NoncurrentVersionExpiration", "NewerNoncurrentVersions"),
        transitions=tuple(_transition(call, one) for one in element.all("Transition")),
        noncurrent_transitions=tuple(
            _transition(call, one) for one in element.all("NoncurrentVersionTransition")
        ),
    )
    return _with_expiration(_with_filter(rule, element), element)


def _with_filter(rule: LifecycleRule, element: Element) -> LifecycleRule:
    chosen = element.first("Filter")
    if chosen is None:
        return structs.replace(rule, prefix=element.value("Prefix"), has_filter=False)
    inner = chosen.first("And") or chosen
    tags = {one.value("Key"): one.value("Value") for one in inner.all("Tag")}
    return structs.replace(
        rule,
        prefix=inner.value("Prefix"),
        tags=tags,
        size_bytes_over=_size(inner, "ObjectSizeGreaterThan"),
        size_bytes_under=_size(inner, "ObjectSizeLessThan"),
    )


def _with_expiration(rule: LifecycleRule, element: Element) -> LifecycleRule:
    found = element.first("Expiration")
    if found is None:
        return rule
    at_ms = _midnight(found.value("Date")) if found.has("Date") else 0
    days = _days(element, "Expiration", "Days")
    lone = found.value("ExpiredObjectDeleteMarker").lower() == "true"
    if sum([found.has("Date"), found.has("Days"), lone]) > 1:
        raise S3Error("MalformedXML")
    return structs.replace(rule, expire_days=days, expire_at_ms=at_ms, expire_lone_markers=lone)


def _midnight(text: str) -> int:
    at_ms = parse_iso(text)
    if at_ms is None:
        raise S3Error("MalformedXML")
    if at_ms % DAY_MS:
        raise argument("A date in a rule must be at midnight UTC.")
    return at_ms


def _transition(call: Call, element: Element) -> Transition:
    storage_class = element.value("StorageClass")
    if storage_class not in call.deps.settings.tiers:
        raise S3Error("InvalidStorageClass", f"The storage class {storage_class} is unknown.")
    days = element.value("Days") or element.value("NoncurrentDays")
    if days and not days.isdigit():
        raise S3Error("MalformedXML")
    at_ms = _midnight(element.value("Date")) if element.has("Date") else 0
    kept = element.value("NewerNoncurrentVersions")
    return Transition(
        storage_class=storage_class,
        days=int(days or 0),
        at_ms=at_ms,
        kept=int(kept) if kept.isdigit() else 0,
    )


def _days(element: Element, action: str, name: str) -> int:
    found = element.first(action)
    if found is None or not found.has(name):
        return 0
    text = found.value(name)
    if not text.isdigit() or int(text) < 1:
        raise argument(f"{name} must be a positive number.")
    return int(text)


def _size(element: Element, name: str) -> int:
    text = element.value(name)
    return int(text) if text.isdigit() else -1


def _node(rule: LifecycleRule) -> str:
    return node(
        "Rule",
        tag("ID", rule.id),
        _filter(rule) if rule.has_filter else tag("Prefix", rule.prefix),
        tag("Status", "Enabled" if rule.is_enabled else "Disabled"),
        _expiration(rule),
        *(_shown(one, "Transition", "Days") for one in rule.transitions),
        _noncurrent(rule),
        *(
            _shown(one, "NoncurrentVersionTransition", "NoncurrentDays")
            for one in rule.noncurrent_transitions
        ),
        node("AbortIncompleteMultipartUpload", tag("DaysAfterInitiation", rule.abort_upload_days))
        if rule.abort_upload_days
        else "",
    )


def _filter(rule: LifecycleRule) -> str:
    parts = [
        tag("Prefix", rule.prefix) if rule.prefix else "",
        *(node("Tag", tag("Key", k), tag("Value", v)) for k, v in rule.tags.items()),
        tag("ObjectSizeGreaterThan", rule.size_bytes_over) if rule.size_bytes_over >= 0 else "",
        tag("ObjectSizeLessThan", rule.size_bytes_under) if rule.size_bytes_under >= 0 else "",
    ]
    shown = [part for part in parts if part]
    if not shown:
        return node("Filter", tag("Prefix", ""))
    return node("Filter", node("And", *shown) if len(shown) > 1 else shown[0])


def _expiration(rule: LifecycleRule) -> str:
    if rule.expire_days:
        return node("Expiration", tag("Days", rule.expire_days))
    if rule.expire_at_ms:
        return node("Expiration", tag("Date", iso(rule.expire_at_ms)))
    if rule.expire_lone_markers:
        return node("Expiration", tag("ExpiredObjectDeleteMarker", "true"))
    return ""


def _noncurrent(rule: LifecycleRule) -> str:
    if not rule.noncurrent_days:
        return ""
    return node(
        "NoncurrentVersionExpiration",
        tag("NoncurrentDays", rule.noncurrent_days),
        maybe("NewerNoncurrentVersions", rule.noncurrent_kept or ""),
    )


def _shown(one: Transition, name: str, days: str) -> str:
    return node(
        name,
        tag("Date", iso(one.at_ms)) if one.at_ms else tag(days, one.days),
        maybe("NewerNoncurrentVersions", one.kept or ""),
        tag("StorageClass", one.storage_class),
    )
