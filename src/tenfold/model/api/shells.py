"""Shells in running jobs: what opens one, what is typed, and the frames of its output."""

from collections.abc import Iterator
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Struct, field

from tenfold.model.strings import Argument, Line

SIDE_MAX = 10_000
INPUT_BYTES_MAX = 64 << 10
"""Bytes of input in one request."""
OFFSET_MAX = 1 << 53
DEFAULT_COMMAND = ("/bin/sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash; exec sh")
"""The shell where no command is given: bash where there is one."""
Side = Annotated[int, Meta(ge=1, le=SIDE_MAX)]
FrameKind = Literal["output", "errors", "end", "alive"]
_KINDS: tuple[FrameKind, ...] = ("alive", "output", "errors", "end")
_LENGTH_BYTES = 4
_HEAD_BYTES = 1 + _LENGTH_BYTES


class Terminal(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The terminal that a shell runs in."""

    rows: Side = 24
    columns: Side = 80
    term: Line = ""
    """The kind of terminal, for `TERM`."""


class OpenShell(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A shell to open."""

    command: Annotated[list[Argument], Meta(max_length=4_096)] = field(default_factory=list[str])
    """The command; a shell by default."""
    member: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    """Which process of the gang it runs beside."""
    terminal: Terminal | None = None
    """Without it, input and output are pipes."""


class OpenedShell(Struct, frozen=True, kw_only=True):
    """A shell that runs. It is hung up unless its output is read within seconds."""

    id: str
    job: str
    attempt: int
    member: int


class ShellInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is typed, and what else changes."""

    offset: Annotated[int, Meta(ge=0, le=OFFSET_MAX)] = 0
    """The number of the first byte of `data`; what was received before is skipped."""
    data: Annotated[str, Meta(max_length=2 * INPUT_BYTES_MAX, pattern="^[A-Za-z0-9+/=]*$")] = ""
    """Base64."""
    end: bool = False
    """Whether the input ends after `data`."""
    rows: Side | None = None
    columns: Side | None = None
    """The new size of the terminal, with `rows`."""


class ShellReceived(Struct, frozen=True, kw_only=True):
    """How much of the input was received."""

    offset: int
    """The number of the next byte. Send the rest again if it is smaller than expected."""


class ShellEnd(Struct, frozen=True, kw_only=True):
    """How a shell ended; with neither code nor signal, the job ended or it was hung up."""

    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""


class Frame(NamedTuple):
    """One piece of a shell's output; the content of the end is a `ShellEnd` in JSON."""

    kind: FrameKind
    content: bytes = b""


def framed(frame: Frame) -> bytes:
    """Return a frame as bytes: its kind, its length and its content."""
    kind, length = _KINDS.index(frame.kind), len(frame.content)
    return bytes([kind]) + length.to_bytes(_LENGTH_BYTES, "big") + frame.content


class FrameReader:
    """Reads frames from bytes that may be split anywhere."""

    def __init__(self) -> None:
        self._rest = b""

    def read(self, chunk: bytes) -> Iterator[Frame]:
        """Yield the frames that are complete; raises `ValueError` if there can be none."""
        self._rest += chunk
        while len(self._rest) >= _HEAD_BYTES:
            kind, length = self._rest[0], int.from_bytes(self._rest[1:_HEAD_BYTES], "big")
            if kind >= len(_KINDS):
                raise ValueError("not a frame")
            if len(self._rest) < _HEAD_BYTES + length:
                return
            content = self._rest[_HEAD_BYTES : _HEAD_BYTES + length]
            self._rest = self._rest[_HEAD_BYTES + length :]
            yield Frame(_KINDS[kind], content)
