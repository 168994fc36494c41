"""The end of a shard: checksums of its blocks, and a description that suffices to rebuild a row.

A shard is its data from offset 0, then this trailer. So a replica is the plain object, and the
server sends it with sendfile.

    data | CRC32C of each block | CRC32C of each stripe | header (JSON) | description | footer
"""

import struct
from array import array
from typing import Literal

import msgspec

from tenfold.objects.blobs.checksum import crc32c

_FOOTER = struct.Struct("<QIIIII4s")
FOOTER_BYTES = _FOOTER.size
_MAGIC = b"TFS1"


class ShardHeader(msgspec.Struct, frozen=True):
    """What a shard says of its blob."""

    blob: str
    tier: str
    coding: str
    index: int
    size_bytes: int
    crc32c: int
    version: Literal[1] = 1


class Trailer(msgspec.Struct, frozen=True):
    """The parsed end of a shard."""

    header: ShardHeader
    data_bytes: int
    blocks: "array[int]"
    stripes: "array[int]"
    description: bytes


class Footer(msgspec.Struct, frozen=True):
    """The lengths in the last bytes of a shard."""

    data_bytes: int
    blocks: int
    stripes: int
    header_bytes: int
    description_bytes: int
    crc32c: int

    @property
    def trailer_bytes(self) -> int:
        """Return the bytes of the whole trailer, footer included."""
        tables = 4 * (self.blocks + self.stripes)
        return tables + self.header_bytes + self.description_bytes + FOOTER_BYTES


class DamagedShard(Exception):
    """A shard, or a part of it, does not match its checksum."""


def encode_trailer(trailer: Trailer) -> bytes:
    """Return the bytes that follow the data of a shard."""
    header = msgspec.json.encode(trailer.header)
    body = b"".join(
        (trailer.blocks.tobytes(), trailer.stripes.tobytes(), header, trailer.description)
    )
    footer = _FOOTER.pack(
        trailer.data_bytes,
        len(trailer.blocks),
        len(trailer.stripes),
        len(header),
        len(trailer.description),
        0,
        _MAGIC,
    )
    check = crc32c(footer, crc32c(body))
    return body + footer[: -len(_MAGIC) - 4] + check.to_bytes(4, "little") + _MAGIC


def parse_footer(tail: bytes) -> Footer:
    """Parse the last bytes of a shard."""
    if len(tail) < FOOTER_BYTES or tail[-len(_MAGIC) :] != _MAGIC:
        raise DamagedShard("the shard has no footer")
    fields = _FOOTER.unpack(tail[-FOOTER_BYTES:])
    return Footer(*fields[:-1])


def parse_trailer(data: bytes) -> Trailer:
    """Parse a trailer, from the end of its shard's data to the end of the shard."""
    footer = parse_footer(data)
    if len(data) != footer.trailer_bytes:
        raise DamagedShard("the shard's trailer is incomplete")
    body = data[:-FOOTER_BYTES]
    plain = data[-FOOTER_BYTES : -len(_MAGIC) - 4] + bytes(4) + _MAGIC
    if crc32c(plain, crc32c(body)) != footer.crc32c:
        raise DamagedShard("the shard's trailer does not match its checksum")
    blocks_end = 4 * footer.blocks
    stripes_end = blocks_end + 4 * footer.stripes
    header_end = stripes_end + footer.header_bytes
    return Trailer(
        header=msgspec.json.decode(body[stripes_end:header_end], type=ShardHeader),
        data_bytes=footer.data_bytes,
        blocks=array("I", body[:blocks_end]),
        stripes=array("I", body[blocks_end:stripes_end]),
        description=body[header_end:],
    )


def seal_note(described_ms: int, description: bytes) -> bytes:
    """Return a later description of a blob, with its time and its checksum in front."""
    dated = described_ms.to_bytes(8, "little") + description
    return crc32c(dated).to_bytes(4, "little") + dated


def open_note(sealed: bytes) -> tuple[int, bytes]:
    """Return the time and the description of a note, after checking it."""
    dated = sealed[4:]
    if len(dated) < 8 or crc32c(dated) != int.from_bytes(sealed[:4], "little"):
        raise DamagedShard("the description does not match its checksum")
    return int.from_bytes(dated[:8], "little"), dated[8:]
