"""The body of a request: read within limits, and what the gateway needs to know of it."""

import asyncio
import re
from typing import NamedTuple

import msgspec
from aiohttp import ClientError
from aiohttp.web import BaseRequest, RequestPayloadError
from msgspec import Raw, Struct

from tenfold.gateway.admit.refusals import RequestRefused

BODY_S = 120.0
"""In which a body arrives."""
BODY_BYTES_MAX = 32 << 20
HELD_BYTES_MAX = 1 << 30
"""Of bodies that are kept at a time, so that their requests can be sent again."""
FORM_BYTES = 64 << 10
"""Of a form in which the model is looked for."""
_FORM_MODEL = re.compile(rb'name="model"\r\n(?:[^\r\n]+\r\n)*\r\n([^\r\n]{1,200})\r\n')
_EMPTY = Raw(b"")


class Bodies:
    """Reads bodies, and bounds what they use together."""

    def __init__(self, bytes_max: int = BODY_BYTES_MAX) -> None:
        self.bytes_max = bytes_max
        self.held = 0

    async def read(self, request: BaseRequest) -> bytes:
        """Return a body; raise `RequestRefused` if it is too large or too slow."""
        length = request.content_length
        if length == 0 or (length is None and not request.body_exists):
            return b""
        if length is not None and length > self.bytes_max:
            raise self._too_large()
        if self.held + (length or 0) > HELD_BYTES_MAX:
            raise self._too_many()
        if request.content.is_eof():
            # It came with the head; most do.
            body = request.content.read_nowait(-1)
            if len(body) > self.bytes_max:
                raise self._too_large()
            return body
        if request.headers.get("Expect", "").lower() == "100-continue" and request.transport:
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            async with asyncio.timeout(BODY_S):
                return await self._read(request)
        except TimeoutError:
            raise RequestRefused(
                "body_timeout", f"the body did not arrive in {BODY_S:.0f} s"
            ) from None
        except (RequestPayloadError, ClientError):
            raise RequestRefused("invalid_body", "the body is incomplete or malformed") from None

    async def _read(self, request: BaseRequest) -> bytes:
        content = request.content
        first = await content.readany()
        if content.at_eof():
            return first
        parts, size = [first], len(first)
        self.held += size
        try:
            while part := await content.readany():
                parts.append(part)
                size += len(part)
                self.held += len(part)
                if size > self.bytes_max:
                    raise self._too_large()
                if self.held > HELD_BYTES_MAX:
                    raise self._too_many()
        finally:
            self.held -= size
        return b"".join(parts)

    @staticmethod
    def _too_many() -> RequestRefused:
        return RequestRefused(
            "queue_full", "the bodies of waiting requests have reached their size limit", 1.0
        )

    def _too_large(self) -> RequestRefused:
        return RequestRefused(
            "body_too_large", f"the body exceeds the limit of {self.bytes_max:,} bytes"
        )


class Head(Struct):
    """The fields of an inference request that the gateway reads; others are passed on."""

    model: str = ""
    max_tokens: object = None
    max_completion_tokens: object = None
    max_output_tokens: object = None
    n: object = None
    messages: Raw = _EMPTY
    prompt: Raw = _EMPTY
    input: Raw = _EMPTY


_HEAD = msgspec.json.Decoder(Head)


class Prompt(NamedTuple):
    """What an inference request asks for."""

    model: str
    text: bytes
    """The prompt as it is written in the body."""
    tokens_max: int
    """Of one answer; 0 for no limit."""
    answers: int


def prompt_of(body: bytes, content_type: str) -> Prompt:
    """Return what the body of an inference request asks for; raise if it is not one."""
    if content_type == "multipart/form-data":
        found = _FORM_MODEL.search(body, 0, FORM_BYTES)
        model = "" if found is None else found[1].decode("utf-8", "replace")
        return Prompt(model, b"", 0, 1)
    try:
        head = _HEAD.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise RequestRefused(
            "invalid_body", "the body is not a JSON object with a `model`"
        ) from None
    most = head.max_completion_tokens or head.max_tokens or head.max_output_tokens
    text = bytes(head.messages or head.prompt or head.input)
    return Prompt(head.model, text, _count(most, 0), _count(head.n, 1) or 1)


def _count(value: object, default: int) -> int:
    """Return a small positive integer that a client wrote."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 10_000_000:
        return value
    return default
