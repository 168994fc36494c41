"""Parse event and log streams, independent of the connection."""

import codecs
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from tenfold.model.api.fleet import JournalEvent
from tenfold.model.api.jobs import Job
from tenfold.model.errors import TenfoldError


class EventReader:
    """Reads server-sent events from lines, and remembers the last number to resume from."""

    def __init__(self, after: int | None = None) -> None:
        self.last = after
        self._id = ""
        self._kind = ""
        self._data: list[str] = []

    @property
    def headers(self) -> dict[str, str]:
        """The header that tells the control plane where to resume."""
        return {} if self.last is None else {"Last-Event-ID": str(self.last)}

    def begin(self) -> None:
        """Drop a partial event, at the start of a connection."""
        self._id, self._kind, self._data = "", "", []

    def read(self, line: str) -> JournalEvent | None:
        """Read one line; return an event if this completes one."""
        if line:
            self._take(line)
            return None
        number, kind, data = self._id, self._kind, "\n".join(self._data)
        self.begin()
        if not number.isdecimal():
            # A heartbeat comment, or a notice that the stream is closing.
            return None
        self.last = int(number)
        return JournalEvent(seq=self.last, kind=kind, body=msgspec.json.decode(data or "{}"))

    def _take(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "id":
            self._id = value
        elif name == "event":
            self._kind = value
        elif name == "data":
            self._data.append(value)


TAIL_BYTES = (64 << 10, 1 << 20, 4 << 20)
"""How much of a log is read to find its last lines; the control plane sends no more at once."""


class LogEnd(NamedTuple):
    """Where to start in a log: so many bytes, or lines, before its end."""

    tail: int | None = None
    lines: int | None = None


def last_lines_start(content: bytes, lines: int) -> int:
    """Return where the last lines of a text start; a line break at its end ends the last line."""
    at = len(content) - content.endswith(b"\n") if lines else len(content)
    for _ in range(lines):
        at = content.rfind(b"\n", 0, at)
        if at < 0:
            return 0
    return at + 1 if lines else at


def byte_number(headers: Mapping[str, str], name: str) -> int | None:
    """Return a header of a log response as a number; None if it is not there."""
    header = headers.get(name, "")
    return int(header) if header.isdecimal() else None


class LogFollower:
    """Which attempt of a job is being followed, how far it was read, and when it is complete."""

    def __init__(self, attempt: int | None) -> None:
        self._wanted = attempt
        self.before = None if attempt is None else attempt + 1
        """Which page of attempts to get: the latest, or the one that ends with the wanted one."""
        self._done = 0
        self.number = 0
        """The attempt being read."""
        self.offset: int | None = None
        """The byte from which to resume a broken stream; None at its start."""
        self._text = text_reader()
        self._has_begun = self._was_answered = False

    def next_attempt(self, job: Job) -> bool:
        """Choose the attempt to read; False if it has not started yet."""
        self._was_answered = True
        if self.offset is not None:
            return True
        numbers = [one.number for one in job.attempts if one.number > self._done]
        if self._wanted is not None:
            numbers = [number for number in numbers if number == self._wanted]
        self.number = numbers[-1] if numbers else 0
        return bool(numbers)

    def begin(self, headers: Mapping[str, str]) -> None:
        """Note where a stream starts."""
        self.offset = byte_number(headers, "Log-Offset")
        self._has_begun = True

    def raise_unless_resumable(self, problem: TenfoldError) -> None:
        """Raise a problem after which the stream cannot resume.

        Either nothing ever answered, or the stream broke at a control plane that does not count
        bytes.
        """
        if not self._was_answered or (self._has_begun and self.offset is None):
            raise problem

    def read(self, chunk: bytes) -> str:
        """Return bytes as text; a split character waits for the rest."""
        if self.offset is not None:
            self.offset += len(chunk)
        return self._text.decode(chunk)

    def has_ended(self, job: Job) -> bool:
        """Tell whether the attempt that was read has ended; otherwise its stream broke."""
        return any(one.number == self.number and one.ended_at for one in job.attempts)

    def end(self) -> str:
        """Return the rest of an attempt that was read to its end."""
        left = self._text.decode(b"", final=True)
        self._text, self.offset, self._has_begun = text_reader(), None, False
        return left

    def is_last(self, job: Job) -> bool:
        """Tell whether the log is complete, after an attempt was read or none started."""
        self._done = max(self._done, self.number)
        return job.is_over or (self._wanted is not None and self._done >= self._wanted)


def text_reader() -> codecs.IncrementalDecoder:
    """Return a UTF-8 decoder for bytes that may be split anywhere or not be text at all."""
    return codecs.getincrementaldecoder("utf-8")(errors="replace")
