"""Signature Version 2 in presigned URLs, and there alone.

boto3 makes such URLs for us-east-1 by default. Headers signed by Version 2 are refused.
"""

import hmac
from base64 import b64encode

from tenfold.objects.s3.auth.identity import Keys
from tenfold.objects.s3.auth.sigv4 import EXPIRES_S_MAX, UNSIGNED, Signature
from tenfold.objects.s3.errors import S3Error
from tenfold.objects.s3.http.head import Head
from tenfold.objects.s3.uri import decode_text

_NAMES = ("AWSAccessKeyId", "Signature", "Expires")
_SUBRESOURCES = frozenset(
    {
        "acl",
        "cors",
        "delete",
        "lifecycle",
        "location",
        "logging",
        "notification",
        "partNumber",
        "policy",
        "requestPayment",
        "response-cache-control",
        "response-content-disposition",
        "response-content-encoding",
        "response-content-language",
        "response-content-type",
        "response-expires",
        "restore",
        "tagging",
        "torrent",
        "uploadId",
        "uploads",
        "versionId",
        "versioning",
        "versions",
        "website",
    }
)


def is_presigned_v2(query: dict[str, str]) -> bool:
    """Return whether a URL claims to be signed by Version 2."""
    return "AWSAccessKeyId" in query


def check_presigned_v2(
    head: Head, query: dict[str, str], bucket_of_host: str, keys: Keys, now_ms: int
) -> Signature:
    """Check a URL; `bucket_of_host` is the bucket that the host names, if it does."""
    if any(name not in query for name in _NAMES):
        raise S3Error("AccessDenied", "Query-string authentication needs Signature and Expires.")
    expires = query["Expires"]
    if not expires.isdigit() or len(expires) > 12:
        raise S3Error("AccessDenied", "Expires must be a time in seconds.")
    expires_ms = int(expires) * 1000
    if now_ms > expires_ms:
        raise S3Error("AccessDenied", "The presigned URL has expired.")
    if expires_ms > now_ms + EXPIRES_S_MAX * 1000:
        raise S3Error("AccessDenied", "A presigned URL is valid for at most 604800 seconds.")
    key = keys.key(query["AWSAccessKeyId"])
    if key is None:
        raise S3Error("InvalidAccessKeyId")
    text = _text(head, expires, bucket_of_host)
    wanted = b64encode(hmac.digest(key.secret.encode(), text.encode("latin-1"), "sha1")).decode()
    if not hmac.compare_digest(wanted.encode(), query["Signature"].encode()):
        raise S3Error("SignatureDoesNotMatch")
    return Signature(key, b"", "", "", "", UNSIGNED)


def _text(head: Head, expires: str, bucket_of_host: str) -> str:
    """Return what was signed: the method, a few headers, the path and some of the query."""
    headers = head.headers
    lines = [
        head.method,
        headers.get("content-md5", ""),
        headers.get("content-type", ""),
        expires,
        *(f"{name}:{headers[name]}" for name in sorted(headers) if name.startswith("x-amz-")),
    ]
    folder = f"/{bucket_of_host}" if bucket_of_host else ""
    signed = sorted(_signed_pairs(head.query))
    return "\n".join([*lines, f"{folder}{head.path}" + ("?" if signed else "") + "&".join(signed)])


def _signed_pairs(raw: str) -> list[str]:
    pairs: list[str] = []
    for pair in raw.split("&"):
        name, equals, value = pair.partition("=")
        if name not in _SUBRESOURCES:
            continue
        # Values are signed as they are meant, not as they are written in the URL.
        value = decode_text(value).encode().decode("latin-1")
        pairs.append(f"{name}{equals if value else ''}{value}")
    return pairs
