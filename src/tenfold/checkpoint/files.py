"""The disk operations that saving and loading need.

Everything goes through `Files`, so a test can substitute a disk that loses whatever was not synced.
`Disk` is the real one. Written files are always synced; there is no option for less.
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
    """An open file that is read sequentially."""

    def readinto(self, into: memoryview, /) -> int:
        """Read into `into` and return the number of bytes; 0 at the end."""
        ...


class Files(Protocol):
    """Operations of a disk. Failures are `OSError`, as raised by the system."""

    def make_folder(self, path: Path) -> None:
        """Create a folder and its parents; an existing one is left alone."""
        ...

    def write(self, path: Path, chunks: Iterable[Bytes]) -> None:
        """Create a file, write it completely and sync its content."""
        ...

    def open(self, path: Path) -> AbstractContextManager[Stream]:
        """Open a file for reading."""
        ...

    def size(self, path: Path) -> int:
        """Return the size of a file."""
        ...

    def names(self, folder: Path) -> list[str]:
        """Return the names in a folder, sorted; none if it does not exist."""
        ...

    def rename(self, old: Path, new: Path) -> None:
        """Rename a file or folder atomically, replacing a file of that name."""
        ...

    def sync_folder(self, path: Path) -> None:
        """Sync the names in this folder."""
        ...

    def remove(self, path: Path) -> None:
        """Remove a folder and its content; a missing one is not an error."""
        ...

    def lock(self, path: Path, wait_s: float) -> AbstractContextManager[None]:
        """Hold a lock exclusively, or raise after `wait_s`."""
        ...

    def pause(self) -> float:
        """Wait a moment, and return the seconds it took."""
        ...


class Disk:
    """The file system of this machine."""

    def make_folder(self, path: Path) -> None:
        """Create a folder and its parents, and sync each new name."""
        missing = [one for one in (path, *path.parents) if not one.exists()]
        path.mkdir(parents=True, exist_ok=True)
        for one in missing:
            self.sync_folder(one.parent)

    def write(self, path: Path, chunks: Iterable[Bytes]) -> None:
        """Create a file, write it completely and sync its content."""
        with path.open("wb", buffering=0) as file:
            for chunk in chunks:
                rest = memoryview(chunk)
                while rest:
                    rest = rest[file.write(rest) :]
            os.fsync(file.fileno())

    @contextmanager
    def open(self, path: Path) -> Generator[Stream, None, None]:
        """Open a file after dropping its cached pages.

        Otherwise reading back would return what was meant to be written, not what is on disk.
        """
        with open(path, "rb", buffering=0, opener=_opened_file) as file:
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            yield file

    def size(self, path: Path) -> int:
        """Return the size of a file."""
        return path.stat().st_size

    def names(self, folder: Path) -> list[str]:
        """Return the names in a folder, sorted; none if it does not exist."""
        try:
            return sorted(os.listdir(folder))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def rename(self, old: Path, new: Path) -> None:
        """Rename a file or folder.

        A network file system may answer a repeated call with "no such file" although the first one
        succeeded. Then the new name exists.
        """
        try:
            old.rename(new)
        except FileNotFoundError:
            if old.exists() or not new.exists():
                raise

    def sync_folder(self, path: Path) -> None:
        """Sync the names in this folder."""
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        except OSError as error:
            # Some network file systems sync names immediately and reject the call.
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise
        finally:
            os.close(folder)

    def remove(self, path: Path) -> None:
        """Remove a folder and its content; a missing one is not an error."""
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            return

    @contextmanager
    def lock(self, path: Path, wait_s: float) -> Generator[None, None, None]:
        """Hold a lock that is released when the process ends, however it ends."""
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            self._take(file, path, wait_s)
            try:
                yield
            finally:
                # A forked child shares the lock: closing alone would leave it held. Where locks do
                # not work, unlocking fails as well.
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
                warn(f"cannot lock `{path}`: {error.strerror}")
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
    """Open a regular file without blocking: opening a named pipe could wait forever."""
    file = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return file


def _write_holder(file: int) -> None:
    """Write the holder into the lock file, for error messages; a full disk is ignored."""
    with suppress(OSError):
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()} on {socket.gethostname()}".encode(), 0)


def _busy(path: Path, holder: bytes) -> CheckpointError:
    who = holder.decode(errors="replace") or "unknown"
    return CheckpointError(
        code="checkpoint-folder-busy",
        message=f"another process is writing to `{path.parent}` (process {who})",
        hint="stop it, or use a separate folder for each run",
    )


DISK = Disk()
