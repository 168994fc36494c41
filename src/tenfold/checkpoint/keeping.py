"""Retention: keep at least `keep` valid checkpoints, and everything newer.

A process hashes a checkpoint once when it writes or loads it; later it only checks file names and
sizes, so that a save does not read all older checkpoints again.
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
from tenfold.checkpoint.sealed import BYTES_MOST, digest

_hashed: dict[str, None] = {}
"""Nonces of checkpoints whose hashes this process has verified."""


def remember(manifest: Manifest) -> None:
    """Record that a checkpoint's hashes are verified."""
    _hashed[manifest.request.nonce] = None


def forget(manifest: Manifest) -> None:
    """Forget that a checkpoint's hashes were verified."""
    _hashed.pop(manifest.request.nonce, None)


def check_sizes(files: Files, entry: Entry, bytes_most: int = BYTES_MOST) -> Manifest:
    """Return the manifest if every file has its size; raise `Damaged` otherwise."""
    manifest = read_manifest(files, entry, bytes_most)
    for name, (size, _) in manifest.files.items():
        try:
            found = files.size(entry.path / name)
        except OSError as error:
            raise Damaged(f"cannot read `{name}`: {error.strerror or error}") from None
        if found != size:
            raise Damaged(f"`{name}` has {found} bytes instead of {size}")
    return manifest


def check_hashes(files: Files, entry: Entry, manifest: Manifest, names: list[str]) -> None:
    """Raise `Damaged` if one of these files does not match its hash."""
    forget(manifest)
    for name in names:
        try:
            found = digest(files, entry.path / name)
        except OSError as error:
            raise Damaged(f"cannot read `{name}`: {error.strerror or error}") from None
        if found != manifest.files[name]:
            raise Damaged(f"`{name}` does not match its hash")


def sweep(files: Files, folder: Path) -> None:
    """Remove leftovers of dead writers; only the lock holder may.

    One of their ranks may still be writing. What cannot be removed does no harm.
    """
    for entry in leftovers(files, folder):
        try:
            files.remove(entry.path)
        except OSError as error:
            warn(f"cannot remove `{entry.path}`: {error}")


def prune(files: Files, folder: Path, keep: int, *, hashes: bool) -> None:
    """Remove checkpoints older than the `keep` newest valid ones.

    Damaged ones do not count; the new one does. A failure to remove is not a failure to save.
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
    """Rename it first: a half-removed checkpoint must not look like a checkpoint."""
    staging = entry.path.with_name(f"{entry.path.name}.gone-{new_nonce()}")
    try:
        files.rename(entry.path, staging)
        files.sync_folder(entry.path.parent)
        files.remove(staging)
    except OSError as error:
        warn(f"cannot remove checkpoint `{entry.path.name}`: {error}")
