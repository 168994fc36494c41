"""Names of checkpoint folders, and the manifest of a checkpoint.

    step-0000001200-save-000007/            a checkpoint
        shard-00000.bin shard-00000.json    one pair per rank
        manifest.json                       size and hash of every file, written last
    step-0000001300-save-000008.tmp-1f0c9a  being written, or left by a crash
    step-0000001000-save-000005.gone-77aa01 being removed
    fence.json, lock                        lock and fence

Saves are numbered, so names are never reused and nothing is overwritten. The newest is the one
with the highest number: after a fallback, step 900 may be newer than step 1200.
"""

import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tenfold.checkpoint.errors import Damaged
from tenfold.checkpoint.files import Files
from tenfold.checkpoint.sealed import BYTES_MOST, Record, number, read_sealed, text

FORMAT = 1
MANIFEST = "manifest.json"
_NAME = re.compile(r"step-(\d{10,})-save-(\d{6,})\Z", re.ASCII)
_LEFTOVER = re.compile(r"step-(\d{10,})-save-(\d{6,})\.(tmp|gone)-[0-9a-f]+\Z", re.ASCII)


@dataclass(frozen=True)
class Entry:
    """A folder that is a checkpoint, was one, or is being written."""

    path: Path
    step: int
    save: int


@dataclass(frozen=True)
class SaveRequest:
    """One save, as rank 0 announces it to the others."""

    step: int
    save: int
    ranks: int
    attempt: int
    run: str
    nonce: str

    @property
    def name(self) -> str:
        """Folder name of the committed checkpoint."""
        return f"step-{self.step:010d}-save-{self.save:06d}"

    @property
    def staging(self) -> str:
        """Folder name while it is being written."""
        return f"{self.name}.tmp-{self.nonce}"

    def record(self) -> Record:
        """Return the request as a record."""
        # These are the keys of the file format.
        return {
            "format": FORMAT,
            "step": self.step,
            "save": self.save,
            "ranks": self.ranks,
            "attempt": self.attempt,
            "run": self.run,
            "nonce": self.nonce,
        }


@dataclass(frozen=True)
class Manifest:
    """The files of a checkpoint."""

    request: SaveRequest
    at_ms: int
    files: dict[str, tuple[int, str]]

    def record(self) -> Record:
        """Return the manifest as a record."""
        return {**self.request.record(), "at_ms": self.at_ms, "files": self.files}


def data_name(rank: int) -> str:
    """Return the file name of a rank's data."""
    return f"shard-{rank:05d}.bin"


def record_name(rank: int) -> str:
    """Return the file name of a rank's record."""
    return f"shard-{rank:05d}.json"


def shard_names(ranks: int) -> list[str]:
    """Return the shard files of a checkpoint with this many ranks."""
    return [name for rank in range(ranks) for name in (data_name(rank), record_name(rank))]


def new_nonce() -> str:
    """Return an id unique to this save."""
    return secrets.token_hex(6)


def committed(files: Files, folder: Path) -> list[Entry]:
    """Return the checkpoints of a folder by name, newest first."""
    return _entries(files, folder, _NAME)


def leftovers(files: Files, folder: Path) -> list[Entry]:
    """Return folders of unfinished saves and removals."""
    return _entries(files, folder, _LEFTOVER)


def _entries(files: Files, folder: Path, pattern: re.Pattern[str]) -> list[Entry]:
    found = [
        Entry(folder / name, int(match[1]), int(match[2]))
        for name in files.names(folder)
        if (match := pattern.match(name))
    ]
    return sorted(found, key=lambda entry: entry.save, reverse=True)


def read_request(record: Record) -> SaveRequest:
    """Return the request in a record; raise `Damaged` if it is invalid."""
    if record.get("format") != FORMAT:
        raise Damaged(f"unsupported format {record.get('format')}; expected {FORMAT}")
    return SaveRequest(
        step=number(record, "step"),
        save=number(record, "save"),
        ranks=number(record, "ranks"),
        attempt=number(record, "attempt"),
        run=text(record, "run"),
        nonce=text(record, "nonce"),
    )


def read_manifest(files: Files, entry: Entry, bytes_most: int = BYTES_MOST) -> Manifest:
    """Return the manifest of a checkpoint; raise `Damaged` if it is missing or invalid."""
    if MANIFEST not in files.names(entry.path):
        raise Damaged("the manifest is missing")
    record = read_sealed(files, entry.path / MANIFEST, bytes_most)
    request = read_request(record)
    if (request.step, request.save) != (entry.step, entry.save):
        raise Damaged(f"the manifest is of step {request.step}, save {request.save}")
    listed = _listed(record.get("files"))
    if len(listed) != 2 * request.ranks or list(listed) != sorted(shard_names(request.ranks)):
        raise Damaged("the manifest does not list two files for each rank")
    return Manifest(request, number(record, "at_ms"), listed)


def _listed(rows: object) -> dict[str, tuple[int, str]]:
    found: dict[str, tuple[int, str]] = {}
    if not isinstance(rows, dict):
        raise Damaged("the manifest lists no files")
    for name, row in cast("dict[str, object]", rows).items():
        match row:
            case [int(size), str(sha256)] if "/" not in name:
                found[name] = (size, sha256)
            case _:
                raise Damaged(f"the manifest has an invalid entry for `{name}`")
    return dict(sorted(found.items()))
