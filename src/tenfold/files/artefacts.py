"""The digest of an artefact: of a file, or of all files of a folder.

A file's digest is what `sha256sum FILE` prints. A folder's is that of the list that
`sha256sum` prints of its files, by path: `find . -type f | LC_ALL=C sort` gives the same order.
Links to files are read as files, as in caches of models; links to folders and special files are
refused, since they may lead anywhere.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from tenfold.model.errors import InputError
from tenfold.model.registry import Artefact, ArtefactKind
from tenfold.model.strings import is_one_line

CHUNK_BYTES = 4 << 20
"""Bytes in memory at a time, however large a file is."""
FILES_MAX = 100_000

Progress = Callable[[int], None]
"""Called with the bytes read so far."""


def artefact_of(path: Path, progress: Progress | None = None) -> Artefact:
    """Return a file or folder as an artefact: its absolute path, size and digest."""
    location = Path(os.path.abspath(path))
    files = artefact_files(location)
    kind: ArtefactKind = "file" if files[0][1] == "" else "folder"
    size = sum(one[2] for one in files)
    return Artefact(
        location=str(location),
        kind=kind,
        digest=_digest(files, kind, progress or _ignore),
        size_bytes=size,
        files=len(files),
    )


def size_of(path: Path) -> int:
    """Return the bytes that the digest of an artefact reads."""
    return sum(size for _, _, size in artefact_files(path))


def difference(artefact: Artefact, path: Path, progress: Progress | None = None) -> str:
    """Return how a path differs from an artefact; empty if it does not."""
    found = artefact_of(path, progress)
    if artefact.kind not in (found.kind, "uri"):
        return f"it is a {found.kind}; a {artefact.kind} was registered"
    if (found.files, found.size_bytes) != (artefact.files, artefact.size_bytes) and (
        artefact.kind != "uri"
    ):
        return (
            f"it has {found.size_bytes:,} bytes in {found.files:,} files; "
            f"{artefact.size_bytes:,} bytes in {artefact.files:,} files were registered"
        )
    if found.digest != artefact.digest:
        return f"its SHA-256 is {found.digest}; the registered one is {artefact.digest}"
    return ""


def artefact_files(path: Path) -> list[tuple[Path, str, int]]:
    """Return the files of an artefact, sorted: path, name in the folder and size.

    A file stands for itself, with an empty name.
    """
    try:
        found = path.stat()
        if stat.S_ISREG(found.st_mode):
            return [(path, "", found.st_size)]
        if not stat.S_ISDIR(found.st_mode):
            raise _refused(path, "is neither a file nor a folder")
        files = list(_walk(path, ""))
    except OSError as error:
        raise _unreadable(path, error) from None
    if not files:
        raise _refused(path, "has no files")
    return sorted(files, key=lambda one: os.fsencode(one[1]))


def _walk(folder: Path, prefix: str) -> Iterator[tuple[Path, str, int]]:
    waiting, count = [(folder, prefix)], 0
    while waiting:
        folder, prefix = waiting.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                name = f"{prefix}{entry.name}"
                _check_name(folder, name)
                mode = entry.stat().st_mode
                if stat.S_ISDIR(mode) and not entry.is_symlink():
                    waiting.append((Path(entry.path), f"{name}/"))
                elif stat.S_ISREG(mode):
                    count += 1
                    if count > FILES_MAX:
                        raise _refused(folder, f"has more than {FILES_MAX:,} files")
                    yield Path(entry.path), name, entry.stat().st_size
                else:
                    what = "a link to a folder" if entry.is_symlink() else "a special file"
                    raise _refused(Path(entry.path), f"is {what}, which is not hashed")


def _check_name(folder: Path, name: str) -> None:
    """Refuse names that the list of files could not have on one line, or not as they are."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise _refused(folder, f"has a file whose name is not UTF-8: {name!a}") from None
    if not is_one_line(name) or "\\" in name:
        raise _refused(folder, f"has a file name with a control character or backslash: {name!a}")


def _digest(files: list[tuple[Path, str, int]], kind: ArtefactKind, progress: Progress) -> str:
    done = 0
    listed = hashlib.sha256()
    digest = ""
    for path, name, _ in files:
        digest, done = _file_digest(path, done, progress)
        listed.update(f"{digest}  {name}\n".encode())
    return digest if kind == "file" else listed.hexdigest()


def _file_digest(path: Path, done: int, progress: Progress) -> tuple[str, int]:
    digest = hashlib.sha256()
    try:
        with path.open("rb", buffering=0) as stream:
            while chunk := stream.read(CHUNK_BYTES):
                digest.update(chunk)
                done += len(chunk)
                progress(done)
    except OSError as error:
        raise _unreadable(path, error) from None
    return digest.hexdigest(), done


def _ignore(done: int) -> None:
    """Report nothing."""


def _unreadable(path: Path, error: OSError) -> InputError:
    return InputError(
        "artefact-unreadable",
        f"cannot read `{path}`: {error.strerror or error}",
        "check the path, and that you may read it",
        file=str(path),
    )


def _refused(path: Path, why: str) -> InputError:
    return InputError(
        "artefact-unusable",
        f"`{path}` {why}",
        "register a file, or a folder of files",
        file=str(path),
    )
