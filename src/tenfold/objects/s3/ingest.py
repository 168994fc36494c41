"""Bodies into blobs: hashed and written as they arrive, checked before they are committed."""

import asyncio
import hashlib
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error

import msgspec
from msgspec import Struct

from tenfold.objects.blobs.refs import BlobRef, BlobWriter
from tenfold.objects.catalog.moves import Description
from tenfold.objects.catalog.records import Bucket, ObjectRecord
from tenfold.objects.s3.auth.payload import AwsChunks
from tenfold.objects.s3.call import Call
from tenfold.objects.s3.checksums import check_value, claimed, header_of, start_checksum, wanted
from tenfold.objects.s3.errors import S3Error
from tenfold.objects.s3.http.body import Readable

INLINE_BYTES = 64 << 10
"""Below this, hashing costs less than the switch to another thread."""

_SHA256 = re.compile(r"[0-9a-f]{64}")
_ENCODER = msgspec.json.Encoder()


class Received(Struct, frozen=True):
    """What was received: its size, MD5 and checksum in base64."""

    size_bytes: int
    md5: str
    algorithm: str
    checksum: str


class Expected(Struct, frozen=True, kw_only=True):
    """What the client says about a body."""

    size_bytes: int | None = None
    size_bytes_max: int
    md5: bytes | None = None
    sha256: str = ""
    algorithm: str = ""
    checksum: str = ""
    """Empty where a trailer brings it, or nobody asked for one."""


class _Digests:
    def __init__(self, expected: Expected) -> None:
        self.md5 = hashlib.md5(usedforsecurity=False)
        self._sha256 = hashlib.sha256() if expected.sha256 else None
        self._checksum = start_checksum(expected.algorithm) if expected.algorithm else None

    def update(self, data: bytes) -> None:
        self.md5.update(data)
        if self._sha256 is not None:
            self._sha256.update(data)
        if self._checksum is not None:
            self._checksum.update(data)

    @property
    def sha256(self) -> str:
        return self._sha256.hexdigest() if self._sha256 is not None else ""

    @property
    def checksum(self) -> str:
        return b64encode(self._checksum.digest()).decode() if self._checksum is not None else ""


def expected_of(call: Call, size_bytes_max: int) -> Expected:
    """Return what the headers of a request say about its body; a length is required."""
    headers = call.headers
    size_bytes = call.request.body.length
    if isinstance(call.payload, AwsChunks):
        text = headers.get("x-amz-decoded-content-length", "")
        if text and not text.isdigit():
            raise S3Error("InvalidArgument", "x-amz-decoded-content-length is not a number.")
        size_bytes = int(text) if text else None
    elif "content-length" not in headers and size_bytes is not None:
        raise S3Error("MissingContentLength")
    if size_bytes is not None and size_bytes > size_bytes_max:
        raise S3Error("EntityTooLarge")
    payload = headers.get("x-amz-content-sha256", "")
    given = claimed(headers)
    return Expected(
        size_bytes=size_bytes,
        size_bytes_max=size_bytes_max,
        md5=content_md5(headers.get("content-md5")),
        sha256=payload if _SHA256.fullmatch(payload) else "",
        algorithm=wanted(headers),
        checksum=given[1] if given else "",
    )


def content_md5(text: str | None) -> bytes | None:
    """Decode a Content-MD5 header."""
    if text is None:
        return None
    try:
        digest = b64decode(text, validate=True)
    except (Base64Error, ValueError):
        digest = b""
    if len(digest) != 16:
        raise S3Error("InvalidDigest")
    return digest


async def receive(payload: Readable, writer: BlobWriter, expected: Expected) -> Received:
    """Write a body to a blob and check it; the blob is not committed yet."""
    digests = _Digests(expected)
    size_bytes = 0
    loop = asyncio.get_running_loop()
    while data := await payload.read():
        size_bytes += len(data)
        if size_bytes > expected.size_bytes_max:
            raise S3Error("EntityTooLarge")
        if len(data) < INLINE_BYTES:
            digests.update(data)
            await writer.write(data)
        else:
            hashed = loop.run_in_executor(None, digests.update, data)
            try:
                await writer.write(data)
            finally:
                await hashed
    if expected.size_bytes is not None and size_bytes != expected.size_bytes:
        raise S3Error("IncompleteBody")
    trailers = payload.trailers if isinstance(payload, AwsChunks) else {}
    _compare(digests, expected, trailers)
    return Received(size_bytes, digests.md5.hexdigest(), expected.algorithm, digests.checksum)


def _compare(digests: _Digests, expected: Expected, trailers: dict[str, str]) -> None:
    if expected.md5 is not None and digests.md5.digest() != expected.md5:
        raise S3Error("BadDigest", "The Content-MD5 does not match the body.")
    if expected.sha256 and digests.sha256 != expected.sha256:
        raise S3Error("XAmzContentSHA256Mismatch")
    if not expected.algorithm:
        return
    name = header_of(expected.algorithm)
    claim = expected.checksum or trailers.get(name, "")
    if name in trailers:
        check_value(expected.algorithm, trailers[name])
    if claim and claim != digests.checksum:
        raise S3Error("BadDigest", f"The {expected.algorithm} does not match the body.")


def describe(bucket: Bucket, record: ObjectRecord, upload: str = "") -> bytes:
    """Return what a blob says about its row; a part also names its upload."""
    return _ENCODER.encode(
        Description(
            bucket=bucket.name,
            team=bucket.team,
            versioning=bucket.versioning,
            has_lock=bucket.settings.has_lock,
            record=record,
            is_part=bool(upload),
            upload=upload,
        )
    )


async def write_manifest(call: Call, record: ObjectRecord) -> BlobRef:
    """Write an empty blob that describes a version which no data blob can describe."""
    writer = call.deps.blobs.create(call.deps.settings.tiers["STANDARD"], 0)
    return await writer.commit(describe(call.bucket, record))
