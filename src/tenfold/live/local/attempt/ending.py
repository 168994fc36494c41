"""Write the end of an attempt, retrying for as long as the disk refuses it.

The lock is kept until the end is written: to everyone else the attempt is still active, and its
node is not reassigned. A warning is reported.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress

from tenfold.clock.wall import now_ms
from tenfold.live.local.attempt.folder import AttemptFolder
from tenfold.live.local.attempt.logs import BYTES_MOST
from tenfold.live.local.attempt.repair import FULL, free_space, restore
from tenfold.live.local.spawner.notes import NoteWriter
from tenfold.live.local.spawner.wire import EndLine, ReasonLine

RETRY_S_FIRST = 0.05
RETRY_S_MOST = 5.0


def end_line(
    how: str,
    *,
    started_ms: int | None,
    code: int | None = None,
    member: int | None = None,
    reason: ReasonLine | None = None,
    log_bytes_dropped: int = 0,
) -> EndLine:
    """Return an end at the current time; a negative code is a signal."""
    return {
        "at_ms": now_ms(),
        "started_ms": started_ms,
        "how": how,
        "exit_code": code if code is not None and code >= 0 else None,
        "signal": -code if code is not None and code < 0 else None,
        "member": member,
        "reason": reason,
        "log_bytes_dropped": log_bytes_dropped,
    }


def write_end(
    folder: AttemptFolder,
    end: EndLine,
    notes: NoteWriter,
    wait: Callable[[float], None] = time.sleep,
    *,
    durable: bool = True,
    lock: int | None = None,
) -> None:
    """Return when the end is written, and on disk if `durable`. Each error is reported once.

    A folder that the job removed, replaced or filled is repaired before each retry. If the whole
    state directory was deleted, as `lock` shows, nothing reads an end: this returns without one.
    """
    retry_s = RETRY_S_FIRST
    reported: int | None = None
    is_repaired = False
    while True:
        try:
            folder.write_end(end, durable=durable)
        except OSError as error:
            if not is_repaired:
                is_repaired = True
                _repair(folder, error)
                continue
            is_repaired = False
            if lock is not None and _is_deleted(folder, lock):
                return
            if error.errno != reported:
                reported = error.errno
                notes.send(
                    {
                        "saw": "trouble",
                        "at_ms": now_ms(),
                        "job": folder.job,
                        "attempt": folder.number,
                        "reason": {"code": "end-not-written", "sentence": _sentence(error)},
                    }
                )
            wait(retry_s)
            retry_s = min(2 * retry_s, RETRY_S_MOST)
            notes.flush()
        else:
            return


def _is_deleted(folder: AttemptFolder, lock: int) -> bool:
    """Return whether the state directory was deleted, and is not only out of reach for a while."""
    return os.fstat(lock).st_nlink == 0 and not os.path.lexists(folder.home.path)


def _repair(folder: AttemptFolder, error: OSError) -> None:
    with suppress(OSError):
        if error.errno in FULL:
            free_space(folder, BYTES_MOST)
        else:
            restore(folder)


def _sentence(error: OSError) -> str:
    why = os.strerror(error.errno) if error.errno else str(error)
    return f"the attempt ended, but its result cannot be written: {why}; retrying"
