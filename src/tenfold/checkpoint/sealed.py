"""Small JSON files with a hash of their own content.

A damaged manifest may still be valid JSON with one wrong digit. The hash detects that.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import cast

from tenfold.checkpoint.errors import Damaged
from tenfold.checkpoint.files import Files

ReadInto = Callable[[memoryview], int]
Record = dict[str, object]
BYTES_MOST = 1 << 30
"""Size of the largest record that a job may read of its own."""
_PIECE = 8 << 20


def seal(body: Record) -> bytes:
    """Return a record as JSON with its hash."""
    text = _plain(body)
    return f'{{"sha256": "{_hash(text)}", "body": {text}}}\n'.encode()


def unseal(content: bytes, name: str) -> Record:
    """Return the record; raise `Damaged` if the hash does not match."""
    try:
        outer = cast("Record", json.loads(content))
        body = cast("Record", outer["body"])
        text = _plain(body)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Damaged(f"`{name}` is not a valid record") from None
    if not isinstance(cast("object", body), dict) or outer.get("sha256") != _hash(text):
        raise Damaged(f"`{name}` does not match its hash")
    return body


def read_all(files: Files, path: Path, bytes_most: int = BYTES_MOST) -> bytes:
    """Return the content of a small file; raise `Damaged` if it cannot be read."""
    try:
        size = files.size(path)
        if size > bytes_most:
            raise Damaged(f"`{path.name}` is too large for a record")
        content = bytearray(size)
        with files.open(path) as stream:
            filled = fill(stream.readinto, memoryview(content))
    except OSError as error:
        raise Damaged(f"cannot read `{path.name}`: {error.strerror or error}") from None
    if filled < size:
        raise Damaged(f"`{path.name}` is truncated")
    return bytes(content)


def read_sealed(files: Files, path: Path, bytes_most: int = BYTES_MOST) -> Record:
    """Return the record in a file; raise `Damaged` if there is none."""
    return unseal(read_all(files, path, bytes_most), path.name)


def write_sealed(files: Files, path: Path, body: Record) -> None:
    """Write a record to a temporary file and rename it, so it is never partial."""
    staging = path.with_name(f"{path.name}.new")
    files.write(staging, [seal(body)])
    files.rename(staging, path)
    files.sync_folder(path.parent)


def digest(files: Files, path: Path) -> tuple[int, str]:
    """Return size and hash of a file on disk."""
    hasher, total, piece = hashlib.sha256(), 0, memoryview(bytearray(_PIECE))
    with files.open(path) as stream:
        while count := stream.readinto(piece):
            hasher.update(piece[:count])
            total += count
    return total, hasher.hexdigest()


def fill(readinto: ReadInto, into: memoryview) -> int:
    """Read until `into` is full or the file ends, and return the number of bytes."""
    filled = 0
    while filled < len(into):
        count = readinto(into[filled:])
        if not count:
            break
        filled += count
    return filled


def number(record: Record, key: str) -> int:
    """Return a non-negative integer of a record; raise `Damaged` otherwise."""
    value = record.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise Damaged(f"`{key}` is not a non-negative integer")
    return value


def text(record: Record, key: str) -> str:
    """Return a string of a record; raise `Damaged` otherwise."""
    value = record.get(key)
    if not isinstance(value, str):
        raise Damaged(f"`{key}` is not a string")
    return value


def _plain(body: object) -> str:
    return json.dumps(body, sort_keys=True, separators=(",", ":"))


def _hash(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()
