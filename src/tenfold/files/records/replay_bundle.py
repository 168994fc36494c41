"""Replay bundles: one run in one file, as JSON Lines, compressed where the name ends in .gz.

The first line is a header, the last one an end with counts and a digest, so that half a
file is never mistaken for a complete one. Between them are the events in order, and after the
events of each cycle its record; the actions of a cycle are its orders and not repeated.
"""

import gzip
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from tenfold.engine.decision_log import Cycle
from tenfold.engine.digest import fleet_digest
from tenfold.engine.loop import Decider
from tenfold.engine.policy_spans import PolicySpan
from tenfold.engine.recording import Line
from tenfold.files.core.read_errors import lower_first, read_error
from tenfold.files.core.write import open_new_file
from tenfold.fleet.fleet import Fleet
from tenfold.fleet.image import FleetImage, fleet_from
from tenfold.model.actions import Action
from tenfold.model.decision import Decision
from tenfold.model.errors import InputError
from tenfold.model.events import ActionOrdered, Event
from tenfold.model.policy.policy import Policy
from tenfold.model.units import Millis

FORMAT = "tenfold-replay"
VERSION = 1
SUFFIXES = (".jsonl", ".jsonl.gz")
ROW_BYTES_MAX = 64 << 20
"""Bytes in one line, far above the largest event."""


