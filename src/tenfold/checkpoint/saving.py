"""Write a checkpoint so that a crash at any moment leaves the last one whole.

The order is the point: bytes, synced; their records, synced; the manifest, synced; then one
rename makes the folder a checkpoint, and the names are synced. Only after that does `save`
return, and only then is anything older removed.
"""

import time
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tenfold.checkpoint.errors import CheckpointError, Damaged, cannot_write, warn
from tenfold.checkpoint.fence import attempt_here, check_fence, only_writer, run_here
from tenfold.checkpoint.files import DISK, Files
from tenfold.checkpoint.gather import RankSave, announce, await_shards
from tenfold.checkpoint.keeping import prune, remember
from tenfold.checkpoint.manifest import (
    MANIFEST,
    Manifest,
    SaveRequest,
    committed,
    data_name,
    new_nonce,
    record_name,
)
from tenfold.checkpoint.sealed import number, read_all, text, unseal, write_sealed
from tenfold.checkpoint.shard import write_shard

_KEEP_LEAST = 2


@dataclass(frozen=True)
class How:
    """Ways to save that most programs leave alone."""

    attempt: int | None = None
    """Which start of the job this is; `TENFOLD_ATTEMPT`, or 0, unless stated."""
    read_back: bool = True
    """Read what was written and compare hashes before it counts."""
    wait_s: float = 300.0
    """How long to wait for the lock, and for other ranks."""
    files: Files = DISK
    """The disk; another one is for tests."""


def save(  # noqa: PLR0913
    folder: str | Path,
    step: int,
    values: object,
    *,
    keep: int = 2,
    rank: int = 0,
    ranks: int = 1,
    how: How | None = None,
) -> Path:
    """Write a checkpoint, and return its path when nothing can take it back.

    With several ranks, each calls `save` for the same step with its own values, and each
    returns when all of them are in. Raises `CheckpointError`, and then the checkpoints that
    were there before are as they were.
    """
    how = how or How()
    place = Path(folder)
    _check(step, keep, rank, ranks)
    attempt = attempt_here() if how.attempt is None else how.attempt
    request = SaveRequest(step, 0, ranks, attempt, run_here(), "")
    try:
        if rank:
            joining = RankSave(how.files, place, request, rank, values, read_back=how.read_back)
            return joining.wait(how.wait_s)
        with only_writer(how.files, place, attempt, how.wait_s):
            path = _write(place, request, values, how)
            prune(how.files, place, keep, hashes=how.read_back)
            return path
    except OSError as error:
        # A successor sweeps away what this run was writing: then that is the reason.
        check_fence(how.files, place, attempt)
        raise cannot_write(place, error) from error


def _check(step: int, keep: int, rank: int, ranks: int) -> None:
    wrong = ""
    if step < 0:
        wrong = f"step {step} is below 0"
    elif keep < _KEEP_LEAST:
        wrong = f"keep {keep} is below {_KEEP_LEAST}: one that rots would leave none"
    elif not 0 <= rank < ranks:
        wrong = f"rank {rank} is not one of {ranks}"
    if wrong:
        raise CheckpointError(code="checkpoint-wrong-argument", message=wrong)


def _write(folder: Path, wanted: SaveRequest, values: object, how: How) -> Path:
    files = how.files
    latest = max((entry.save for entry in committed(files, folder)), default=0)
    request = SaveRequest(
        wanted.step, latest + 1, wanted.ranks, wanted.attempt, wanted.run, new_nonce()
    )
    try:
        announce(files, folder, request)
        write_shard(
            files, folder / request.staging, request.nonce, 0, values, read_back=how.read_back
        )
        await_shards(files, folder, request, how.wait_s)
        manifest = _commit(files, folder, request)
    except BaseException:
        _discard(files, folder / request.staging)
        raise
    if how.read_back:
        remember(manifest)
    return folder / request.name


def _commit(files: Files, folder: Path, request: SaveRequest) -> Manifest:
    """Make the folder a checkpoint: manifest last, then the name."""
    staging = folder / request.staging
    at_ms = time.time_ns() // 1_000_000
    manifest = Manifest(request, at_ms, _listed(files, staging, request))
    files.sync_folder(staging)
    write_sealed(files, staging / MANIFEST, manifest.record())
    check_fence(files, folder, request.attempt)
    files.rename(staging, folder / request.name)
    files.sync_folder(folder)
    return manifest


def _listed(files: Files, staging: Path, request: SaveRequest) -> dict[str, tuple[int, str]]:
    """Return size and hash of every file; those of the bytes as their writers found them."""
    found: dict[str, tuple[int, str]] = {}
    for rank in range(request.ranks):
        try:
            content = read_all(files, staging / record_name(rank))
            record = unseal(content, record_name(rank))
            found[data_name(rank)] = number(record, "size"), text(record, "sha256")
        except Damaged as why:
            raise CheckpointError(
                code="checkpoint-read-back-differs",
                message=f"the shard of rank {rank} does not hold what was just written: {why}",
                hint="do not trust this disk; older checkpoints are untouched",
            ) from None
        found[record_name(rank)] = len(content), sha256(content).hexdigest()
    return found


def _discard(files: Files, staging: Path) -> None:
    """Give the room back at once, as the disk may be full; the next save would, too."""
    try:
        files.remove(staging)
    except OSError as error:
        warn(f"`{staging}` could not be removed: {error}")
