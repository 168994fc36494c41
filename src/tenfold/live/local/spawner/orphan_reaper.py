"""Reap an attempt whose supervisor died: kill its processes, then record it as lost.

The kernel kills most members with it, and the spawner those that it inherits. Escaped processes are
found by control group or by the mark in their environment. The lock is held meanwhile, so the
attempt does not count as ended.
"""

import os
import time
from contextlib import suppress

from tenfold.live.local.attempt.ending import end_line, write_end
from tenfold.live.local.attempt.environment import attempt_mark
from tenfold.live.local.attempt.folder import AttemptFolder, add_to_record
from tenfold.live.local.member.containers import remove_containers
from tenfold.live.local.member.limits import ResourceLimits
from tenfold.live.local.processes import boot, kill, processes_with_mark
from tenfold.live.local.spawner.notes import NoteWriter
from tenfold.live.local.spawner.wire import ReasonLine

LOOK_AGAIN_S = 0.01
LOOK_AGAIN_S_MOST = 1.0


def reap_orphan(folder: AttemptFolder, lock: int, limits: ResourceLimits) -> None:
    """Record a lost attempt once none of its processes is alive. The caller is a fresh fork."""
    found = folder.record()
    ran_on = found.get("boot")
    with suppress(OSError):
        add_to_record(lock, {"supervisor": os.getpid()})
    groups = [limits.group(os.path.basename(folder.marker))]
    if "group" in found:
        groups.append(limits.group(found["group"]))
    mark = attempt_mark(folder.path)
    wait_s = LOOK_AGAIN_S
    while left := [
        *(pid for group in groups for pid in group.pids()),
        *processes_with_mark(mark),
    ]:
        for pid in left:
            kill(pid)
        time.sleep(wait_s)
        wait_s = min(2 * wait_s, LOOK_AGAIN_S_MOST)
    record = folder.record()
    if "launch" in record:
        remove_containers(record["launch"], folder.path)
    started = record.get("started")
    reason: ReasonLine = {
        "code": "supervisor-lost",
        "sentence": "the supervisor died, so the result of the job is unknown",
    }
    if ran_on is not None and ran_on != boot():
        sentence = "the machine restarted, so the result of the job is unknown"
        reason = {"code": "machine-restarted", "sentence": sentence}
    end = end_line(
        "lost",
        started_ms=started["at_ms"] if started else None,
        reason=reason,
    )
    write_end(folder, end, NoteWriter(folder.home.path), lock=lock)
    for group in groups:
        group.remove()
