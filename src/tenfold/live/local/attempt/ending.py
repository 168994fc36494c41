"""Write the end of an attempt, however long the disk refuses it.

Until the end is written the lock is kept: to everybody else the attempt is still under way,
and its node is not given to another. That is safe, and it is said aloud.
"""

import os
import time
from collections.abc import Callable

from tenfold.clock.wall import now_ms
from tenfold.live.local.attempt.folder import AttemptFolder
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
    """Return an end as of now; a negative code is the signal that ended the member."""
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
) -> None:
    """Return when the end is on the disk. Trouble is told once for every kind of it."""
    retry_s = RETRY_S_FIRST
    reported: int | None = None
    while True:
        try:
            folder.write_end(end)
        except OSError as error:
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


def _sentence(error: OSError) -> str:
    why = os.strerror(error.errno) if error.errno else str(error)
    return f"the attempt is over, but its end cannot be written: {why}; it is tried again"
