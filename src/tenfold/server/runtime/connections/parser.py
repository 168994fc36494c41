"""Read requests within limits: the size of the headers, and one way to say where a body ends."""

from typing import Any

import h11

HEAD_BYTES = 64 << 10
"""The request line and all headers."""
HEADERS_MAX = 100


class RequestParser(h11.Connection):
    """Reads requests, and refuses those that are too large or that two readers could split."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, HEAD_BYTES)
        self.wrong = ""

    def next_event(self) -> Any:
        """Return what was received next."""
        try:
            event = super().next_event()
            if isinstance(event, h11.Request):
                _check_head(event)
        except h11.RemoteProtocolError as error:
            self.wrong = str(error)
            self.status = error.error_status_hint
            raise
        return event


def _check_head(request: h11.Request) -> None:
    """Raise if the headers are too large, or say twice how long the body is."""
    raw = list(request.headers.raw_items())
    size = len(request.method) + len(request.target) + 12
    size += sum(len(name) + len(value) + 4 for name, value in raw)
    if size > HEAD_BYTES or len(raw) > HEADERS_MAX:
        raise h11.RemoteProtocolError("the headers are too large", error_status_hint=431)
    names = {name for name, _ in request.headers}
    if b"transfer-encoding" in names:
        if b"content-length" in names:
            raise h11.RemoteProtocolError("Transfer-Encoding and Content-Length are both set")
        if request.http_version < b"1.1":
            raise h11.RemoteProtocolError("Transfer-Encoding in HTTP/1.0")
