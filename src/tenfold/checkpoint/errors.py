"""What the checkpoint library raises on purpose, and what it only says.

The room imports nothing else of Tenfold, so it has an error of its own. It has the same
fields: a stable code, one sentence, and what to do about it.
"""

import errno
import logging

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


class CheckpointError(Exception):
    """A checkpoint could not be written, or none could be read."""

    def __init__(self, *, code: str, message: str, hint: str = "") -> None:
        super().__init__(f"{message}; {hint}" if hint else message)
        self.code = code
        self.message = message
        self.hint = hint


class Damaged(Exception):
    """A file is not what was written; the reason is the text of the error."""


def cannot_write(where: object, error: OSError) -> CheckpointError:
    """Return the error for a write that the system refused."""
    if error.errno in DISK_FULL:
        return CheckpointError(
            code="checkpoint-disk-full",
            message=f"no room for a checkpoint in `{where}`: {error.strerror}",
            hint="free some space; checkpoints that were there before are untouched",
        )
    return CheckpointError(
        code="checkpoint-not-written",
        message=f"a checkpoint could not be written to `{where}`: {error}",
        hint="checkpoints that were there before are untouched",
    )


def warn(sentence: str) -> None:
    """Say something that does not stop the run, to the log `tenfold.checkpoint`."""
    logging.getLogger("tenfold.checkpoint").warning(sentence)
