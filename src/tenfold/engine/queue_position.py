"""What a decider would do with a pending job, alone and among the others.

Both are asked of the decider itself, on a copy of the fleet, so everything it takes into account
counts: topology, power, quotas.
"""

from collections.abc import Sequence

from msgspec import Struct

from tenfold.engine.loop import Decider
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import Action, RefuseJob, StartJob
from tenfold.model.decision import Decision
from tenfold.model.events import ActionOrdered, Event, JobEnded, JobStarted
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.reason import Reason
from tenfold.model.units import MINUTE, Millis

PASS_MS_MOST = MINUTE
"""A decider that runs at intervals runs this often; a later wake-up is the change of some rule."""
ROUNDS_MOST = 1_000
"""How often a copy of the fleet is filled before the queue counts as too long."""


class AloneOutcome(Struct, frozen=True):
    """What would happen to a job if it were the only pending one."""

    starts: bool = False
    refused: tuple[Reason, ...] = ()


def decide_alone(fleet: Fleet, job: Job, now_ms: Millis, decider: Decider) -> AloneOutcome:
    """Return what a decider would do with a job if it were the only pending one."""
    left = fleet.fork()
    left.pending = {job.id: job}
    left.reservations.pop(job.id, None)
    held = left.running.keys() | left.orders.keys() | {job.id}
    left.past = {job_id: past for job_id, past in left.past.items() if job_id in held}
    left.version += 1
    decision = decider.decide(left, now_ms, None)
    for action in decision.actions:
        if isinstance(action, RefuseJob) and action.job_id == job.id:
            return AloneOutcome(refused=action.reasons)
    start_ms = _start_ms(left, job.id, now_ms, decider, decision)
    return AloneOutcome(starts=start_ms is not None)


def next_start_ms(fleet: Fleet, job_id: JobId, now_ms: Millis, decider: Decider) -> Millis | None:
    """Return when a decider starts a pending job if nothing else happens: now, or at its next pass.

    None if it does not, or if that is more than a minute away.
    """
    left = fleet.fork()
    return _start_ms(left, job_id, now_ms, decider, decider.decide(left, now_ms, None))


def _start_ms(
    fleet: Fleet, job_id: JobId, now_ms: Millis, decider: Decider, decision: Decision
) -> Millis | None:
    """Return the time at which a decision, or the next one, starts a job."""
    wake_ms = decision.wake_at_ms
    if _is_started(decision, job_id):
        return now_ms
    if decision.actions or wake_ms is None or not now_ms < wake_ms <= now_ms + PASS_MS_MOST:
        return None
    return wake_ms if _is_started(decider.decide(fleet, wake_ms, ()), job_id) else None


def _is_started(decision: Decision, job_id: JobId) -> bool:
    return any(isinstance(one, StartJob) and one.job_id == job_id for one in decision.actions)


def jobs_ahead(fleet: Fleet, job_id: JobId, now_ms: Millis, decider: Decider) -> int | None:
    """Return how many pending jobs a decider would start before one, if all nodes were free.

    The fleet is filled repeatedly. A decider that sees starts and ends keeps its queue from one
    round to the next; a law checks that it would decide the same without them.
    """
    ahead = 0
    left = _emptied(fleet)
    news: list[Event] | None = None
    for _ in range(ROUNDS_MOST):
        decision = decider.decide(left, now_ms, news)
        gone = [one for one in decision.actions if isinstance(one, StartJob | RefuseJob)]
        for action in gone:
            if action.job_id == job_id:
                return ahead
            ahead += isinstance(action, StartJob)
            del left.pending[action.job_id]
            left.past.pop(action.job_id, None)
            left.reservations.pop(action.job_id, None)
        news = _come_and_gone(decision.actions, now_ms)
        # A reservation brings a job no closer to its start than waiting does.
        if not gone:
            if decision.wake_at_ms is None or decision.wake_at_ms <= now_ms:
                return None
            now_ms = decision.wake_at_ms
        left.version += 1 if news is None else len(news)
    return None


def _come_and_gone(actions: Sequence[Action], now_ms: Millis) -> list[Event] | None:
    """Return starts that ended at once, as events; None if there were other orders too.

    They are not applied to the fleet: policies must not learn from runs that never happened.
    """
    starts = [one for one in actions if isinstance(one, StartJob)]
    if len(starts) != len(actions):
        return None
    facts: list[Event] = [ActionOrdered(now_ms, one) for one in starts]
    facts += [JobStarted(now_ms, one.job_id) for one in starts]
    facts += [JobEnded(now_ms, one.job_id, "completed") for one in starts]
    return facts


def _emptied(fleet: Fleet) -> Fleet:
    """Return a copy in which nothing runs; pending jobs and closed nodes stay."""
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
