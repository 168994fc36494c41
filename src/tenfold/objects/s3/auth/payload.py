"""Bodies whose content is signed: checked against a hash, or chunk by chunk.

The chunks of `aws-chunked` are signed one by one, or not at all; trailers carry checksums.
"""

import hashlib
import hmac

from tenfold.objects.s3.auth.sigv4 import Signature, sign
from tenfold.objects.s3.errors import S3Error
from tenfold.objects.s3.http.body import Readable
from tenfold.objects.s3.http.chunks import BadChunk, ChunkParser

STREAMING_PREFIX = "STREAMING-"
_EMPTY = hashlib.sha256(b"").hexdigest()
_KINDS = {
    "STREAMING-AWS4-HMAC-SHA256-PAYLOAD": (True, False),
    "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER": (True, True),
    "STREAMING-UNSIGNED-PAYLOAD-TRAILER": (False, True),
}
_DERIVED = "AWS4-HMAC-SHA256-PAYLOAD"
_DERIVED_TRAILER = "AWS4-HMAC-SHA256-TRAILER"


class AwsChunks:
    """Decodes `aws-chunked`; raises before it returns bytes of a chunk with a bad signature."""

    def __init__(self, body: Readable, kind: str, signature: Signature | None) -> None:
        if kind not in _KINDS:
            raise S3Error("NotImplemented", f"The payload {kind} is not supported.")
        is_signed, self._has_trailer = _KINDS[kind]
        if is_signed and signature is None:
            raise S3Error("AccessDenied", "Signed chunks need a signed request.")
        self._signature = signature if is_signed else None
        self._previous = signature.signature if signature is not None else ""
        self._body = body
        self._parser = ChunkParser(self)
        self._ready: list[memoryview] = []
        self._chunk: list[memoryview] = []
        self._hash = hashlib.sha256()
        self._claimed = ""
        self._signed_trailers = ""
        self.trailers: dict[str, str] = {}

    async def read(self) -> bytes:
        """Return the next decoded bytes; none at the end."""
        while not self._ready and not self._parser.is_done:
            data = await self._body.read()
            if not data:
                raise S3Error("IncompleteBody", "The last chunk is missing.")
            self._feed(data)
            if self._parser.is_done:
                self._finish()
        ready, self._ready = self._ready, []
        return bytes(ready[0]) if len(ready) == 1 else b"".join(ready)

    def started(self, size_bytes: int, extension: bytes) -> None:
        """Begin a chunk."""
        del size_bytes
        if self._signature is None:
            return
        name, _, value = extension.strip().partition(b"=")
        if name != b"chunk-signature" or len(value) != 64:
            raise S3Error("IncompleteBody", "A chunk has no signature.")
        self._claimed = value.decode("latin-1")
        self._hash = hashlib.sha256()

    def data(self, data: memoryview) -> None:
        """Take bytes of a chunk."""
        if self._signature is None:
            self._ready.append(data)
        else:
            self._hash.update(data)
            self._chunk.append(data)

    def ended(self) -> None:
        """Check the signature of a chunk."""
        signature = self._signature
        if signature is None:
            return
        text = (
            f"{_DERIVED}\n{signature.timestamp}\n{signature.scope}\n{self._previous}\n"
            f"{_EMPTY}\n{self._hash.hexdigest()}"
        )
        self._previous = sign(signature.signing_key, text)
        if not hmac.compare_digest(self._previous, self._claimed):
            raise S3Error("SignatureDoesNotMatch", "The signature of a chunk does not match.")
        self._ready += self._chunk
        self._chunk = []

    def trailer(self, name: str, value: str) -> None:
        """Take a trailer."""
        if not self._has_trailer:
            raise S3Error("IncompleteBody", "The body has a trailer that was not announced.")
        if name != "x-amz-trailer-signature":
            self._signed_trailers += f"{name}:{value}\n"
        self.trailers[name] = value

    def _feed(self, data: bytes) -> None:
        try:
            used = self._parser.feed(data)
        except BadChunk as error:
            raise S3Error("IncompleteBody", f"{error}.") from None
        if used < len(data):
            raise S3Error("IncompleteBody", "The body continues after its last chunk.")

    def _finish(self) -> None:
        signature = self._signature
        if signature is None or not self._has_trailer:
            return
        hashed = hashlib.sha256(self._signed_trailers.encode("latin-1")).hexdigest()
        text = (
            f"{_DERIVED_TRAILER}\n{signature.timestamp}\n{signature.scope}\n{self._previous}\n"
            f"{hashed}"
        )
        claimed = self.trailers.get("x-amz-trailer-signature", "")
        if not hmac.compare_digest(sign(signature.signing_key, text), claimed):
            raise S3Error("SignatureDoesNotMatch", "The signature of the trailer does not match.")
