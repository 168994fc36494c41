"""The head of a request: strict, because what one server reads as body another reads as request."""

import re

from msgspec import Struct

HEAD_BYTES_MAX = 65_536
HEADERS_MAX = 200

_REQUEST_LINE = re.compile(r"([A-Z]{1,20}) ([!-~]{1,16384}) HTTP/1\.([01])")
_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}")
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|(?<!\r)\n")
_LENGTH = re.compile(r"[0-9]{1,18}")
_ONCE = frozenset({"host", "content-length", "transfer-encoding", "authorization", "content-type"})


class BadHead(Exception):
    """The head is no HTTP/1.1 request; the connection cannot go on."""

    def __init__(self, message: str, code: str = "BadRequest") -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Head(Struct):
    """A request without its body. Text is Latin-1: each character is a byte of the wire."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    length: int | None
    """Bytes of the body; None if it comes in chunks."""
    keeps_alive: bool
    expects_continue: bool


def parse_head(raw: bytes) -> Head:
    """Parse everything before the empty line."""
    text = raw.decode("latin-1")
    if _FORBIDDEN.search(text):
        raise BadHead("the request head has a control character")
    lines = text.split("\r\n")
    line = _REQUEST_LINE.fullmatch(lines[0])
    if line is None:
        raise BadHead("the request line is malformed")
    method, target, minor = line.groups()
    headers = _headers(lines)
    if "host" not in headers and minor == "1":
        raise BadHead("the request has no Host header")
    path, _, query = _path_of(target).partition("?")
    connection = headers.get("connection", "").lower()
    return Head(
        method=method,
        path=path,
        query=query,
        headers=headers,
        length=_length(headers, minor),
        keeps_alive="close" not in connection if minor == "1" else connection == "keep-alive",
        expects_continue=headers.get("expect", "").lower() == "100-continue" and minor == "1",
    )


def _headers(lines: list[str]) -> dict[str, str]:
    if len(lines) > HEADERS_MAX:
        raise BadHead(
            f"the request has more than {HEADERS_MAX} headers", "RequestHeaderSectionTooLarge"
        )
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon or _NAME.fullmatch(name) is None:
            raise BadHead("a header line is malformed")
        name = name.lower()
        value = value.strip(" \t")
        if name in headers:
            if name in _ONCE:
                raise BadHead(f"the header `{name}` is given twice")
            value = f"{headers[name]},{value}"
        headers[name] = value
    return headers


def _path_of(target: str) -> str:
    if target.startswith("/"):
        return target
    scheme, separator, rest = target.partition("://")
    if separator and scheme.lower() in ("http", "https"):
        _, slash, path = rest.partition("/")
        return slash + path if slash else "/"
    if target == "*":
        return "/"
    raise BadHead("the request target is malformed")


def _length(headers: dict[str, str], minor: str) -> int | None:
    coding = headers.get("transfer-encoding")
    length = headers.get("content-length")
    if coding is not None:
        if length is not None:
            raise BadHead("a request has either Content-Length or Transfer-Encoding")
        if coding.lower() != "chunked" or minor == "0":
            raise BadHead("the only supported Transfer-Encoding is `chunked`", "NotImplemented")
        return None
    if length is None:
        return 0
    if _LENGTH.fullmatch(length) is None:
        raise BadHead("Content-Length is not a number")
    return int(length)
