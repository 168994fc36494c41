"""CORS: which web pages may call a bucket from a browser."""

import re
from functools import lru_cache

from msgspec import structs

from tenfold.objects.catalog.buckets import change_settings, find_bucket
from tenfold.objects.catalog.records import Bucket, BucketSettings, CorsRule
from tenfold.objects.s3.access import require_owner
from tenfold.objects.s3.call import Call
from tenfold.objects.s3.errors import S3Error
from tenfold.objects.s3.http.answer import Answer
from tenfold.objects.s3.operations.buckets import XML
from tenfold.objects.s3.xml import Element, document, maybe, node, read_xml, tag

RULES_MAX = 100
_METHODS = ("GET", "PUT", "HEAD", "POST", "DELETE")


async def get_cors(call: Call) -> Answer:
    """Send the rules of a bucket."""
    bucket = require_owner(call)
    if not bucket.settings.cors:
        raise S3Error("NoSuchCORSConfiguration")
    rules = [
        node(
            "CORSRule",
            maybe("ID", rule.id),
            *(tag("AllowedOrigin", one) for one in rule.origins),
            *(tag("AllowedMethod", one) for one in rule.methods),
            *(tag("AllowedHeader", one) for one in rule.headers),
            *(tag("ExposeHeader", one) for one in rule.exposed),
            maybe("MaxAgeSeconds", rule.max_age_s),
        )
        for rule in bucket.settings.cors
    ]
    return Answer(200, dict(XML), document("CORSConfiguration", rules))


async def put_cors(call: Call) -> Answer:
    """Replace the rules of a bucket."""
    bucket = require_owner(call)
    root = read_xml(await call.document(), "CORSConfiguration")
    rules = tuple(_rule(element) for element in root.all("CORSRule"))
    if not 1 <= len(rules) <= RULES_MAX:
        raise S3Error("MalformedXML")
    await _set(call, bucket, rules)
    return Answer(200)


async def delete_cors(call: Call) -> Answer:
    """Remove the rules of a bucket."""
    await _set(call, require_owner(call), ())
    return Answer(204)


async def preflight(call: Call) -> Answer:
    """Answer what a browser asks before a request."""
    origin = call.headers.get("origin", "")
    method = call.headers.get("access-control-request-method", "")
    if not origin or not method:
        raise S3Error("BadRequest", "A preflight request names its origin and method.")
    bucket = find_bucket(call.deps.catalog.reader, call.bucket_name)
    headers = call.headers.get("access-control-request-headers", "")
    rule = _matching(bucket, origin, method, headers)
    if rule is None:
        raise S3Error("AccessDenied", "The bucket does not allow this origin and method.")
    answer = _allowed(rule, origin)
    if headers:
        answer["access-control-allow-headers"] = headers.lower()
    if rule.max_age_s is not None:
        answer["access-control-max-age"] = str(rule.max_age_s)
    return Answer(200, answer)


def add_cors(call: Call, answer: Answer) -> None:
    """Tell a browser that it may show an answer to the page that asked."""
    origin = call.headers.get("origin")
    if not origin or not call.bucket_name:
        return
    bucket = find_bucket(call.deps.catalog.reader, call.bucket_name)
    method = call.headers.get("access-control-request-method", call.method)
    rule = _matching(bucket, origin, method, "")
    if rule is not None:
        answer.headers.update(_allowed(rule, origin))


def _allowed(rule: CorsRule, origin: str) -> dict[str, str]:
    is_open = "*" in rule.origins
    headers = {
        "access-control-allow-origin": "*" if is_open else origin,
        "access-control-allow-methods": ", ".join(rule.methods),
        "vary": "Origin",
    }
    if rule.exposed:
        headers["access-control-expose-headers"] = ", ".join(rule.exposed)
    return headers


def _matching(bucket: Bucket | None, origin: str, method: str, headers: str) -> CorsRule | None:
    if bucket is None:
        return None
    wanted = [one.strip().lower() for one in headers.split(",") if one.strip()]
    for rule in bucket.settings.cors:
        if (
            method in rule.methods
            and any(_like(pattern).fullmatch(origin) for pattern in rule.origins)
            and all(any(_like(p.lower()).fullmatch(one) for p in rule.headers) for one in wanted)
        ):
            return rule
    return None


@lru_cache(maxsize=1_024)
def _like(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in pattern.split("*")))


def _rule(element: Element) -> CorsRule:
    age = element.value("MaxAgeSeconds")
    rule = CorsRule(
        id=element.value("ID"),
        origins=_texts(element, "AllowedOrigin"),
        methods=_texts(element, "AllowedMethod"),
        headers=_texts(element, "AllowedHeader"),
        exposed=_texts(element, "ExposeHeader"),
        max_age_s=int(age) if age.isdigit() else None,
    )
    is_valid = rule.origins and rule.methods and all(one in _METHODS for one in rule.methods)
    patterns = (*rule.origins, *rule.headers)
    if not is_valid or any(one.count("*") > 1 for one in patterns):
        raise S3Error("MalformedXML")
    if any("\r" in one or "\n" in one for one in (*rule.exposed, *patterns)):
        raise S3Error("MalformedXML")
    return rule


def _texts(element: Element, name: str) -> tuple[str, ...]:
    return tuple(one.text.strip() for one in element.all(name))


async def _set(call: Call, bucket: Bucket, rules: tuple[CorsRule, ...]) -> None:
    def change(settings: BucketSettings) -> BucketSettings:
        return structs.replace(settings, cors=rules)

    await call.deps.catalog.write(lambda c: change_settings(c, bucket.id, change))
