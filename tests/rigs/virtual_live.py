"""The live control plane in virtual time: the real loop, decider and journal, without processes.

Requests arrive when a scenario says so, and an executor lets each attempt run for as long as its
job has work left. The clock jumps to the next moment at which something happens. A late clock
returns some milliseconds after the moment that was asked for, as a real one does.
"""

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from pathlib import Path

from msgspec import Struct

from tenfold.compose.control_plane import ControlPlane, Parts, Store
from tenfold.compose.live_journal import LiveJournal
from tenfold.compose.policies import placing_decider
from tenfold.engine.loop import Witness
from tenfold.engine.recording import Line
from tenfold.journal.read import lines_between
from tenfold.journal.store import open_store
from tenfold.live.executor import (
    AttemptEnded,
    AttemptLost,
    AttemptStarted,
    AttemptState,
    EndKind,
    Launch,
    MemberLog,
    NodeReachable,
    NodeUnreachable,
    Observation,
    ShellRequest,
)
from tenfold.live.inbox import Inbox, JobActivity, JoinNodes, ReportActivity, Request
from tenfold.model.fault import Fault
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, Slot, own_speed
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.policy.policy import Policy
from tenfold.model.reason import Reason
from tenfold.model.units import HOUR, Millis
from tenfold.sim.run_state import idles_after_ms


class LiveScript(Struct, frozen=True, kw_only=True):
    """What happens to a live fleet from outside."""

    policy: Policy
    nodes: Sequence[Node]
    requests: Sequence[tuple[int, Request]]
    """Requests with their times, in order."""
    jobs: Mapping[JobId, Job]
    """Jobs with how long they last, which only the executor knows."""
    failing: frozenset[JobId] = frozenset()
    """Jobs whose command fails at its end."""
    faults: Sequence[Fault] = ()
    until_ms: Millis
    delay_ms: int = 0
    """How long a start or a stop takes."""
    late_ms: int = 0
    """How late the clock returns if nothing happens before."""


class Time:
    """The moment that all parts share."""

    def __init__(self) -> None:
        self.now_ms = 0


class Attempt:
    """One attempt: when it ends if nothing stops it, and what it had done before."""

    def __init__(self, launch: Launch, job: Job, work_ms: float, now_ms: int) -> None:
        self.launch, self.job, self.work_ms = launch, job, work_ms
        self.started_ms = now_ms
        slots = [Slot(member.node, len(member.gpus)) for member in launch.members]
        self.speed = own_speed(job, slots)
        self.ends_ms = self.reaches_ms(job.duration_ms or 0)
        idles = idles_after_ms(job)
        self.idles_ms = None if idles is None else self.reaches_ms(idles)
        self.is_started = self.is_stopped = False
        self.end: AttemptEnded | AttemptLost | None = None

    def reaches_ms(self, work_ms: float) -> int:
        return ceil(self.started_ms + max(0.0, work_ms - self.work_ms) / self.speed)

    def done_ms(self, now_ms: int) -> float:
        return self.work_ms + max(0, now_ms - self.started_ms) * self.speed


