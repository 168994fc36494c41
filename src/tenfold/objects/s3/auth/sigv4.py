"""Signature Version 4: in the Authorization header and in presigned URLs.

The signature covers the request as it was sent; nothing is trusted before it matches.
"""

import hashlib
import hmac
import re
from functools import lru_cache

from msgspec import Struct

from tenfold.objects.s3.auth.identity import AccessKey, Keys
from tenfold.objects.s3.errors import S3Error
from tenfold.objects.s3.http.head import Head
from tenfold.objects.s3.times import basic_to_ms
from tenfold.objects.s3.uri import canonical_path, canonical_query

ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED = "UNSIGNED-PAYLOAD"
SKEW_MS = 15 * 60_000
EXPIRES_S_MAX = 604_800

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256\s+Credential=([^,\s]+)\s*,\s*SignedHeaders=([^,\s]+)\s*,\s*"
    r"Signature=([0-9a-f]{64})"
)
_NUMBER = re.compile(r"-?[0-9]{1,9}")
_SPACES = re.compile(r"\s+")


class Signature(Struct, frozen=True):
    """A signature that matched, with what signs the chunks of its body."""

    key: AccessKey
    signing_key: bytes
    timestamp: str
    scope: str
    signature: str
    payload: str
    """The value of x-amz-content-sha256."""


class _Claim(Struct, frozen=True):
    """What a request says about its signature."""

    credential: str
    signed_headers: str
    signature: str
    timestamp: str
    payload: str
    query: str


def check_header(head: Head, keys: Keys, now_ms: int) -> Signature:
    """Check the Authorization header."""
    text = head.headers["authorization"]
    match = _AUTHORIZATION.fullmatch(text)
    if match is None:
        raise _malformed(text)
    timestamp = head.headers.get("x-amz-date", "")
    signed_ms = basic_to_ms(timestamp)
    if signed_ms is None:
        raise S3Error("AccessDenied", "A signed request needs the header x-amz-date.")
    if abs(now_ms - signed_ms) > SKEW_MS:
        raise S3Error("RequestTimeTooSkewed")
    payload = head.headers.get("x-amz-content-sha256", "")
    if not payload:
        raise S3Error("InvalidRequest", "A signed request needs the header x-amz-content-sha256.")
    query = canonical_query(head.query)
    return _check(head, _Claim(match[1], match[2], match[3], timestamp, payload, query), keys)


def check_presigned(head: Head, query: dict[str, str], keys: Keys, now_ms: int) -> Signature:
    """Check a presigned URL."""
    names = ("X-Amz-Credential", "X-Amz-SignedHeaders", "X-Amz-Signature", "X-Amz-Date")
    if query.get("X-Amz-Algorithm") != ALGORITHM or any(name not in query for name in names):
        raise S3Error("AuthorizationQueryParametersError")
    expires = query.get("X-Amz-Expires", "")
    signed_ms = basic_to_ms(query["X-Amz-Date"])
    if _NUMBER.fullmatch(expires) is None or signed_ms is None:
        raise S3Error("AuthorizationQueryParametersError")
    if not 1 <= int(expires) <= EXPIRES_S_MAX:
        raise S3Error("AccessDenied", "X-Amz-Expires must be between 1 and 604800 seconds.")
    if now_ms > signed_ms + int(expires) * 1000:
        raise S3Error("AccessDenied", "The presigned URL has expired.")
    if signed_ms > now_ms + SKEW_MS:
        raise S3Error("AccessDenied", "The presigned URL is not valid yet.")
    claim = _Claim(
        query["X-Amz-Credential"],
        query["X-Amz-SignedHeaders"],
        query["X-Amz-Signature"],
        query["X-Amz-Date"],
        head.headers.get("x-amz-content-sha256", query.get("X-Amz-Content-Sha256", UNSIGNED)),
        canonical_query(head.query, without="X-Amz-Signature"),
    )
    return _check(head, claim, keys)


def key_of(credential: str, timestamp: str, keys: Keys) -> tuple[AccessKey, str, bytes]:
    """Return the key of a credential, its scope, and what signs with it."""
    key_id, _, scope = credential.partition("/")
    fields = scope.split("/")
    if len(fields) != 4 or fields[2] != "s3" or fields[3] != "aws4_request":
        raise S3Error("AuthorizationHeaderMalformed")
    if fields[0] != timestamp[:8]:
        raise S3Error("AuthorizationHeaderMalformed", "The credential is for a different date.")
    key = keys.key(key_id)
    if key is None:
        raise S3Error("InvalidAccessKeyId")
    return key, scope, signing_key(key.secret, fields[0], fields[1])


@lru_cache(maxsize=10_000)
def signing_key(secret: str, day: str, region: str) -> bytes:
    """Derive what signs requests of one day in one region."""
    key = f"AWS4{secret}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


def sign(key: bytes, text: str) -> str:
    """Return the signature of a text."""
    return hmac.digest(key, text.encode("latin-1"), "sha256").hex()


def _check(head: Head, claim: _Claim, keys: Keys) -> Signature:
    key, scope, derived = key_of(claim.credential, claim.timestamp, keys)
    request = _canonical_request(head, claim)
    hashed = hashlib.sha256(request.encode("latin-1")).hexdigest()
    expected = sign(derived, f"{ALGORITHM}\n{claim.timestamp}\n{scope}\n{hashed}")
    if not hmac.compare_digest(expected, claim.signature):
        raise S3Error("SignatureDoesNotMatch")
    return Signature(key, derived, claim.timestamp, scope, claim.signature, claim.payload)


def _canonical_request(head: Head, claim: _Claim) -> str:
    names = claim.signed_headers.split(";")
    headers = head.headers
    if "host" not in names:
        raise S3Error("AccessDenied", "The header host must be signed.")
    for name in headers:
        if name.startswith("x-amz-") and name not in names:
            raise S3Error("AccessDenied", f"The header {name} is not signed.")
    lines = [f"{name}:{_value(headers.get(name, ''))}\n" for name in names]
    return (
        f"{head.method}\n{canonical_path(head.path)}\n{claim.query}\n"
        f"{''.join(lines)}\n{claim.signed_headers}\n{claim.payload}"
    )


def _value(value: str) -> str:
    return _SPACES.sub(" ", value.strip()) if "  " in value or "\t" in value else value


def _malformed(text: str) -> S3Error:
    if text.startswith("AWS "):
        return S3Error("InvalidRequest", "Signature Version 2 is not supported; use Version 4.")
    if text.startswith(ALGORITHM):
        return S3Error("AuthorizationHeaderMalformed")
    return S3Error("InvalidArgument", "The type of authorization is not supported.")
