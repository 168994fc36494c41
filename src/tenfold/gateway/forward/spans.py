"""Spans of requests: what a gateway needs of whatever exports them.

A span has what the gateway counts, and nothing of what a client sent: no path, header or body.
"""

from typing import Protocol

PARENT = "traceparent"
"""The W3C header that names the trace of a request."""


class Span(Protocol):
    """One span that has begun."""

    def note(self, name: str, value: str | int | float) -> None:
        """Add an attribute."""
        ...

    def child(self, name: str) -> "Span":
        """Begin a span within this one, for something that is sent on."""
        ...

    def header(self) -> str:
        """Return the header that names this span as the parent of others."""
        ...

    def end(self, *, failed: bool = False) -> None:
        """End it."""
        ...


class Spans(Protocol):
    """Where spans go."""

    def begin(self, name: str, parent: str) -> Span | None:
        """Begin the span of a request whose header names `parent`; None if none are wanted."""
        ...

    def close(self) -> None:
        """Send the remaining ones."""
        ...
