"""Why a command may have failed under a memory limit that the kernel does not report.

Without control groups each process is limited by itself: an allocation beyond the limit fails, and
only the program says so. So the end of its output is read.
"""

import os
import re
import stat
from contextlib import suppress

from tenfold.live.local.attempt import logs
from tenfold.live.local.member.user import reading_as
from tenfold.live.local.spawner.wire import LaunchLine, ReasonLine

_SAID_BYTES = 4_096
_SIGN = re.compile(r"\bMemoryError\b|\bCannot allocate memory\b|\bstd::bad_alloc\b")
"""What Python, the C library and C++ print if an allocation of host memory fails."""
_FILE = re.compile(r"^(?:output is|errors are) written to (/.+)$", re.MULTILINE)
"""What the log of a batch script has in place of its output."""


def allocation_failure(launch: LaunchLine, attempt: str, rank: int, code: int) -> ReasonLine | None:
    """Return that the limit of each process may be the cause; None if the output does not say it.

    For members under a limit of each process.
    """
    memory_mib = launch["members"][rank]["memory_mib"]
    if not memory_mib or code <= 0:
        return None
    sign = _SIGN.search(_said(launch, attempt, rank))
    if sign is None:
        return None
    sentence = (
        f"the command failed with exit code {code}; its output says `{sign[0]}`, and each of its"
        f" processes is limited to {memory_mib:,} MiB: the limit may be the cause"
    )
    return {"code": "allocation-failed", "sentence": sentence}


def _said(launch: LaunchLine, attempt: str, rank: int) -> str:
    """Return the end of the output of a member, also of the files that a batch script writes."""
    text = logs.tail(logs.segments(attempt, rank), _SAID_BYTES).decode(errors="replace")
    if not launch.get("slurm_variables"):
        return text
    with suppress(OSError), reading_as(launch.get("user")):
        return "\n".join([text, *(_end_of(path) for path in _FILE.findall(text)[:2])])
    return text


def _end_of(path: str) -> str:
    # A pipe must not be waited for.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            return ""
        file.seek(max(0, found.st_size - _SAID_BYTES))
        return file.read(_SAID_BYTES).decode(errors="replace")
