"""Which checkpoints stay: at least `keep` that hold, and everything newer than those.

A checkpoint is hashed once by a process that writes or loads it; later its files are only
counted and measured, so that a save does not read all older ones again.
"""

from pathlib import Path

from tenfold.checkpoint.errors import Damaged, warn
from tenfold.checkpoint.files import Files
from tenfold.checkpoint.manifest import (
    Entry,
    Manifest,
    committed,
    leftovers,
    new_nonce,
    read_manifest,
)
from tenfold.checkpoint.sealed import digest

_hashed: dict[str, None] = {}
"""Nonces of checkpoints whose hashes this process has seen to hold."""


def remember(manifest: Manifest) -> None:
    """Note that a checkpoint's hashes hold."""
    _hashed[manifest.request.nonce] = None


def forget(manifest: Manifest) -> None:
    """Trust a checkpoint's hashes no more, until they are seen to hold again."""
    _hashed.pop(manifest.request.nonce, None)


def check_sizes(files: Files, entry: Entry) -> Manifest:
    """Return the manifest where every file is there in its size; raise `Damaged` otherwise."""
    manifest = read_manifest(files, entry)
    for name, (size, _) in manifest.files.items():
        try:
            found = files.size(entry.path / name)
        except OSError as error:
            raise Damaged(f"`{name}` cannot be read: {error.strerror or error}") from None
        if found != size:
            raise Damaged(f"`{name}` has {found} bytes, not {size}")
    return manifest


def check_hashes(files: Files, entry: Entry, manifest: Manifest, names: list[str]) -> None:
    """Raise `Damaged` where one of these files is not what was written."""
    forget(manifest)
    for name in names:
        try:
            found = digest(files, entry.path / name)
        except OSError as error:
            raise Damaged(f"`{name}` cannot be read: {error.strerror or error}") from None
        if found != manifest.files[name]:
            raise Damaged(f"`{name}` does not have the hash it was written with")


def sweep(files: Files, folder: Path) -> None:
    """Remove what dead writers left; only the holder of the lock may.

    A rank of theirs may still be adding to it. What cannot be removed is in nobody's way.
    """
    for entry in leftovers(files, folder):
        try:
            files.remove(entry.path)
        except OSError as error:
            warn(f"`{entry.path}` could not be removed: {error}")


def prune(files: Files, folder: Path, keep: int, *, hashes: bool) -> None:
    """Remove what is older than the `keep` newest checkpoints that hold.

    A damaged one does not count. The new one counts already, and is in place for good.
    Failing to remove is no failure to save.
    """
    valid = 0
    for entry in committed(files, folder):
        if valid >= keep:
            _remove(files, entry)
        elif _is_valid(files, entry, hashes=hashes):
            valid += 1


def _is_valid(files: Files, entry: Entry, *, hashes: bool) -> bool:
    try:
        manifest = check_sizes(files, entry)
        if hashes and manifest.request.nonce not in _hashed:
            check_hashes(files, entry, manifest, list(manifest.files))
            remember(manifest)
    except Damaged as why:
        warn(f"checkpoint `{entry.path.name}` is damaged: {why}")
        return False
    return True


def _remove(files: Files, entry: Entry) -> None:
    """Take the name away first: a checkpoint that is half removed must not look like one."""
    staging = entry.path.with_name(f"{entry.path.name}.gone-{new_nonce()}")
    try:
        files.rename(entry.path, staging)
        files.sync_folder(entry.path.parent)
        files.remove(staging)
    except OSError as error:
        warn(f"checkpoint `{entry.path.name}` could not be removed: {error}")
