"""Bytes of logs that are gone, said with the attempts that wrote them.

The journal does not count them: the folder of an attempt does, and is asked where one job is
shown. A listing of a thousand would ask the disk a thousand times.
"""

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from tenfold.model.api.jobs import Attempt, Job
from tenfold.model.ids import JobId
from tenfold.server.runtime.deps import JobLogs

ATTEMPTS_MOST = 20
"""Attempts whose folders are asked, from the latest; a job that is preempted often has many."""


def with_dropped(told: Job, logs: JobLogs) -> Job:
    """Return a job whose latest attempts say what is gone of their logs."""
    older, latest = told.attempts[:-ATTEMPTS_MOST], told.attempts[-ATTEMPTS_MOST:]
    asked = [_asked(JobId(told.id), one, logs) for one in latest]
    return replace(told, attempts=(*older, *asked))


def _asked(job_id: JobId, one: Attempt, logs: JobLogs) -> Attempt:
    dropped = _dropped(job_id, one.number, logs) if one.started_at is not None else UNSET
    return one if dropped is UNSET else replace(one, log_bytes_dropped=dropped)


def _dropped(job_id: JobId, number: int, logs: JobLogs) -> int | UnsetType:
    log = logs.logs(job_id, number, 0, 0)
    # While it runs nobody has counted for all its members; the first stands for them.
    return log.bytes_dropped_in_all or log.bytes_dropped or UNSET
