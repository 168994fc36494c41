"""End an attempt whose supervisor died: kill what is left, then record it as lost.

Its members die with it by the kernel's hand, and their descendants fall to the spawner. What
escaped both is known by its control group or by the mark in its environment. The lock is held
meanwhile, so that nobody takes the attempt for over.
"""

import os
import time
from contextlib import suppress

from tenfold.live.local.attempt.ending import end_line, write_end
from tenfold.live.local.attempt.environment import attempt_mark
from tenfold.live.local.attempt.folder import AttemptFolder, add_to_record
from tenfold.live.local.member.containers import remove_containers
from tenfold.live.local.member.limits import ResourceLimits
from tenfold.live.local.processes import kill, processes_with_mark
from tenfold.live.local.spawner.notes import NoteWriter

LOOK_AGAIN_S = 0.01
LOOK_AGAIN_S_MOST = 1.0


def reap_orphan(folder: AttemptFolder, lock: int, limits: ResourceLimits) -> None:
    """Record a lost attempt once nothing of it lives. The caller is a fresh fork."""
    with suppress(OSError):
        add_to_record(lock, {"supervisor": os.getpid()})
    group = limits.group(os.path.basename(folder.marker))
    mark = attempt_mark(folder.path)
    wait_s = LOOK_AGAIN_S
    while left := [*group.pids(), *processes_with_mark(mark)]:
        for pid in left:
            kill(pid)
        time.sleep(wait_s)
        wait_s = min(2 * wait_s, LOOK_AGAIN_S_MOST)
    record = folder.record()
    if "launch" in record:
        remove_containers(record["launch"], folder.path)
    started = record.get("started")
    sentence = "the process that watched the job died, and how the job ended is not known"
    end = end_line(
        "lost",
        started_ms=started["at_ms"] if started else None,
        reason={"code": "supervisor-lost", "sentence": sentence},
    )
    write_end(folder, end, NoteWriter(folder.home.path))
    group.remove()
