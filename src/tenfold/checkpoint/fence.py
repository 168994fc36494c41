"""Fencing: one writer at a time, and never a run that has been superseded.

The lock keeps two processes apart, but cannot tell an old run from a new one: a run that was
presumed lost may come back and take it. The folder therefore records the highest attempt that wrote
to it or loaded from it, and lower ones are rejected.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from tenfold.checkpoint.errors import CheckpointError, Damaged
from tenfold.checkpoint.files import Files
from tenfold.checkpoint.keeping import sweep
from tenfold.checkpoint.manifest import committed, read_manifest
from tenfold.checkpoint.sealed import number, read_sealed, write_sealed

LOCK, FENCE = "lock", "fence.json"
_LAUNCH = (
    "TENFOLD_ATTEMPT",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_RESTART_COUNT",
    "MASTER_ADDR",
    "MASTER_PORT",
    "SLURM_JOB_ID",
    "SLURM_RESTART_COUNT",
)


def attempt_here() -> int:
    """Return the attempt in `TENFOLD_ATTEMPT`, or 0."""
    value = os.environ.get("TENFOLD_ATTEMPT", "")
    return int(value) if value.isascii() and value.isdigit() else 0


def run_here() -> str:
    """Return an id that all ranks of one launch share and other launches rarely do."""
    words = "\0".join(os.environ.get(name, "") for name in _LAUNCH)
    return sha256(words.encode(errors="surrogateescape")).hexdigest()[:16]


@contextmanager
def only_writer(
    files: Files, folder: Path, attempt: int, wait_s: float
) -> Generator[None, None, None]:
    """Lock the folder after checking that no later attempt uses it."""
    files.make_folder(folder)
    with files.lock(folder / LOCK, wait_s):
        check_fence(files, folder, attempt)
        # Before anything is written: leftovers of a dead writer may be what fills the disk.
        sweep(files, folder)
        if attempt > _fenced_attempt(files, folder):
            write_sealed(files, folder / FENCE, {"attempt": attempt})
        yield


def check_fence(files: Files, folder: Path, attempt: int) -> None:
    """Raise if a later attempt has started.

    Checked again just before a checkpoint is committed, for file systems without working locks.
    """
    latest = _latest(files, folder)
    if attempt < latest:
        raise CheckpointError(
            code="checkpoint-fenced",
            message=f"attempt {attempt} must not write to `{folder}`: attempt {latest} has started",
            hint="stop this run; its successor resumes from the last checkpoint",
        )


def _fenced_attempt(files: Files, folder: Path) -> int:
    if FENCE not in files.names(folder):
        return 0
    try:
        return number(read_sealed(files, folder / FENCE), "attempt")
    except Damaged:
        return 0


def _latest(files: Files, folder: Path) -> int:
    """Return the highest known attempt, even if the fence file is damaged."""
    latest = _fenced_attempt(files, folder)
    for entry in committed(files, folder):
        try:
            latest = max(latest, read_manifest(files, entry).request.attempt)
        except Damaged:
            continue
    return latest