class VirtualExecutor:
    """An executor whose attempts take virtual time."""

    def __init__(self, script: LiveScript, time: Time, inbox: Inbox) -> None:
        self._script, self._time, self._inbox = script, time, inbox
        self._attempts: dict[tuple[JobId, int], Attempt] = {}
        self._work_ms: dict[JobId, float] = {}
        self._seen: list[Observation] = []
        self._faults = sorted(script.faults, key=lambda one: one.at_ms)
        self._down: list[Fault] = []
        self.saved_ms: dict[JobId, Millis] = {}
        """When a job saved its work."""

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        pass

    def start(self, launch: Launch) -> None:
        job_id, now = launch.job_id, self._time.now_ms
        work = self._work_ms.get(job_id, 0.0)
        begins = now + self._script.delay_ms
        attempt = Attempt(launch, self._script.jobs[job_id], work, begins)
        self._attempts[job_id, launch.attempt] = attempt

    def stop(self, job_id: JobId, attempt: int, grace_ms: Millis) -> None:
        one = self._attempts[job_id, attempt]
        if one.end is None and not one.is_stopped:
            one.is_stopped, one.idles_ms = True, None
            one.ends_ms = self._time.now_ms + self._script.delay_ms

    def observations(self) -> list[Observation]:
        now = self._time.now_ms
        for (job_id, number), one in self._attempts.items():
            if one.end is None and not one.is_started and one.started_ms <= now:
                one.is_started = True
                self._seen.append(AttemptStarted(Millis(now), job_id, number))
            if one.end is None and one.ends_ms <= now:
                self._end(one)
        while self._faults and self._faults[0].at_ms <= now:
            self._lose(self._faults.pop(0))
        for fault in [one for one in self._down if one.until_ms <= now]:
            self._down.remove(fault)
            self._seen.append(NodeReachable(Millis(now), fault.node_id))
        seen, self._seen = self._seen, []
        return seen

    def report_idle(self) -> None:
        """Report sessions that are not used any more, as the sampler of GPU usage does."""
        for (job_id, number), one in self._attempts.items():
            idles = one.idles_ms
            if idles is not None and one.end is None and idles <= self._time.now_ms:
                one.idles_ms = None
                activity = JobActivity(job_id, number, Millis(idles))
                self._inbox.put(ReportActivity((activity,)), lambda _: None)

    def next_ms(self) -> int | None:
        active = [one for one in self._attempts.values() if one.end is None]
        moments = [one.ends_ms if one.is_started else one.started_ms for one in active]
        moments += [one.idles_ms for one in active if one.idles_ms is not None]
        moments += [one.at_ms for one in self._faults] + [one.until_ms for one in self._down]
        return self._time.now_ms if self._seen else min(moments, default=None)

    def attempts(self) -> list[AttemptState]:
        return []

    def settle(self, attempts: Sequence[tuple[JobId, int]]) -> None:
        pass

    def open_shell(self, job_id: JobId, attempt: int, request: ShellRequest) -> Reason:
        return Reason("shell-unsupported")

    def logs(self, job_id: JobId, attempt: int, member: int, bytes_most: int = 0) -> MemberLog:
        return MemberLog(tail=b"", paths=(), bytes_kept=0)

    def _save(self, one: Attempt, every_ms: int | None) -> None:
        """Keep the work of an attempt: all of it, or up to its last checkpoint."""
        done = one.done_ms(self._time.now_ms)
        if every_ms is not None:
            done = max(one.work_ms, done // every_ms * every_ms)
        self._work_ms[one.job.id] = done
        self.saved_ms[one.job.id] = Millis(one.reaches_ms(done))

    def _end(self, one: Attempt) -> None:
        now, launch = Millis(self._time.now_ms), one.launch
        if one.is_stopped:
            terms = one.job.terms
            self._save(one, None if terms is None else terms.checkpoint_every_ms)
        how: EndKind = "stopped" if one.is_stopped else "exited"
        code = None if one.is_stopped else int(one.job.id in self._script.failing)
        one.end = AttemptEnded(
            at_ms=now, job_id=launch.job_id, attempt=launch.attempt, how=how, exit_code=code
        )
        self._seen.append(one.end)

    def _lose(self, fault: Fault) -> None:
        now = Millis(self._time.now_ms)
        self._down.append(fault)
        self._seen.append(NodeUnreachable(now, fault.node_id))
        for (job_id, number), one in self._attempts.items():
            if one.end is None and any(m.node == fault.node_id for m in one.launch.members):
                terms = one.job.terms
                every = HOUR if terms is None else terms.checkpoint_every_ms or HOUR
                self._save(one, every)
                one.end = AttemptLost(now, job_id, number, Reason("node-lost"))
                self._seen.append(one.end)


class VirtualClock:
    """Time that jumps to what happens next; if nothing does, it may return late."""

    def __init__(
        self, script: LiveScript, time: Time, executor: VirtualExecutor, inbox: Inbox
    ) -> None:
        self._script, self._time, self._executor, self._inbox = script, time, executor, inbox
        self._requests = list(script.requests)
        self.is_over: Callable[[], bool] = lambda: False

    def now_ms(self) -> Millis:
        return Millis(self._time.now_ms)

    def wait(self, descriptors: Sequence[int], timeout_ms: int | None) -> None:
        time = self._time
        next_ms = self._executor.next_ms()
        moments = [] if next_ms is None else [next_ms]
        moments += [at for at, _ in self._requests[:1]]
        if timeout_ms is not None:
            moments.append(time.now_ms + timeout_ms + self._script.late_ms)
        due_ms = min(moments, default=None)
        if due_ms is None or due_ms > self._script.until_ms or self.is_over():
            self._inbox.close()
            return
        time.now_ms = max(time.now_ms, due_ms)
        while self._requests and self._requests[0][0] <= time.now_ms:
            self._inbox.put(self._requests.pop(0)[1], lambda _: None)
        self._executor.report_idle()

    @property
    def has_requests(self) -> bool:
        return bool(self._requests)


def run_live(script: LiveScript, journal: Path, watching: Sequence[Witness] = ()) -> list[Line]:
    """Run a live control plane to the end of a script; return what its journal has."""
    time, inbox = Time(), Inbox()
    executor = VirtualExecutor(script, time, inbox)
    clock = VirtualClock(script, time, executor, inbox)

    def saved_at(job: Job, run_spec: RunSpec) -> Millis | None:
        return executor.saved_ms.get(job.id)

    def witnesses(store: Store) -> Sequence[Witness]:
        assert isinstance(store, LiveJournal)
        return (*store.witnesses(), *watching)

    def clock_at(_: Millis) -> VirtualClock:
        return clock

    plane = ControlPlane(
        Parts(
            store=lambda: LiveJournal(str(journal), "test", 0, script.policy),
            executor=lambda: executor,
            clock=clock_at,
            deciders=lambda: [placing_decider(script.policy)],
            saved_at=saved_at,
            witnesses=witnesses,
        ),
        inbox,
    )

    def is_over() -> bool:
        fleet = plane.fleet
        busy = fleet is not None and (fleet.pending or fleet.orders or fleet.running)
        return not busy and not clock.has_requests

    clock.is_over = is_over
    inbox.put(JoinNodes(tuple(script.nodes)), lambda _: None)
    plane.run_once()
    store = open_store(str(journal))
    try:
        return list(lines_between(store))
    finally:
        store.close()
