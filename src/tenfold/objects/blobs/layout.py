"""Layouts: how a blob is divided into shards, and which backend holds each one.

The text form is stored in the catalogue, for example `replicas=2;at=nvme0,nvme1` or
`erasure=4+2;chunk=1048576;at=a,b,-,d,e~1,f`. `-` is a shard that could not be written; `e~1` is a
shard that was moved once, which gives its file another name.
"""

from functools import lru_cache

import msgspec

BLOCK_BYTES = 1 << 20
"""Bytes with one checksum in a replica; a range that is verified is widened to whole blocks."""
# The coding library works on whole vectors; a stripe is padded so that each chunk is a multiple.
_CHUNK_MULTIPLE = 64


class Position(msgspec.Struct, frozen=True):
    """Where a shard is: its backend, and how often it was moved."""

    backend: str
    moves: int = 0


class Coding(msgspec.Struct, frozen=True):
    """How a blob is divided: `data_shards` suffice to read it, `parity_shards` may be lost."""

    data_shards: int
    parity_shards: int
    chunk_bytes: int = BLOCK_BYTES
    erasure: bool = False

    @property
    def shards(self) -> int:
        """Return the number of shards."""
        return self.data_shards + self.parity_shards

    @property
    def stripe_bytes(self) -> int:
        """Return the data bytes of a full stripe; of a replica, of one block."""
        return self.data_shards * self.chunk_bytes if self.erasure else self.chunk_bytes

    def stripes(self, size_bytes: int) -> int:
        """Return the number of stripes of a blob."""
        return -(-size_bytes // self.stripe_bytes)

    def chunk_of(self, stripe_bytes: int) -> int:
        """Return the bytes of a chunk of a stripe that holds `stripe_bytes` of data."""
        even = -(-stripe_bytes // self.data_shards)
        return -(-even // _CHUNK_MULTIPLE) * _CHUNK_MULTIPLE

    def text(self) -> str:
        """Return the text form without positions."""
        if not self.erasure:
            return f"replicas={self.shards}"
        return f"erasure={self.data_shards}+{self.parity_shards};chunk={self.chunk_bytes}"


class Layout(msgspec.Struct, frozen=True):
    """A coding and the position of each shard; None is a shard that is missing."""

    coding: Coding
    at: tuple[Position | None, ...]

    def text(self) -> str:
        """Return the text form."""
        return f"{self.coding.text()};at={','.join(_position_text(one) for one in self.at)}"


def replicated(replicas: int) -> Coding:
    """Return the coding of `replicas` equal copies."""
    return Coding(data_shards=1, parity_shards=replicas - 1)


def erasure_coded(data_shards: int, parity_shards: int, chunk_bytes: int = BLOCK_BYTES) -> Coding:
    """Return the coding of `data_shards` plus `parity_shards` chunks in each stripe."""
    return Coding(data_shards, parity_shards, chunk_bytes, erasure=True)


@lru_cache(maxsize=65_536)
def parse_layout(text: str) -> Layout:
    """Parse the text form."""
    fields = dict(field.split("=", 1) for field in text.split(";"))
    return Layout(
        parse_coding(text),
        tuple(_parse_position(one) for one in fields["at"].split(",")),
    )


def parse_coding(text: str) -> Coding:
    """Parse the text form; positions may be absent."""
    fields = dict(field.split("=", 1) for field in text.split(";"))
    if "replicas" in fields:
        return replicated(int(fields["replicas"]))
    data_shards, parity_shards = fields["erasure"].split("+")
    return erasure_coded(int(data_shards), int(parity_shards), int(fields["chunk"]))


def shard_name(blob: str, index: int, moves: int) -> str:
    """Return the name of a shard on its backend."""
    return f"{blob}.{index}~{moves}" if moves else f"{blob}.{index}"


def parse_shard_name(name: str) -> tuple[str, int, int] | None:
    """Return the blob, the index and the moves of a shard by its name; None for another file."""
    blob, dot, rest = name.partition(".")
    index, _, moves = rest.partition("~")
    if not dot or not index.isdigit() or (moves and not moves.isdigit()):
        return None
    return blob, int(index), int(moves or 0)


def _position_text(position: Position | None) -> str:
    if position is None:
        return "-"
    return f"{position.backend}~{position.moves}" if position.moves else position.backend


def _parse_position(text: str) -> Position | None:
    if text == "-":
        return None
    backend, _, moves = text.partition("~")
    return Position(backend, int(moves or 0))
