"""One short HTTP request of the controller: no redirects, no proxies, and a limit on its answer."""

from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

BYTES_MAX = 16 << 20


class NoAnswer(Exception):
    """There is no usable answer."""


def fetch(url: str, timeout_s: float) -> bytes:
    """Return the body of an answer with a status of 200 to 299; raise `NoAnswer`."""
    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    try:
        connection = kind(parts.hostname or "", parts.port, timeout=timeout_s)
    except (ValueError, HTTPException) as error:
        raise NoAnswer(type(error).__name__) from None
    try:
        path = parts.path or "/"
        target = f"{path}?{parts.query}" if parts.query else path
        connection.request("GET", target, headers={"Connection": "close"})
        answer = connection.getresponse()
        body = answer.read(BYTES_MAX + 1)
    except (OSError, HTTPException) as error:
        raise NoAnswer(_said(error)) from None
    finally:
        connection.close()
    if not 200 <= answer.status < 300:
        raise NoAnswer(f"status {answer.status}")
    if len(body) > BYTES_MAX:
        raise NoAnswer("answer too large")
    return body


def _said(error: Exception) -> str:
    """Return an error in a few words, without what a server could have put into it."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    return type(error).__name__
