"""Backends: where shards lie. Calls block and are made in worker threads.

A missing shard raises `FileNotFoundError`, another failure of the backend `OSError`.
"""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Protocol

import msgspec

from tenfold.objects.blobs.refs import Bytes

_SHARDS = "shards"
_PARTIAL = "partial"
_NOTES = "notes"
_IDENTITY = "backend.json"


class Found(msgspec.Struct, frozen=True):
    """A file that a backend holds."""

    name: str
    size_bytes: int
    changed_ms: int


class ShardWriting(Protocol):
    """A shard that is being written; not visible before `commit` returns."""

    def write(self, data: Bytes) -> None:
        """Append bytes."""
        ...

    def commit(self) -> None:
        """Make the shard durable and visible."""
        ...

    def abort(self) -> None:
        """Drop what was written."""
        ...


class Backend(Protocol):
    """A place for shards, all named by their blob."""

    @property
    def name(self) -> str:
        """Return the name that layouts use."""
        ...

    @property
    def local(self) -> bool:
        """Return whether shards are files that may be sent with sendfile."""
        ...

    def create(self, shard: str) -> ShardWriting:
        """Start a shard."""
        ...

    def open(self, shard: str) -> int:
        """Return a descriptor of the shard's file; only where `local`."""
        ...

    def read(self, shard: str, start: int, end: int) -> bytes:
        """Return bytes of a shard; fewer at its end."""
        ...

    def tail(self, shard: str, count: int) -> bytes:
        """Return the last bytes of a shard; all of it if it is shorter."""
        ...

    def delete(self, shard: str) -> None:
        """Remove a shard and its note; a missing one is not an error."""
        ...

    def identity(self) -> bytes | None:
        """Return what `identify` stored; None if this place was never used."""
        ...

    def identify(self, identity: bytes) -> None:
        """Prepare the place for use and mark it durably."""
        ...

    def put_note(self, name: str, data: bytes) -> None:
        """Store a small document durably, replacing one of that name."""
        ...

    def get_note(self, name: str) -> bytes | None:
        """Return a small document; None if there is none."""
        ...

    def walk(self) -> Iterator[Found]:
        """Yield every shard."""
        ...

    def partials(self, since_ms: int) -> int:
        """Return how many shards are being written, by a change since then."""
        ...

    def remove_partial(self, before_ms: int) -> int:
        """Remove what crashed writers left and did not touch since; return how many."""
        ...


class DirectoryBackend:
    """Shards as files of a directory, normally one directory per disk."""

    local = True

    def __init__(self, name: str, root: Path) -> None:
        self.name = name
        self.root = root

    def prepare(self) -> None:
        """Create the folders, so that no writer has to sync a new folder."""
        (self.root / _PARTIAL).mkdir(parents=True, exist_ok=True)
        for folder in (_SHARDS, _NOTES):
            for prefix in range(256):
                (self.root / folder / f"{prefix:02x}").mkdir(parents=True, exist_ok=True)
            _sync_folder(self.root / folder)
        _sync_folder(self.root)

    def identity(self) -> bytes | None:
        """Return what `identify` stored."""
        try:
            return (self.root / _IDENTITY).read_bytes()
        except FileNotFoundError:
            return None

    def identify(self, identity: bytes) -> None:
        """Create the folders and mark the directory."""
        self.prepare()
        writing = _FileWriting(self.root / _PARTIAL, self.root / _IDENTITY)
        writing.write(identity)
        writing.commit()

    def create(self, shard: str) -> "_FileWriting":
        """Start a shard."""
        return _FileWriting(self.root / _PARTIAL, self._path(_SHARDS, shard))

    def open(self, shard: str) -> int:
        """Return a descriptor of the shard's file."""
        return os.open(self._path(_SHARDS, shard), os.O_RDONLY | os.O_CLOEXEC)

    def read(self, shard: str, start: int, end: int) -> bytes:
        """Return bytes of a shard."""
        descriptor = self.open(shard)
        try:
            return _pread(descriptor, start, end)
        finally:
            os.close(descriptor)

    def tail(self, shard: str, count: int) -> bytes:
        """Return the last bytes of a shard."""
        descriptor = self.open(shard)
        try:
            size_bytes = os.fstat(descriptor).st_size
            return _pread(descriptor, max(0, size_bytes - count), size_bytes)
        finally:
            os.close(descriptor)

    def delete(self, shard: str) -> None:
        """Remove a shard and its note."""
        for folder in (_NOTES, _SHARDS):
            with suppress(FileNotFoundError):
                self._path(folder, shard).unlink()

    def put_note(self, name: str, data: bytes) -> None:
        """Store a small document durably."""
        writing = _FileWriting(self.root / _PARTIAL, self._path(_NOTES, name))
        writing.write(data)
        writing.commit()

    def get_note(self, name: str) -> bytes | None:
        """Return a small document."""
        try:
            return self._path(_NOTES, name).read_bytes()
        except FileNotFoundError:
            return None

    def walk(self) -> Iterator[Found]:
        """Yield every shard, in the order of names."""
        top = self.root / _SHARDS
        for folder in sorted(os.listdir(top)):
            with os.scandir(top / folder) as entries:
                files = sorted(entries, key=lambda entry: entry.name)
            for entry in files:
                with suppress(FileNotFoundError):
                    state = entry.stat()
                    yield Found(entry.name, state.st_size, state.st_mtime_ns // 1_000_000)

    def partials(self, since_ms: int) -> int:
        """Return how many shards are being written."""
        count = 0
        for path in (self.root / _PARTIAL).iterdir():
            with suppress(FileNotFoundError):
                count += path.stat().st_mtime_ns // 1_000_000 >= since_ms
        return count

    def remove_partial(self, before_ms: int) -> int:
        """Remove what crashed writers left."""
        removed = 0
        for path in sorted((self.root / _PARTIAL).iterdir()):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime_ns // 1_000_000 < before_ms:
                    path.unlink()
                    removed += 1
        return removed

    def _path(self, folder: str, shard: str) -> Path:
        return self.root / folder / shard[:2] / shard


class _FileWriting:
    """A file that gets its name when it is whole and on disk.

    A write that was cancelled goes on in its thread while another one aborts. The lock keeps the
    descriptor from being closed, and given to another file, under that write.
    """

    def __init__(self, partial: Path, final: Path) -> None:
        self._final = final
        self._partial = partial / f"{final.name}.{secrets.token_hex(4)}"
        self._lock = Lock()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._descriptor = os.open(self._partial, flags, 0o644)

    def write(self, data: Bytes) -> None:
        """Append bytes."""
        rest = memoryview(data)
        with self._lock:
            while rest:
                rest = rest[os.write(self._opened(), rest) :]

    def commit(self) -> None:
        """Sync the file, give it its name and sync the folder."""
        with self._lock:
            os.fsync(self._opened())
            self._close()
            self._partial.rename(self._final)
            _sync_folder(self._final.parent)

    def abort(self) -> None:
        """Remove the file."""
        with self._lock:
            self._close()
            with suppress(FileNotFoundError):
                self._partial.unlink()

    def _opened(self) -> int:
        if self._descriptor < 0:
            raise OSError("the write was aborted")
        return self._descriptor

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _pread(descriptor: int, start: int, end: int) -> bytes:
    data = os.pread(descriptor, end - start, start)
    if len(data) == end - start or not data:
        return data
    parts = [data]
    done = start + len(data)
    while done < end and (more := os.pread(descriptor, end - done, done)):
        parts.append(more)
        done += len(more)
    return b"".join(parts)


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems sync names immediately and reject the call.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