class BundleHeader(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a run was made with: enough to ask the same decider again."""

    format: str = FORMAT
    version: int = VERSION
    tenfold: str = ""
    """The version that wrote it."""
    policy: Policy = Policy()
    settings: dict[str, int | float] = {}
    """Simulator settings, by name."""
    seed: int = 0
    nodes: int = 0
    gpus: int = 0
    nodes_digest: str = ""
    contention: bool = False
    """Whether jobs slowed each other, so that a run was longer than its duration."""
    stretches: tuple[PolicySpan, ...] | UnsetType = UNSET
    """Who decided by what, where the policy may have changed on the way; else not written."""
    base: FleetImage | UnsetType = UNSET
    """The fleet before the first event, if there was one; else not written."""


class BundleEnd(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="End"):
    """The last line: what a whole bundle holds, and how its fleet ended."""

    events: int
    cycles: int
    fleet: str
    """Digest of the fleet after the last event."""


class Bundle(Struct, frozen=True, kw_only=True):
    """A bundle that was read to its end."""

    file: str
    header: BundleHeader
    lines: list[Line]
    end: BundleEnd

    @property
    def stretches(self) -> tuple[PolicySpan, ...]:
        """Who decided by what: one policy from the first cycle on, where nothing else is said."""
        if self.header.stretches is UNSET or not self.header.stretches:
            return (PolicySpan(first_cycle=1, first_event=1, policy=self.header.policy),)
        return self.header.stretches

    def base(self) -> Fleet | None:
        """Return a fleet of its own that the first fact met; None where that was empty."""
        return None if self.header.base is UNSET else fleet_from(self.header.base)

    def line_of(self, place: int) -> int:
        """Return the number, in the file, of one of `lines`."""
        return place + 2


class BundleWriter:
    """A journal and a witness that writes a run while it happens."""

    def __init__(self, stream: BinaryIO, header: BundleHeader) -> None:
        self._stream = stream
        self._encoder = msgspec.json.Encoder()
        self._events = 0
        self._cycles = 0
        self._write(header)

    def append(self, events: Sequence[Event]) -> None:
        """Write events, in order."""
        if events:
            self._events += len(events)
            self._stream.write(self._encoder.encode_lines(events))

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        """Write the record that closes a cycle; its orders stand before it."""
        waits, runs = len(fleet.pending), len(fleet.running)
        wake_ms = decision.wake_at_ms
        self.note(Cycle(now_ms, decider.name, fleet.version, waits, runs, (), wake_ms))

    def note(self, cycle: Cycle) -> None:
        """Write a record that was made before; what it ordered is not said twice."""
        self._cycles += 1
        self._write(replace(cycle, actions=()) if cycle.actions else cycle)

    def finish(self, fleet: Fleet) -> None:
        """Write the end; a bundle without it is refused."""
        self.end(fleet_digest(fleet))

    def end(self, digest: str) -> None:
        """Write the end with the digest of a fleet that is known already."""
        self._write(BundleEnd(events=self._events, cycles=self._cycles, fleet=digest))

    def _write(self, line: Struct) -> None:
        self._stream.write(self._encoder.encode(line) + b"\n")


@contextmanager
def open_new_bundle(
    path: Path, header: BundleHeader, *, force: bool = False, private: bool = False
) -> Generator[BundleWriter, None, None]:
    """Give a writer; the file appears, whole, when the block ends without an error."""
    _check_suffix(path)
    with open_new_file(path, force=force, private=private) as stream:
        if path.name.lower().endswith(".gz"):
            # Without a name or a time in it, the same run is the same file.
            with gzip.GzipFile("", "wb", compresslevel=5, fileobj=stream, mtime=0) as packed:
                yield BundleWriter(cast(BinaryIO, packed), header)
        else:
            yield BundleWriter(stream, header)


def read_bundle(path: Path) -> Bundle:
    """Read a bundle to its end, or raise with the line that is wrong."""
    _check_suffix(path)
    file = str(path)
    rows = _rows(path)
    header = _header(next(rows, b""), file)
    decoder = msgspec.json.Decoder(Line | BundleEnd)
    lines: list[Line] = []
    orders: list[Action] = []
    end: BundleEnd | None = None
    number = 1
    for number, row in enumerate(rows, start=2):
        if end is not None:
            raise _fault("wrong-line", "data after the end of the bundle", file, number)
        try:
            line = decoder.decode(row)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            if not row.endswith(b"\n"):
                raise _cut_short(file, number) from None
            said = f"not a valid event or cycle: {lower_first(error)}"
            raise _fault("wrong-line", said, file, number) from None
        if isinstance(line, BundleEnd):
            end = line
            continue
        if isinstance(line, ActionOrdered):
            orders.append(line.action)
        elif isinstance(line, Cycle) and orders:
            line = replace(line, actions=tuple(orders))
            orders = []
        lines.append(line)
    if end is None:
        raise _cut_short(file, number)
    _check_counts(lines, end, file, number)
    return Bundle(file=file, header=header, lines=lines, end=end)


def _rows(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, unpacked, or raise if it cannot be read."""
    file, number = str(path), 0
    try:
        with path.open("rb") as raw:
            packed = path.name.lower().endswith(".gz")
            stream = gzip.GzipFile(fileobj=raw) if packed else raw
            while row := stream.readline(ROW_BYTES_MAX + 1):
                number += 1
                if len(row) > ROW_BYTES_MAX:
                    said = f"the line has more than {ROW_BYTES_MAX >> 20} MiB"
                    raise _fault("wrong-line", said, file, number)
                yield row
    except EOFError:
        raise _cut_short(file, number) from None
    except (gzip.BadGzipFile, zlib.error):
        raise InputError(
            "bundle-damaged",
            f"`{file}` is not valid gzip",
            "copy it again, or unpack it and rename it to .jsonl",
            file=file,
        ) from None
    except OSError as error:
        raise read_error(file, error) from None


class _AnyHeader(Struct):
    format: str
    version: int


def _header(row: bytes, file: str) -> BundleHeader:
    try:
        found = msgspec.json.decode(row, type=_AnyHeader)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = _AnyHeader("", 0)
    if found.format != FORMAT:
        raise InputError(
            "not-a-bundle",
            f"`{file}` is not a replay bundle: the header is missing",
            "create one with `tenfold sim run --bundle run.jsonl.gz`",
            file=file,
            line=1,
        )
    if found.version != VERSION:
        raise InputError(
            "unknown-bundle-version",
            f"`{file}` has format {found.version}, but this version of Tenfold reads {VERSION}",
            "use the version of Tenfold that wrote it, or record the run again",
            file=file,
            line=1,
        )
    try:
        return msgspec.json.decode(row, type=BundleHeader)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _fault("wrong-line", f"invalid header: {lower_first(error)}", file, 1) from None


def _check_suffix(path: Path) -> None:
    if not path.name.lower().endswith(SUFFIXES):
        raise InputError(
            "unknown-suffix",
            f"`{path}` must end in .jsonl or .jsonl.gz",
            "use a name such as `run.jsonl.gz`",
            file=str(path),
        )


def _check_counts(lines: Sequence[Line], end: BundleEnd, file: str, number: int) -> None:
    cycles = sum(isinstance(line, Cycle) for line in lines)
    events = len(lines) - cycles
    if (events, cycles) != (end.events, end.cycles):
        said = (
            f"the bundle has {events:,} events and {cycles:,} cycles, "
            f"but its last line says {end.events:,} and {end.cycles:,}"
        )
        raise _fault("wrong-line", said, file, number)


def _cut_short(file: str, number: int) -> InputError:
    return InputError(
        "bundle-cut-short",
        f"`{file}` is truncated after line {number:,}",
        "copy the whole file again; an interrupted run leaves no bundle",
        file=file,
        line=number or None,
    )


def _fault(code: str, said: str, file: str, number: int) -> InputError:
    hint = "bundles are written by Tenfold; do not edit them"
    return InputError(code, said, hint, file=file, line=number)
