"""Requests to the HTTP API of a provider, through a transport that tests replace."""

from collections.abc import Callable, Mapping
from typing import cast
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import msgspec
from msgspec import Struct

from tenfold.model.errors import Unreachable

TIMEOUT_S = 30.0


class Response(Struct, frozen=True):
    """What an API answered."""

    status: int
    body: bytes


Transport = Callable[[str, str, Mapping[str, str], bytes | None], Response]
"""Method, URL, headers and body of a request."""


def send(method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Response:
    """Send a request over the network."""
    if not url.startswith("https://"):
        raise Unreachable("provider-unreachable", f"`{url}` is not https", "use the https address")
    request = Request(url, data=body, headers=dict(headers), method=method)
    try:
        with urlopen(request, timeout=TIMEOUT_S) as answer:
            return Response(answer.status, answer.read())
    except HTTPError as error:
        return Response(error.code, error.read())
    except (URLError, TimeoutError, OSError) as error:
        raise Unreachable(
            "provider-unreachable",
            f"`{url}` cannot be reached: {error}",
            "check the network; what was ordered is listed once it is back",
        ) from error


class JsonApi:
    """A JSON API with a bearer token."""

    def __init__(self, base: str, key: str, transport: Transport = send) -> None:
        self._base = base.rstrip("/")
        self._headers = {
            "Authorization": f"Bearer {key}",
            "Content-Type": "application/json",
            "Accept": "application/json",
        }
        self._transport = transport

    def call(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, object]]:
        """Return the status and the object of an answer; a list is the object's `items`."""
        content = None if body is None else msgspec.json.encode(body)
        answer = self._transport(method, f"{self._base}{path}", self._headers, content)
        try:
            value: object = msgspec.json.decode(answer.body) if answer.body else {}
        except msgspec.DecodeError:
            value = {}
        if isinstance(value, list):
            return answer.status, {"items": cast(list[object], value)}
        if not isinstance(value, dict):
            raise Unreachable(
                "provider-answer",
                f"`{path}` answered {answer.status} with something that is not an object",
                "check the address of the API",
            )
        return answer.status, cast(dict[str, object], value)
