"""Streams, taken apart line by line and apart from any connection."""

import codecs

import msgspec

from tenfold.client.answers import Job, JournalEvent


class EventReader:
    """Reads server-sent events from lines; knows the last number, to go on from there."""

    def __init__(self, after: int | None = None) -> None:
        self.last = after
        self._id = ""
        self._kind = ""
        self._data: list[str] = []

    @property
    def headers(self) -> dict[str, str]:
        """What tells the control plane where to go on."""
        return {} if self.last is None else {"Last-Event-ID": str(self.last)}

    def begin(self) -> None:
        """Forget half an event, at the start of a connection."""
        self._id, self._kind, self._data = "", "", []

    def read(self, line: str) -> JournalEvent | None:
        """Take one line; return an event where it is the last line of one."""
        if line:
            self._take(line)
            return None
        number, kind, data = self._id, self._kind, "\n".join(self._data)
        self.begin()
        if not number.isdecimal():
            # A comment that shows life, or word that the stream is to be closed.
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


class LogFollower:
    """Which attempt of a job is followed, and when there is no more to come."""

    def __init__(self, attempt: int | None) -> None:
        self._wanted = attempt
        self._done = 0
        self.number = 0
        """The attempt that is being read."""

    def next_attempt(self, job: Job) -> bool:
        """Choose the attempt to read; False where it has not begun yet."""
        numbers = [one.number for one in job.attempts if one.number > self._done]
        if self._wanted is not None:
            numbers = [number for number in numbers if number == self._wanted]
        self.number = numbers[-1] if numbers else 0
        return bool(numbers)

    def has_ended(self, job: Job) -> bool:
        """Tell whether the attempt that was read is over; else its stream broke off."""
        return any(one.number == self.number and one.ended_at for one in job.attempts)

    def is_last(self, job: Job) -> bool:
        """Tell whether nothing more will come, once an attempt was read or none began."""
        self._done = max(self._done, self.number)
        return job.is_over or (self._wanted is not None and self._done >= self._wanted)


def text_reader() -> codecs.IncrementalDecoder:
    """Return what makes text of bytes that may be cut anywhere, or be no text at all."""
    return codecs.getincrementaldecoder("utf-8")(errors="replace")
