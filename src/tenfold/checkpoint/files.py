"""The few things that saving and loading ask of a disk.

Everything goes through `Files`, so that a test can put a disk there that forgets what was
not synced. `Disk` is the real one. Written files are always synced: there
is no way to ask for less.
"""

import errno
import fcntl
import os
import shutil
import socket
import stat
import time
from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Protocol

from tenfold.checkpoint.errors import CheckpointError, warn

Bytes = bytes | memoryview
_POLL_S = 0.02
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)


class Stream(Protocol):
    """An open file that is read from its start to its end."""

    def readinto(self, into: memoryview, /) -> int:
        """Fill `into` as far as there is something, and return how far; 0 at the end."""
        ...


class Files(Protocol):
    """What a disk can do. Failures are `OSError`, as the system raises them."""

    def make_folder(self, path: Path) -> None:
        """Make a folder and those above it; one that is there is left alone."""
        ...

    def write(self, path: Path, chunks: Iterable[Bytes]) -> None:
        """Make a file, write it whole and sync its content."""
        ...

    def open(self, path: Path) -> AbstractContextManager[Stream]:
        """Open a file for reading."""
        ...

    def size(self, path: Path) -> int:
        """Return the size of a file."""
        ...

    def names(self, folder: Path) -> list[str]:
        """Return what a folder holds, sorted; nothing where there is no folder."""
        ...

    def rename(self, old: Path, new: Path) -> None:
        """Give a file or folder another name at once, over a file that has it."""
        ...

    def sync_folder(self, path: Path) -> None:
        """Return when names in this folder are as they are for good."""
        ...

    def remove(self, path: Path) -> None:
        """Remove a folder with all it holds; one that is not there is no fault."""
        ...

    def lock(self, path: Path, wait_s: float) -> AbstractContextManager[None]:
        """Be the only holder of a lock, or raise after `wait_s`."""
        ...

    def pause(self) -> float:
        """Let others go on for a moment, and return the seconds it took."""
        ...


class Disk:
    """The file system of this machine."""

    def make_folder(self, path: Path) -> None:
        """Make a folder and those above it, each name synced in the folder that holds it."""
        missing = [one for one in (path, *path.parents) if not one.exists()]
        path.mkdir(parents=True, exist_ok=True)
        for one in missing:
            self.sync_folder(one.parent)

    def write(self, path: Path, chunks: Iterable[Bytes]) -> None:
        """Make a file, write it whole and sync its content."""
        with path.open("wb", buffering=0) as file:
            for chunk in chunks:
                rest = memoryview(chunk)
                while rest:
                    rest = rest[file.write(rest) :]
            os.fsync(file.fileno())

    @contextmanager
    def open(self, path: Path) -> Generator[Stream, None, None]:
        """Open a file; what the system still has of it in memory is dropped first.

        Without that a read-back would see what was meant to be written, not what was.
        """
        with open(path, "rb", buffering=0, opener=_opened_file) as file:
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            yield file

    def size(self, path: Path) -> int:
        """Return the size of a file."""
        return path.stat().st_size

    def names(self, folder: Path) -> list[str]:
        """Return what a folder holds, sorted; nothing where there is no folder."""
        try:
            return sorted(os.listdir(folder))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def rename(self, old: Path, new: Path) -> None:
        """Give a file or folder another name.

        A network file system may answer a call that it had to send twice with "no such
        file", although the first one went through. Then the new name is there.
        """
        try:
            old.rename(new)
        except FileNotFoundError:
            if old.exists() or not new.exists():
                raise

    def sync_folder(self, path: Path) -> None:
        """Return when names in this folder are as they are for good."""
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        except OSError as error:
            # Some network file systems sync names at once and refuse to be asked.
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise
        finally:
            os.close(folder)

    def remove(self, path: Path) -> None:
        """Remove a folder with all it holds; one that is not there is no fault."""
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            return

    @contextmanager
    def lock(self, path: Path, wait_s: float) -> Generator[None, None, None]:
        """Hold a lock that goes with the process, however it ends."""
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            self._take(file, path, wait_s)
            try:
                yield
            finally:
                # A forked child has the same lock: closing alone would leave it held. Where
                # locks do nothing, giving one back fails as well.
                with suppress(OSError):
                    fcntl.flock(file, fcntl.LOCK_UN)
        finally:
            os.close(file)

    def _take(self, file: int, path: Path, wait_s: float) -> None:
        waited_s = 0.0
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if waited_s >= wait_s:
                    raise _busy(path, os.pread(file, 200, 0)) from None
                waited_s += self.pause()
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
                warn(f"`{path}` cannot be locked here: {error.strerror}")
                return
            else:
                _write_holder(file)
                return

    def pause(self) -> float:
        """Sleep for a moment, and return the seconds it took."""
        before = time.monotonic()
        time.sleep(_POLL_S)
        return time.monotonic() - before


def _opened_file(path: str, flags: int) -> int:
    """Open a file at once, and nothing but a file: whoever opens a named pipe may wait for ever."""
    file = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "it is no plain file", path)
    return file


def _write_holder(file: int) -> None:
    """Say who holds the lock, for the message of one who waits; a full disk is no obstacle."""
    with suppress(OSError):
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()} on {socket.gethostname()}".encode(), 0)


def _busy(path: Path, holder: bytes) -> CheckpointError:
    who = holder.decode(errors="replace") or "unknown"
    return CheckpointError(
        code="checkpoint-folder-busy",
        message=f"another process writes to `{path.parent}` (process {who})",
        hint="end it, or give each run a folder of its own",
    )


DISK = Disk()
