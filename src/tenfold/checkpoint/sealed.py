"""Small JSON files that carry the hash of their own content.

A manifest that has rotted may still be JSON, with one digit of the step another one. The
seal tells.
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
_LARGEST = 1 << 30
_PIECE = 8 << 20


def seal(body: Record) -> bytes:
    """Return a record as JSON, with its hash beside it."""
    text = _plain(body)
    return f'{{"sha256": "{_hash(text)}", "body": {text}}}\n'.encode()


def unseal(content: bytes, name: str) -> Record:
    """Return the record; raise `Damaged` where it is not what was sealed."""
    try:
        outer = cast("Record", json.loads(content))
        body = cast("Record", outer["body"])
        text = _plain(body)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Damaged(f"`{name}` is not a sealed record") from None
    if not isinstance(cast("object", body), dict) or outer.get("sha256") != _hash(text):
        raise Damaged(f"`{name}` does not have the hash it was written with")
    return body


def read_all(files: Files, path: Path) -> bytes:
    """Return a small file whole; raise `Damaged` where that cannot be."""
    try:
        size = files.size(path)
        if size > _LARGEST:
            raise Damaged(f"`{path.name}` is too large for a record")
        content = bytearray(size)
        with files.open(path) as stream:
            filled = fill(stream.readinto, memoryview(content))
    except OSError as error:
        raise Damaged(f"`{path.name}` cannot be read: {error.strerror or error}") from None
    if filled < size:
        raise Damaged(f"`{path.name}` is shorter than it was")
    return bytes(content)


def read_sealed(files: Files, path: Path) -> Record:
    """Return the record in a file; raise `Damaged` where there is none."""
    return unseal(read_all(files, path), path.name)


def write_sealed(files: Files, path: Path, body: Record) -> None:
    """Write a record aside and rename it, so that it is there whole or not at all."""
    staging = path.with_name(f"{path.name}.new")
    files.write(staging, [seal(body)])
    files.rename(staging, path)
    files.sync_folder(path.parent)


def digest(files: Files, path: Path) -> tuple[int, str]:
    """Return size and hash of a file as it lies on the disk."""
    hasher, total, piece = hashlib.sha256(), 0, memoryview(bytearray(_PIECE))
    with files.open(path) as stream:
        while count := stream.readinto(piece):
            hasher.update(piece[:count])
            total += count
    return total, hasher.hexdigest()


def fill(readinto: ReadInto, into: memoryview) -> int:
    """Read until `into` is full or the file ends, and return how much came."""
    filled = 0
    while filled < len(into):
        count = readinto(into[filled:])
        if not count:
            break
        filled += count
    return filled


def number(record: Record, key: str) -> int:
    """Return a whole number of a record; raise `Damaged` where it is none."""
    value = record.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise Damaged(f"`{key}` is not a whole number")
    return value


def text(record: Record, key: str) -> str:
    """Return a text of a record; raise `Damaged` where it is none."""
    value = record.get(key)
    if not isinstance(value, str):
        raise Damaged(f"`{key}` is not a text")
    return value


def _plain(body: object) -> str:
    return json.dumps(body, sort_keys=True, separators=(",", ":"))


def _hash(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()
