"""What a decider makes of a waiting job: alone with what runs, and in line with the others.

Both are asked of the decider itself, on a copy of the fleet, so that whatever it heeds counts:
places, power, quotas or none of them.
"""

from msgspec import Struct

from tenfold.engine.loop import Decider
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import RefuseJob, StartJob
from tenfold.model.ids import JobId
from tenfold.model.job import Job
from tenfold.model.reason import Reason
from tenfold.model.units import Millis

ROUNDS_MOST = 1_000
"""Times that a copy of the fleet is filled before the line is called too long to count."""


class Alone(Struct, frozen=True):
    """What becomes of a job if nobody else waits."""

    starts: bool = False
    refused: tuple[Reason, ...] = ()


def alone(fleet: Fleet, job: Job, now_ms: Millis, decider: Decider) -> Alone:
    """Return what a decider would do with a job beside what runs, if only it waited."""
    left = fleet.fork()
    left.pending = {job.id: job}
    left.promises.pop(job.id, None)
    held = left.running.keys() | left.orders.keys() | {job.id}
    left.past = {job_id: past for job_id, past in left.past.items() if job_id in held}
    left.version += 1
    for action in decider.decide(left, now_ms, None).actions:
        if isinstance(action, StartJob) and action.job_id == job.id:
            return Alone(starts=True)
        if isinstance(action, RefuseJob) and action.job_id == job.id:
            return Alone(refused=action.reasons)
    return Alone()


def jobs_ahead(fleet: Fleet, job_id: JobId, now_ms: Millis, decider: Decider) -> int | None:
    """Return how many waiting jobs a decider would start before one, were all nodes free."""
    ahead = 0
    left = _emptied(fleet)
    for _ in range(ROUNDS_MOST):
        decision = decider.decide(left, now_ms, None)
        gone = [one for one in decision.actions if isinstance(one, StartJob | RefuseJob)]
        for action in gone:
            if action.job_id == job_id:
                return ahead
            ahead += isinstance(action, StartJob)
            del left.pending[action.job_id]
            left.past.pop(action.job_id, None)
            left.promises.pop(action.job_id, None)
        # A promise brings nobody nearer to a start than waiting does.
        if not gone:
            if decision.wake_at_ms is None or decision.wake_at_ms <= now_ms:
                return None
            now_ms = decision.wake_at_ms
        left.version += 1
    return None


def _emptied(fleet: Fleet) -> Fleet:
    """Return a copy in which nothing runs; what waits, and what is away, stays."""
    empty = fleet.fork()
    empty.running.clear()
    empty.orders.clear()
    empty.idle.clear()
    empty.shares.clear()
    for node_id, node in empty.nodes.items():
        empty.gpus_free[node_id] = node.gpus
        empty.cpus_milli_free[node_id] = node.cpus_milli
        empty.memory_mib_free[node_id] = node.memory_mib
    empty.past = {job_id: past for job_id, past in empty.past.items() if job_id in empty.pending}
    return empty
