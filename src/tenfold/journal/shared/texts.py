"""Store what events of one commit have in common once, and a short row for each of them.

The events of an array differ in id, number and index. The text of an event is cut around these;
events with the same pieces share a row of `shared_texts`. The pieces are lines of that row, and
what was cut out are lines of the event's own row. JSON has no line breaks, so nothing is escaped
and the joined text is that of the event, byte for byte: the digest chain covers it.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, LargeBinary, cast, func, literal, select

from tenfold.journal.tables import EVENTS, SHARED_TEXTS
from tenfold.model.errors import InputError
from tenfold.model.events import Event, JobSubmitted, job_of
from tenfold.model.job.submission import ARRAY_INDEX

SHARED_FROM = 256
"""Bytes of a submission of an array member from which it shares text."""
OTHERS_FROM = 400
"""The same for other events, which rarely have text in common."""
TEXTS_HELD_MOST = 16
"""Shared texts that a reader holds: those of one commit follow each other."""
_ENCODE = msgspec.json.Encoder().encode
_INDEX = b'["%b",' % ARRAY_INDEX.encode()


class TextSharing:
    """Finds what the events of one commit share; `texts` are the rows to write with them."""

    def __init__(self) -> None:
        self.texts: list[dict[str, Any]] = []
        self._first: dict[bytes, tuple[dict[str, Any], str]] = {}
        """The row of the first event with these pieces, and what it has of its own."""
        self._lengths: list[int] = []
        """Lengths of the last event's pieces: those of the next one are likely the same."""

    def add(self, row: dict[str, Any], event: Event, body: bytes) -> bool:
        """Complete the row of an event that has the same pieces as an earlier one.

        Return False if there is none: then the row is to have the whole text.
        """
        cut = self._cut(body, _own_parts(event, len(body)))
        if cut is None:
            return False
        text, own = cut
        first, of_first = self._first.setdefault(text, (row, own))
        if first is row:
            return False
        if first["shared"] is None:
            first.update(shared=first["seq"], body=of_first)
            self.texts.append({"seq": first["seq"], "body": text.decode()})
        row.update(shared=first["seq"], body=own)
        return True

    def _cut(self, body: bytes, parts: Sequence[tuple[bytes, bytes]]) -> tuple[bytes, str] | None:
        """Return the pieces between parts, and the parts; None if one is not found."""
        if not parts:
            return None
        at, pieces, lengths = 0, list[bytes](), self._lengths
        if len(lengths) != len(parts):
            lengths = [-1] * len(parts)
        for (before, own), length in zip(parts, lengths, strict=True):
            start = at + length
            if length < 0 or not body.startswith(before + own, start - len(before)):
                found = body.find(before + own, at)
                if found < 0:
                    return None
                start = found + len(before)
            pieces.append(body[at:start])
            at = start + len(own)
        self._lengths = [len(piece) for piece in pieces]
        pieces.append(body[at:])
        return b"\n".join(pieces), b"\n".join([own for _, own in parts]).decode()


class TextReader:
    """Joins rows with the texts that they share, which are read once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._pieces: dict[int, list[bytes]] = {}

    def joined(self, seq: int, own: str | bytes, shared: int | None) -> str | bytes:
        """Return the text of an event; raise if what it shares is missing or does not fit."""
        if shared is None:
            return own
        pieces = self._pieces.get(shared)
        if pieces is None:
            if len(self._pieces) >= TEXTS_HELD_MOST:
                self._pieces.clear()
            pieces = self._pieces[shared] = self._read(seq, shared)
        values = (own.encode() if isinstance(own, str) else own).split(b"\n")
        if len(values) + 1 != len(pieces):
            raise _damaged(seq, "does not fit the text that it shares with others")
        mixed = [b""] * (2 * len(values) + 1)
        mixed[::2], mixed[1::2] = pieces, values
        return b"".join(mixed)

    def _read(self, seq: int, shared: int) -> list[bytes]:
        is_sqlite = self._connection.dialect.name == "sqlite"
        # SQLite stores any type in any column, and text that may not be valid.
        columns: Sequence[Any] = (
            (cast(SHARED_TEXTS.c.body, LargeBinary), func.typeof(SHARED_TEXTS.c.body))
            if is_sqlite
            else (SHARED_TEXTS.c.body, literal("text"))
        )
        query = select(*columns).where(SHARED_TEXTS.c.seq == shared)
        row = self._connection.execute(query).one_or_none()
        if row is None:
            raise _damaged(seq, "shares a text with others that is missing")
        body, kind = row
        if kind != "text":
            raise _damaged(seq, f"shares a text with others that is {kind}")
        return (body.encode() if isinstance(body, str) else body).split(b"\n")


def shared_lengths(connection: Connection, shared: Sequence[int]) -> dict[int, int]:
    """Return the number of characters of shared texts."""
    if not shared:
        return {}
    query = select(SHARED_TEXTS.c.seq, func.length(SHARED_TEXTS.c.body))
    rows = connection.execute(query.where(SHARED_TEXTS.c.seq.in_(set(shared)))).all()
    return {row[0]: row[1] for row in rows}


def unused_texts() -> Any:
    """Return the condition for shared texts that no event uses."""
    return ~select(EVENTS.c.seq).where(EVENTS.c.shared == SHARED_TEXTS.c.seq).exists()


def _own_parts(event: Event, size: int) -> Sequence[tuple[bytes, bytes]]:
    """Return what an event does not share, in order: what comes before it, and the text itself.

    Nothing for events that hardly share text.
    """
    if not isinstance(event, JobSubmitted):
        job_id = None if size < OTHERS_FROM else job_of(event)
        return () if job_id is None else ((b'"job_id":', _ENCODE(job_id)),)
    job, run_spec = event.job, event.run_spec
    if size < SHARED_FROM or job.terms is None or not job.terms.array:
        return ()
    parts = [(b'"id":', _ENCODE(job.id)), (b'"seq":', b"%d" % job.seq)]
    if run_spec is not None and run_spec.env and run_spec.env[-1][0] == ARRAY_INDEX:
        parts.append((_INDEX, _ENCODE(run_spec.env[-1][1])))
    return parts


def _damaged(seq: int, said: str) -> InputError:
    return InputError(
        "journal-damaged",
        f"event {seq:,} {said}",
        "restore a backup; do not edit the journal manually",
    )
