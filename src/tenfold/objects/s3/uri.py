"""Paths and queries: decoded for use, encoded as signatures and listings want them."""

import re
from urllib.parse import quote, unquote_to_bytes

from tenfold.objects.s3.errors import S3Error

KEY_BYTES_MAX = 1_024

_PLAIN_PATH = re.compile(r"[A-Za-z0-9\-._~/]*")
_PLAIN_VALUE = re.compile(r"[A-Za-z0-9\-._~]*")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.\-]{1,61}[a-z0-9]")
_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+")


def encode_value(text: str) -> str:
    """Percent-encode everything but unreserved characters."""
    return text if _PLAIN_VALUE.fullmatch(text) else quote(text, safe="-_.~")


def encode_path(text: str) -> str:
    """Percent-encode everything but unreserved characters and slashes."""
    return text if _PLAIN_PATH.fullmatch(text) else quote(text, safe="-_.~/")


def decode_text(raw: str) -> str:
    """Decode percent-encoded UTF-8 of the wire."""
    if "%" not in raw and raw.isascii():
        return raw
    try:
        return unquote_to_bytes(raw.encode("latin-1")).decode()
    except UnicodeDecodeError:
        raise S3Error("InvalidURI", "The URI is not UTF-8.") from None


def parse_query(raw: str) -> dict[str, str]:
    """Parse a query; of a repeated name the first counts, as for S3."""
    found: dict[str, str] = {}
    if not raw:
        return found
    for pair in raw.split("&"):
        name, _, value = pair.partition("=")
        if name or value:
            text = decode_text(value.replace("+", " ")) if value else ""
            found.setdefault(decode_text(name), text)
    return found


def canonical_path(raw: str) -> str:
    """Return a path as it is signed: encoded once, however the client wrote it."""
    if _PLAIN_PATH.fullmatch(raw):
        return raw
    return quote(unquote_to_bytes(raw.encode("latin-1")), safe="-_.~/")


def canonical_query(raw: str, without: str = "") -> str:
    """Return a query as it is signed: encoded, sorted, without the signature itself."""
    if not raw:
        return ""
    pairs: list[tuple[str, str]] = []
    for pair in raw.split("&"):
        if not pair:
            continue
        name, _, value = pair.partition("=")
        encoded = _canonical(name)
        if encoded != without:
            pairs.append((encoded, _canonical(value)))
    pairs.sort()
    return "&".join(f"{name}={value}" for name, value in pairs)


def _canonical(raw: str) -> str:
    if _PLAIN_VALUE.fullmatch(raw):
        return raw
    # A plus is a space in queries; a literal plus arrives as %2B.
    return quote(unquote_to_bytes(raw.replace("+", " ").encode("latin-1")), safe="-_.~")


def check_bucket_name(name: str) -> None:
    """Refuse a name that is no valid bucket name."""
    if (
        _BUCKET.fullmatch(name) is None
        or ".." in name
        or "-." in name
        or ".-" in name
        or _ADDRESS.fullmatch(name)
    ):
        raise S3Error("InvalidBucketName")


def check_key(key: str) -> None:
    """Refuse a key that cannot be stored."""
    if len(key) > KEY_BYTES_MAX // 4 and len(key.encode()) > KEY_BYTES_MAX:
        raise S3Error("KeyTooLongError")
