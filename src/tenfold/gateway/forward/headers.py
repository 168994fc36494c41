"""Which headers go to a replica, and which come back.

Headers about one connection end here, and so do the client's credentials: replicas get the
gateway's own key or none. What says where a request came from is the gateway's to say.
"""

import re
from itertools import count
from secrets import token_hex

from multidict import CIMultiDict, CIMultiDictProxy

HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Meant for one connection (RFC 9110, section 7.6.1)."""
CREDENTIALS = frozenset({"authorization", "cookie", "x-api-key", "api-key"})
OURS = frozenset(
    {
        "host",
        "content-length",
        "expect",
        "forwarded",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-real-ip",
        "x-tenfold-service",
        "x-request-id",
    }
)
"""Written anew, or meant for the gateway."""
NOT_SENT = HOP_BY_HOP | CREDENTIALS | OURS
NOT_RETURNED = HOP_BY_HOP | {"content-length", "server", "date"}
REQUEST_ID = "X-Request-Id"
_PROCESS, _NUMBERS = token_hex(6), count(1)
"""What ids that the gateway makes begin with, and their numbers."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")


def request_headers(headers: "CIMultiDictProxy[str]", *, keep_encoding: bool) -> "CIMultiDict[str]":
    """Return the headers that go to a replica.

    Without `keep_encoding` the answer is not compressed, so that its tokens can be counted.
    """
    named = _named_in_connection(headers)
    sent = CIMultiDict(
        (name, value)
        for name, value in headers.items()
        if (lower := name.lower()) not in NOT_SENT and lower not in named
    )
    if not keep_encoding:
        sent["Accept-Encoding"] = "identity"
    sent[REQUEST_ID] = request_id(headers.get(REQUEST_ID, ""))
    return sent


def response_headers(headers: "CIMultiDictProxy[str]") -> "CIMultiDict[str]":
    """Return the headers that go to a client."""
    named = _named_in_connection(headers)
    return CIMultiDict(
        (name, value)
        for name, value in headers.items()
        if (lower := name.lower()) not in NOT_RETURNED and lower not in named
    )


def request_id(stated: str) -> str:
    """Return the id that a client gave its request, if it is a plain word, or a new one."""
    if stated and _REQUEST_ID.fullmatch(stated):
        return stated
    return f"{_PROCESS}-{next(_NUMBERS):x}"


def _named_in_connection(headers: "CIMultiDictProxy[str]") -> frozenset[str]:
    """Return the headers that `Connection` declares to be hop-by-hop as well."""
    listed = headers.getall("Connection", ())
    if not listed:
        return frozenset()
    return frozenset(
        name for part in listed for one in part.split(",") if (name := one.strip().lower())
    )
