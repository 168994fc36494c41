"""A request as it is sent to a replica, and the beginning of an answer."""

from typing import NamedTuple

import msgspec
from aiohttp import ClientResponse
from multidict import CIMultiDict

from tenfold.gateway.forward.spans import Span

IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})


class Call(NamedTuple):
    """What is sent; the same for every attempt."""

    method: str
    path: str
    """With the query, as it came."""
    headers: "CIMultiDict[str]"
    body: bytes
    is_inference: bool
    """An OpenAI route: it changes nothing, so it may be sent again whatever its method."""
    span: Span | None = None
    """Of the request; each attempt is a span within it."""

    @property
    def may_repeat(self) -> bool:
        """Whether it may be sent again after it reached a replica."""
        return self.is_inference or self.method in IDEMPOTENT


class Answer:
    """The beginning of an answer, or all of it."""

    __slots__ = ("first", "headers", "is_events", "is_whole", "response", "status")

    def __init__(self, response: ClientResponse, first: bytes, *, is_whole: bool) -> None:
        self.response = response
        self.status = response.status
        self.headers = response.headers
        self.first = first
        self.is_whole = is_whole
        """Whether `first` is all of the body."""
        self.is_events = response.content_type == "text/event-stream"


def with_model(body: bytes, model: str) -> bytes:
    """Return a JSON body with another value of `model`."""
    fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    fields["model"] = msgspec.Raw(msgspec.json.encode(model))
    return msgspec.json.encode(fields)
