"""Write files atomically."""

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tenfold.model.errors import InputError


def write_new_file(path: Path, text: str, *, force: bool = False) -> None:
    """Write `text` to a file atomically; an existing file is replaced only with `force`."""
    with open_new_file(path, force=force) as stream:
        stream.write(text.encode())


@contextmanager
def open_new_file(
    path: Path, *, force: bool = False, private: bool = False
) -> Generator[BinaryIO, None, None]:
    """Open a stream to write to; the file appears once the block ends without an error.

    Only the owner can read a private file.
    """
    if path.is_dir():
        raise InputError(
            "is-a-directory",
            f"`{path}` is a directory",
            "pass the name of a file in it",
            file=str(path),
        )
    if path.exists() and not force:
        raise InputError(
            "file-exists",
            f"`{path}` already exists",
            "choose another name, or add `--force` to overwrite it",
            file=str(path),
        )
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            Path(temporary).chmod(0o600 if private else 0o644)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(
            "cannot-write",
            f"cannot write `{path}`: {error.strerror or error}",
            "check that the folder exists and is writable",
            file=str(path),
        ) from None
