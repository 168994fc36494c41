"""A disk in memory that can lose its power, fill up and rot: for tests.

Names and contents have two states, what a reader sees now and what is certain because it was
synced. When the power goes, every name that was not synced is there or not, every content
that was not synced is torn in some way, and each is drawn by itself: worse than any real file
system is. Operations are counted, so a test can cut the power at each of them.
"""

import errno
import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from random import Random
from threading import RLock, get_ident
from time import sleep

from tenfold.checkpoint.errors import CheckpointError
from tenfold.checkpoint.files import Bytes, Stream


class PowerCut(BaseException):
    """The machine is off. No handler for errors gets to see it."""


class _File:
    def __init__(self, content: bytes = b"") -> None:
        self.now = bytearray(content)
        self.synced = content


class _Folder:
    def __init__(self) -> None:
        self.now: dict[str, _Node] = {}
        self.synced: dict[str, _Node] = {}


_Node = _File | _Folder


class ForgetfulDisk:
    """A disk whose power goes at operation `cut_at`, and that has `room` bytes."""

    def __init__(
        self, *, cut_at: int | None = None, room: int | None = None, seed: int = 0
    ) -> None:
        self.operations = 0
        self.cut_at = cut_at
        self.room = room
        self._random = Random(seed)
        self._top = _Folder()
        self._held: dict[Path, int] = {}
        self._turn = RLock()

    def make_folder(self, path: Path) -> None:
        """Make a folder and those above it; as on a real disk they are synced."""
        with self._turn:
            for depth in range(1, len(path.parts) + 1):
                above = self._folder(Path(*path.parts[: depth - 1]))
                name = path.parts[depth - 1]
                if name not in above.now:
                    self._count()
                    above.now[name] = _Folder()
                    self._count()
                    above.synced[name] = above.now[name]

    def write(self, path: Path, chunks: Iterable[Bytes]) -> None:
        """Make a file, write it piece by piece and sync its content."""
        with self._turn:
            self._count()
            file = _File()
            self._folder(path.parent).now[path.name] = file
        for chunk in chunks:
            with self._turn:
                whole = bytes(chunk)
                # A part of the last piece may arrive before the power goes.
                part = self._random.randrange(len(whole) + 1)
                self._add(file, whole[:part])
                self._count()
                self._add(file, whole[part:])
        with self._turn:
            self._count()
            file.synced = bytes(file.now)

    @contextmanager
    def open(self, path: Path) -> Generator[Stream, None, None]:
        """Open a file for reading."""
        with self._turn:
            content = bytes(self._file(path).now)
        yield BytesIO(content)

    def size(self, path: Path) -> int:
        """Return the size of a file."""
        with self._turn:
            return len(self._file(path).now)

    def names(self, folder: Path) -> list[str]:
        """Return what a folder holds, sorted; nothing where there is no folder."""
        with self._turn:
            node = self._node(folder)
            return sorted(node.now) if isinstance(node, _Folder) else []

    def rename(self, old: Path, new: Path) -> None:
        """Give a file or folder another name; certain only after `sync_folder`."""
        with self._turn:
            self._count()
            if self._node(old) is None:
                raise _gone(old)
            self._folder(new.parent).now[new.name] = self._folder(old.parent).now.pop(old.name)

    def sync_folder(self, path: Path) -> None:
        """Make the names in this folder certain."""
        with self._turn:
            self._count()
            folder = self._folder(path)
            folder.synced = dict(folder.now)

    def remove(self, path: Path) -> None:
        """Remove a folder file by file."""
        with self._turn:
            node = self._node(path)
            if isinstance(node, _Folder):
                for name in sorted(node.now):
                    self.remove(path / name)
            if node is not None:
                self._count()
                del self._folder(path.parent).now[path.name]
                self.room = None if self.room is None else self.room + _size(node)

    @contextmanager
    def lock(self, path: Path, wait_s: float) -> Generator[None, None, None]:
        """Hold a lock, or raise at once: nobody waits on this disk."""
        with self._turn:
            self._count()
            if path in self._held:
                raise CheckpointError(
                    code="checkpoint-folder-busy",
                    message=f"another thread holds `{path}`; {wait_s:g} s would not help",
                )
            self._held[path] = get_ident()
        try:
            yield
        finally:
            self._held.pop(path, None)

    def pause(self) -> float:
        """Let other threads go on; raise where the power has gone meanwhile."""
        sleep(0.001)
        with self._turn:
            self._still_on()
        return 0.001

    def after_power_cut(self, seed: int = 0) -> "ForgetfulDisk":
        """Return the disk that a new start finds."""
        found = type(self)(seed=seed)
        with self._turn:
            found._top = _survivor(self._top, Random(seed))
        return found

    def rot(self, path: Path, bit: int) -> None:
        """Turn one bit of a file around, for good."""
        file = self._file(path)
        file.now[bit // 8] ^= 1 << bit % 8
        file.synced = bytes(file.now)

    def _count(self) -> None:
        self._still_on()
        self.operations += 1
        self._still_on()

    def _still_on(self) -> None:
        if self.cut_at is not None and self.operations >= self.cut_at:
            raise PowerCut

    def _add(self, file: _File, piece: bytes) -> None:
        fits = piece if self.room is None else piece[: self.room]
        file.now += fits
        if self.room is not None:
            self.room -= len(fits)
        if len(fits) < len(piece):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _node(self, path: Path) -> _Node | None:
        node: _Node | None = self._top
        for part in path.parts:
            node = node.now.get(part) if isinstance(node, _Folder) else None
        return node

    def _folder(self, path: Path) -> _Folder:
        node = self._node(path)
        if not isinstance(node, _Folder):
            raise _gone(path)
        return node

    def _file(self, path: Path) -> _File:
        node = self._node(path)
        if not isinstance(node, _File):
            raise _gone(path)
        return node


def _survivor(folder: _Folder, random: Random) -> _Folder:
    """Draw what is left of a folder, name by name."""
    left = _Folder()
    for name in sorted({**folder.synced, **folder.now}):
        before, after = folder.synced.get(name), folder.now.get(name)
        node = before if before is after else random.choice([before, after])
        if isinstance(node, _Folder):
            left.now[name] = _survivor(node, random)
        elif node is not None:
            left.now[name] = _File(_torn(node, random))
    left.synced = dict(left.now)
    return left


def _torn(file: _File, random: Random) -> bytes:
    """Draw what is left of a content: what was synced, a part, or a part and zeros or noise."""
    whole = bytes(file.now)
    if whole == file.synced:
        return whole
    kept = random.randrange(len(whole) + 1)
    rest = len(whole) - kept
    return random.choice(
        [
            file.synced,
            whole,
            whole[:kept],
            whole[:kept] + bytes(rest),
            whole[:kept] + random.randbytes(rest),
        ]
    )


def _size(node: _Node) -> int:
    return len(node.now) if isinstance(node, _File) else 0


def _gone(path: Path) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
