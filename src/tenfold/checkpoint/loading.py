"""Load the newest valid checkpoint, and report what is wrong with the others."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tenfold.checkpoint.errors import CheckpointError, Damaged, warn
from tenfold.checkpoint.files import DISK, Files
from tenfold.checkpoint.keeping import check_hashes, check_sizes, remember
from tenfold.checkpoint.manifest import (
    Entry,
    Manifest,
    committed,
    data_name,
    leftovers,
    record_name,
)
from tenfold.checkpoint.shard import read_shard

_LISTINGS_MOST = 3


@dataclass(frozen=True)
class Report:
    """The state of one checkpoint."""

    path: Path
    step: int
    state: Literal["valid", "damaged", "unfinished"]
    problem: str = ""
    at_ms: int | None = None
    """Save time, in milliseconds since 1970; None if unknown."""


@dataclass(frozen=True)
class Checkpoint:
    """A loaded checkpoint."""

    step: int
    values: Any
    meta: dict[str, int]
    """`attempt`, `ranks`, `save` (its number in the folder) and `at_ms`."""
    path: Path
    passed_over: tuple[Report, ...] = field(default=())
    """Newer checkpoints that are damaged, and why."""


def load(
    folder: str | Path, *, rank: int = 0, ranks: int = 1, files: Files = DISK
) -> Checkpoint | None:
    """Return the newest valid checkpoint; None if none was ever completed.

    Every shard is checked, not only that of `rank`, so all ranks choose the same checkpoint. If
    there are checkpoints but none is valid, that is an error: starting over would silently discard
    the work.
    """
    place, seen = Path(folder), list[Entry]()
    skipped: list[Report] = []
    for _ in range(_LISTINGS_MOST):
        entries = committed(files, place)
        if not entries:
            return None
        if entries == seen:
            break
        # A writer may have removed them while they were read.
        seen, skipped = entries, []
        for entry in entries:
            try:
                return _read(files, entry, rank, ranks, tuple(skipped))
            except Damaged as why:
                warn(f"skipped checkpoint `{entry.path.name}`: {why}")
                skipped.append(Report(entry.path, entry.step, "damaged", str(why)))
    raise CheckpointError(
        code="checkpoint-none-valid",
        message=f"none of {len(skipped)} checkpoints in `{place}` is valid; "
        f"the newest, `{skipped[0].path.name}`: {skipped[0].problem}",
        hint="restore a copy, or move them away to start over",
    )


def load_at(path: str | Path, *, rank: int = 0, ranks: int = 1, files: Files = DISK) -> Checkpoint:
    """Return one checkpoint, reading and checking only the shard of `rank`.

    For many ranks: let rank 0 `load`, send its `path` to the others, and let them load from there.
    """
    place = Path(path)
    entry = next((one for one in committed(files, place.parent) if one.path == place), None)
    if entry is None:
        raise CheckpointError(
            code="checkpoint-not-there",
            message=f"checkpoint `{place}` does not exist",
            hint="call `verify` on its folder to list the checkpoints",
        )
    try:
        return _read(files, entry, rank, ranks, (), alone=True)
    except Damaged as why:
        raise CheckpointError(
            code="checkpoint-damaged",
            message=f"checkpoint `{place}` is damaged: {why}",
            hint="call `load` on its folder to fall back to an older one",
        ) from None


def newest(folder: str | Path, *, hashes: bool = False, files: Files = DISK) -> Report | None:
    """Return the newest valid checkpoint without loading it; None if there is none.

    Cheap: only file sizes are checked, unless `hashes` is set.
    """
    for entry in committed(files, Path(folder)):
        try:
            manifest = check_sizes(files, entry)
            if hashes:
                check_hashes(files, entry, manifest, list(manifest.files))
        except Damaged:
            continue
        return Report(entry.path, entry.step, "valid", at_ms=manifest.at_ms)
    return None


def verify(folder: str | Path, *, files: Files = DISK) -> list[Report]:
    """Read every checkpoint completely, and report on each, newest first."""
    place = Path(folder)
    found: list[Report] = []
    for entry in committed(files, place):
        try:
            manifest = check_sizes(files, entry)
            check_hashes(files, entry, manifest, list(manifest.files))
        except Damaged as why:
            found.append(Report(entry.path, entry.step, "damaged", str(why)))
        else:
            found.append(Report(entry.path, entry.step, "valid", at_ms=manifest.at_ms))
    unfinished = "interrupted while being written or removed; the next save deletes it"
    found += [
        Report(entry.path, entry.step, "unfinished", unfinished)
        for entry in leftovers(files, place)
    ]
    return found


def _read(
    files: Files,
    entry: Entry,
    rank: int,
    ranks: int,
    skipped: tuple[Report, ...],
    *,
    alone: bool = False,
) -> Checkpoint:
    manifest = check_sizes(files, entry)
    if manifest.request.ranks != ranks or not 0 <= rank < ranks:
        raise CheckpointError(
            code="checkpoint-ranks-differ",
            message=f"`{entry.path.name}` was saved by {manifest.request.ranks} ranks, "
            f"but is being loaded as rank {rank} of {ranks}",
            hint="load it with the same number of ranks; shards are not resharded",
        )
    others = [name for name in manifest.files if name != data_name(rank)]
    check_hashes(files, entry, manifest, [record_name(rank)] if alone else others)
    values = read_shard(files, entry.path, rank)
    if not alone:
        remember(manifest)
    return Checkpoint(entry.step, values, _meta(manifest), entry.path, skipped)


def _meta(manifest: Manifest) -> dict[str, int]:
    request = manifest.request
    return {
        "attempt": request.attempt,
        "ranks": request.ranks,
        "save": request.save,
        "at_ms": manifest.at_ms,
    }
