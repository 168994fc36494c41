"""Errors and warnings of the checkpoint library.

It imports nothing else of Tenfold, so it has its own error class, with the same fields: a stable
code, a message and a hint.
"""

import errno
import logging

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


class CheckpointError(Exception):
    """A checkpoint could not be written, or no valid one could be read."""

    def __init__(self, *, code: str, message: str, hint: str = "") -> None:
        super().__init__(f"{message}; {hint}" if hint else message)
        self.code = code
        self.message = message
        self.hint = hint


class Damaged(Exception):
    """A file is damaged; the error text is the reason."""


def cannot_write(where: object, error: OSError) -> CheckpointError:
    """Return the error for a failed write."""
    if error.errno in DISK_FULL:
        return CheckpointError(
            code="checkpoint-disk-full",
            message=f"disk full while writing a checkpoint to `{where}`: {error.strerror}",
            hint="free disk space; existing checkpoints are untouched",
        )
    return CheckpointError(
        code="checkpoint-not-written",
        message=f"cannot write a checkpoint to `{where}`: {error}",
        hint="existing checkpoints are untouched",
    )


def warn(sentence: str) -> None:
    """Log a warning that does not stop the run, to the log `tenfold.checkpoint`."""
    logging.getLogger("tenfold.checkpoint").warning(sentence)
