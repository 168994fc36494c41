"""Write a checkpoint so that a crash at any point leaves the last one intact.

The order matters: data, synced; their records, synced; the manifest, synced; then one rename
commits the checkpoint, and the names are synced. Only then does `save` return, and only then is
anything older removed.
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
    """Options for saving that most programs leave at their defaults."""

    attempt: int | None = None
    """Number of this start of the job (default: `TENFOLD_ATTEMPT`, or 0)."""
    read_back: bool = True
    """Read back and compare hashes before the checkpoint is committed."""
    wait_s: float = 300.0
    """How long to wait for the lock, and for other ranks."""
    files: Files = DISK
    """The disk; tests substitute another."""


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
    """Write a checkpoint, and return its path once it is durable.

    With several ranks, each calls `save` for the same step with its own values, and each returns
    when all are in. If it raises `CheckpointError`, existing checkpoints are unchanged.
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
        # A successor deletes what this run was writing: report that as the reason.
        check_fence(how.files, place, attempt)
        raise cannot_write(place, error) from error


def _check(step: int, keep: int, rank: int, ranks: int) -> None:
    wrong = ""
    if step < 0:
        wrong = f"`step` is {step}, below 0"
    elif keep < _KEEP_LEAST:
        wrong = f"`keep` is {keep}, below {_KEEP_LEAST}: a single damaged one would leave none"
    elif not 0 <= rank < ranks:
        wrong = f"`rank` is {rank}, but there are {ranks} ranks"
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
    """Commit the checkpoint: manifest last, then the rename."""
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
    """Return size and hash of every file; those of the data as their writers computed them."""
    found: dict[str, tuple[int, str]] = {}
    for rank in range(request.ranks):
        try:
            content = read_all(files, staging / record_name(rank))
            record = unseal(content, record_name(rank))
            found[data_name(rank)] = number(record, "size"), text(record, "sha256")
        except Damaged as why:
            raise CheckpointError(
                code="checkpoint-read-back-differs",
                message=f"the shard of rank {rank} differs from what was written: {why}",
                hint="this disk is unreliable; older checkpoints are untouched",
            ) from None
        found[record_name(rank)] = len(content), sha256(content).hexdigest()
    return found


def _discard(files: Files, staging: Path) -> None:
    """Free the space immediately, as the disk may be full; otherwise the next save would."""
    try:
        files.remove(staging)
    except OSError as error:
        warn(f"cannot remove `{staging}`: {error}")
