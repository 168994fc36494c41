"""Write a file whole or not at all."""

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tenfold.model.errors import InputError


def write_new_file(path: Path, text: str, *, force: bool = False) -> None:
    """Write `text`, refusing to replace a file unless told to; never half a file."""
    with open_new_file(path, force=force) as stream:
        stream.write(text.encode())


@contextmanager
def open_new_file(
    path: Path, *, force: bool = False, private: bool = False
) -> Generator[BinaryIO, None, None]:
    """Give a stream to write; the file appears, whole, when the block ends without an error.

    A private one is read by its owner alone.
    """
    if path.is_dir():
        raise InputError(
            "is-a-directory",
            f"`{path}` is a directory",
            "name the file to write inside it",
            file=str(path),
        )
    if path.exists() and not force:
        raise InputError(
            "file-exists",
            f"`{path}` exists already",
            "name another file, or add --force to write over it",
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
            f"`{path}` cannot be written: {error.strerror or error}",
            "check the folder and who may write there",
            file=str(path),
        ) from None
