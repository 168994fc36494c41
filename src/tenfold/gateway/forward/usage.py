"""Tokens of an answer: from the `usage` that a replica reports, or counted by events."""

import re
from collections import deque
from typing import NamedTuple

LINE_BYTES_MAX = 4 << 20
"""Of an event stream; a replica that sends longer ones is cut off."""
PARTS_KEPT = 4
"""The report comes in one of the last parts of a stream, before `[DONE]`."""

_COUNT = re.compile(
    rb'"(prompt_tokens|input_tokens|completion_tokens|output_tokens)"\s*:\s*(\d{1,9})\b'
)
_INPUT = (b"prompt_tokens", b"input_tokens")


class Usage(NamedTuple):
    """What a replica reported; None for what it did not."""

    input_tokens: int | None = None
    output_tokens: int | None = None


NO_USAGE = Usage()


class LineTooLong(Exception):
    """A line of an event stream exceeds the limit."""


def usage_in(text: bytes) -> Usage:
    """Return the last usage that is reported in a text."""
    at = text.rfind(b'"usage"')
    if at < 0:
        return NO_USAGE
    read = written = None
    for name, digits in _COUNT.findall(text, at):
        if name in _INPUT:
            read = int(digits) if read is None else read
        else:
            written = int(digits) if written is None else written
    return Usage(read, written)


class EventStream:
    """Counts the events of a stream as it passes, and bounds its lines. Parts are not copied."""

    __slots__ = ("_last", "_pending", "_starts_line", "events")

    def __init__(self) -> None:
        self.events = 0
        self._pending = 0
        """Bytes of the line that has not ended."""
        self._starts_line = True
        self._last: deque[bytes] = deque(maxlen=PARTS_KEPT)

    @property
    def is_between_events(self) -> bool:
        """Whether the last line has ended."""
        return self._starts_line

    def feed(self, part: bytes) -> int:
        """Return how many events begin in the next part of the stream."""
        # Inside of JSON a line break is escaped, so this is always the start of an event.
        found = part.count(b"\ndata:") + (self._starts_line and part.startswith(b"data:"))
        end = part.rfind(b"\n")
        self._pending = self._pending + len(part) if end < 0 else len(part) - end - 1
        if self._pending > LINE_BYTES_MAX:
            raise LineTooLong
        self._starts_line = self._pending == 0
        self._last.append(part)
        self.events += found
        return found

    def usage(self) -> Usage:
        """Return the usage that the stream reported near its end."""
        return usage_in(b"".join(self._last))
