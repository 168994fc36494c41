"""Attempts under way: from an order to a launch, and from what was seen to facts.

One job has at most one attempt at a time. A sighting of another one is old news and is passed
over. An attempt that ended before it was seen to start has started all the same.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, Protocol, runtime_checkable

from msgspec import UNSET, Struct
from msgspec.structs import replace

from tenfold.fleet.trouble import after_crash
from tenfold.fleet.view import FleetView
from tenfold.live.devices import Devices
from tenfold.live.executor import (
    AttemptEnded,
    AttemptLost,
    AttemptStarted,
    AttemptState,
    Executor,
    Launch,
    Member,
    OrderRefused,
)
from tenfold.live.failures import crash_of, loss_of, refusal_of
from tenfold.live.job_registry import Book
from tenfold.model.actions import StartJob
from tenfold.model.events import (
    ActionRefused,
    Event,
    JobCancelled,
    JobEnded,
    JobRefused,
    JobResized,
    JobStarted,
    JobStopped,
)
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Job, JobStatus, Slot, StopCause, per_member
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.reason import Reason, UserRef
from tenfold.model.units import Millis

Why = StopCause | Literal["cancelled", "timeout", "resize"]
SavedAt = Callable[[Job, RunSpec], Millis | None]
"""Tells when the newest checkpoint of a job was made that can be trusted."""
SEEN_LATE_MS = 100
"""An end that is seen within this time is taken to have come when it was seen."""
STALE = "stale-order"
"""An executor's word for an attempt that a newer one has overtaken."""


class Live(Struct):
    """The attempt of one job."""

    job: Job
    slots: tuple[Slot, ...]
    attempt: int
    started_ms: Millis | None = None
    launched: bool = False
    """A start that is put off is not launched yet."""
    numbers: tuple[tuple[int, ...], ...] = ()
    """Devices by slot."""
    why: Why | None = None
    """For what it was told to stop."""
    by: str = ""
    """Who took its job back, where somebody did."""
    becoming: tuple[Slot, ...] | None = None
    """The slots of the attempt that follows it."""
    becomes: int = 0
    """The number of that attempt."""
    resizes: bool = False
    """Whether this attempt goes on for one that was stopped to be resized."""


@runtime_checkable
class AheadClock(Protocol):
    """A clock that knows how it differs from that of the machine."""

    def ahead_ms(self) -> int:
        """Return by how much it shows more."""
        ...


class Attempts:
    """All attempts that are not over."""

    def __init__(
        self,
        executor: Executor,
        book: Book,
        view: FleetView,
        saved_at: SavedAt,
    ) -> None:
        self._executor = executor
        self._book = book
        self._view = view
        self._saved_at = saved_at
        self.clock: AheadClock | None = None
        """Tells when an end was by the loop's time; without it, ends are when they are seen."""
        self._devices = Devices({node.id: node.gpus for node in view.nodes.values()})
        self._live: dict[JobId, Live] = {}
        self._over: list[tuple[JobId, int]] = []
        """Attempts whose ends are facts; once recorded, the executor may forget them."""

    @property
    def devices(self) -> Devices:
        """Which devices are free."""
        return self._devices

    def get(self, job_id: JobId) -> Live | None:
        """Return the attempt of a job, where there is one."""
        return self._live.get(job_id)

    def settle(self) -> None:
        """Let the executor forget attempts whose ends are recorded by now."""
        if self._over:
            self._executor.settle(self._over)
            self._over = []

    def order(self, job: Job, slots: tuple[Slot, ...]) -> Live:
        """Take an order to start a job, and number it."""
        live = self._live[job.id] = Live(job, slots, self._book.begin(job.id))
        return live

    def resize(self, live: Live, slots: tuple[Slot, ...]) -> None:
        """Take an order to go on with other slots: this attempt stops, and another follows."""
        live.becoming, live.becomes = slots, self._book.begin(live.job.id)
        self.stop(live, "resize")

    def withdraw(self, live: Live, by: str, now_ms: Millis) -> list[Event]:
        """Take back an order that was put off, and its job with it."""
        reason = Reason("cancelled", {"by": UserRef(by, live.job.team)} if by else {})
        self._let_go(live)
        self._book.close(live.job.id)
        return [
            ActionRefused(now_ms, StartJob(live.job.id, live.slots), reason),
            JobCancelled(now_ms, live.job.id, by or UNSET),
        ]

    def leave(self, node: NodeId) -> None:
        """End at once whatever lies on a node that is gone."""
        for live in list(self._live.values()):
            if live.launched and any(slot.node == node for slot in live.slots):
                live.why = live.why if live.why == "cancelled" else "node-lost"
                self._executor.stop(live.job.id, live.attempt, Millis(0))

    def launch(self, live: Live) -> None:
        """Hand an ordered attempt to the executor."""
        if not live.numbers:
            live.numbers = tuple(self._devices.take(slot) for slot in live.slots)
        cpus, memory = per_member(live.job.shape, len(live.slots))
        members = tuple(
            Member(node=slot.node, gpus=numbers, cpus_milli=cpus, memory_mib=memory)
            for slot, numbers in zip(live.slots, live.numbers, strict=True)
        )
        live.launched = True
        self._executor.start(
            Launch(
                job_id=live.job.id,
                attempt=live.attempt,
                team=live.job.team,
                run_spec=self._book.run_spec(live.job.id),
                members=members,
            )
        )

    def stop(self, live: Live, why: Why) -> None:
        """Give notice to an attempt. A cancellation stands over any other reason."""
        if live.why != "cancelled":
            live.why = why
        if live.launched:
            grace_ms = self._book.run_spec(live.job.id).grace_ms
            self._executor.stop(live.job.id, live.attempt, grace_ms)

    def adopt(self, states: Iterable[AttemptState], now_ms: Millis) -> list[Event]:
        """Take over what an earlier controller ordered; return what happened meanwhile.

        Orders that the executor never heard of are given again: they stand in the journal.
        Devices that are held come first, lest they be given to those.
        """
        known: dict[JobId, dict[int, AttemptState]] = {}
        for state in states:
            known.setdefault(state.job_id, {})[state.attempt] = state
        ours = [self._ordered(job_id, known) for job_id in self._view.orders]
        ours += [self._running(job_id, known) for job_id in self._view.running]
        for live, state in ours:
            self._live[live.job.id] = live
            if state is not None:
                self._hold(live, state)
        facts = [fact for live, state in ours for fact in self._take_over(live, state, now_ms)]
        under_way = {(live.job.id, live.attempt) for live in self._live.values()}
        told = {(job_id, number) for job_id, attempts in known.items() for number in attempts}
        self._over = sorted({*self._over, *told} - under_way)
        return facts

    def _ordered(
        self, job_id: JobId, known: Mapping[JobId, Mapping[int, AttemptState]]
    ) -> tuple[Live, AttemptState | None]:
        order, attempt = self._view.orders[job_id], self._book.attempt(job_id)
        return Live(order.job, order.slots, attempt), known.get(job_id, {}).get(attempt)

    def _running(
        self, job_id: JobId, known: Mapping[JobId, Mapping[int, AttemptState]]
    ) -> tuple[Live, AttemptState | None]:
        """Return the newest attempt of a job that runs; a resize may be half done."""
        run, last = self._view.running[job_id], self._book.attempt(job_id)
        attempts = known.get(job_id, {})
        newest = max((number for number in attempts if number <= last), default=last)
        live = Live(run.job, run.slots, newest, run.started_ms)
        if run.becoming is not None and newest == last:
            live.slots, live.started_ms, live.resizes = run.becoming, None, True
        elif run.becoming is not None:
            live.becoming, live.becomes, live.why = run.becoming, last, "resize"
        elif run.stopping:
            live.why = "preempted" if run.reclaimed is UNSET else "idle"
        return live, attempts.get(newest)

    def _hold(self, live: Live, state: AttemptState) -> None:
        live.launched = True
        if state.end is not None or len(state.members) != len(live.slots):
            # It is over, and its devices may be another's by now; or its record was cut off, and
            # it never began. Either way it holds nothing.
            return
        live.numbers = tuple(member.gpus for member in state.members)
        for slot, numbers in zip(live.slots, live.numbers, strict=True):
            self._devices.hold(slot, numbers)

    def _take_over(self, live: Live, state: AttemptState | None, now_ms: Millis) -> list[Event]:
        job_id = live.job.id
        if state is None:
            if live.started_ms is None:
                self.launch(live)
                return []
            reason = Reason("attempt-unknown")
            return self.lost(AttemptLost(now_ms, job_id, live.attempt, reason), now_ms)
        if isinstance(state.end, AttemptEnded):
            return self.ended(state.end, now_ms)
        if isinstance(state.end, AttemptLost):
            return self.lost(state.end, now_ms)
        if live.why is not None:
            # The order stands in the journal; whether it was passed on does not.
            self.stop(live, live.why)
        if state.started_ms is not None:
            return self.started(AttemptStarted(state.started_ms, job_id, live.attempt), now_ms)
        return []

    def started(self, seen: AttemptStarted, now_ms: Millis) -> list[Event]:
        """Every member of a gang runs."""
        live = self._of(seen.job_id, seen.attempt)
        if live is None or live.started_ms is not None:
            return []
        live.started_ms = now_ms
        return [_begun(live, now_ms)]

    def ended(self, seen: AttemptEnded, now_ms: Millis) -> list[Event]:
        """No process is left: say what that means for the job."""
        live = self._of(seen.job_id, seen.attempt)
        if live is None:
            return []
        facts: list[Event] = []
        if live.started_ms is None:
            live.started_ms = now_ms
            facts.append(_begun(live, now_ms))
        began_ms = live.started_ms
        if seen.how == "stopped" and live.why == "resize" and live.becoming is not None:
            self._let_go(live)
            follows = Live(live.job, live.becoming, live.becomes, resizes=True)
            self._live[live.job.id] = follows
            self.launch(follows)
            return facts
        outcome = self._outcome(live, seen, now_ms)
        code = 128 + seen.signal if seen.signal is not None else seen.exit_code
        if self.clock is not None:
            # Executors write the time of the machine, from which the loop's may differ.
            ended_ms = max(began_ms, Millis(seen.at_ms + self.clock.ahead_ms()))
            if now_ms - ended_ms >= SEEN_LATE_MS:
                outcome = replace(outcome, ended_ms=ended_ms)
        return [*facts, outcome if code is None else replace(outcome, exit_code=code)]

    def lost(self, seen: AttemptLost, now_ms: Millis) -> list[Event]:
        """Nobody knows how an attempt ended: it is tried again from what it saved."""
        live = self._of(seen.job_id, seen.attempt)
        if live is None:
            return []
        if live.why in ("cancelled", "idle"):
            facts: list[Event] = [] if live.started_ms is not None else [_begun(live, now_ms)]
            return [*facts, self._over_with(live, now_ms, "cancelled")]
        stopped = self._stopped(live, now_ms, "node-lost")
        return [replace(stopped, failure=loss_of(seen, live.slots))]

    def refused(self, seen: OrderRefused, now_ms: Millis) -> list[Event]:
        """An order was not carried out. A start that can never be ends the job."""
        live = self._of(seen.job_id, seen.attempt)
        if live is None or live.started_ms is not None:
            return []
        self._let_go(live)
        if live.resizes:
            return [self._stopped(live, now_ms, "start-failed")]
        order, failure = StartJob(live.job.id, live.slots), refusal_of(seen, live.slots)
        facts: list[Event] = [ActionRefused(now_ms, order, seen.reason, failure)]
        if not seen.passing and seen.reason.code != STALE:
            facts.append(JobRefused(now_ms, live.job.id, (seen.reason,)))
            self._book.close(live.job.id)
        return facts

    def _outcome(self, live: Live, seen: AttemptEnded, now_ms: Millis) -> JobEnded | JobStopped:
        if seen.how == "stopped":
            match live.why:
                case None:
                    return self._over_with(live, now_ms, _told_before(live, seen))
                case "cancelled" | "timeout" as status:
                    return self._over_with(live, now_ms, status)
                case "idle":
                    # A session that idles is over; nobody would come back to it.
                    return self._over_with(live, now_ms, "cancelled")
                case "resize":
                    return self._stopped(live, now_ms, "moved")
                case cause:
                    return self._stopped(live, now_ms, cause)
        if seen.how == "exited" and seen.exit_code == 0:
            return self._over_with(live, now_ms, "completed")
        return self._crashed(live, seen, now_ms)

    def _crashed(self, live: Live, seen: AttemptEnded, now_ms: Millis) -> JobEnded | JobStopped:
        job_id = live.job.id
        failure = crash_of(seen, live.slots, self._saved_at(live.job, self._book.run_spec(job_id)))
        crashes = after_crash(self._view.trouble.crashes.get(job_id), failure.saved_ms)
        if self._book.is_worth_a_try(job_id, crashes):
            return replace(self._stopped(live, now_ms, "crashed"), failure=failure)
        return replace(self._over_with(live, now_ms, "failed"), failure=failure)

    def _over_with(self, live: Live, now_ms: Millis, status: JobStatus) -> JobEnded:
        self._let_go(live)
        self._book.close(live.job.id)
        by = live.by if status == "cancelled" and live.by else UNSET
        return JobEnded(now_ms, live.job.id, status, by=by)

    def _stopped(self, live: Live, now_ms: Millis, cause: StopCause) -> JobStopped:
        past = self._view.past.get(live.job.id)
        done_ms = Millis(0) if past is None else past.progress_ms
        saved_ms = self._saved_at(live.job, self._book.run_spec(live.job.id))
        if saved_ms is not None and live.started_ms is not None and saved_ms > live.started_ms:
            done_ms = Millis(done_ms + saved_ms - live.started_ms)
        self._let_go(live)
        return JobStopped(now_ms, live.job.id, cause, done_ms)

    def _let_go(self, live: Live) -> None:
        for slot, numbers in zip(live.slots, live.numbers, strict=False):
            self._devices.give(slot, numbers)
        live.numbers = ()
        self._over.append((live.job.id, live.attempt))
        self._live.pop(live.job.id, None)

    def _of(self, job_id: JobId, attempt: int) -> Live | None:
        live = self._live.get(job_id)
        return live if live is not None and live.attempt == attempt else None


def _begun(live: Live, now_ms: Millis) -> Event:
    if live.resizes:
        return JobResized(now_ms, live.job.id)
    return JobStarted(now_ms, live.job.id)


def _told_before(live: Live, seen: AttemptEnded) -> JobStatus:
    """Return why an earlier controller ended an attempt: its time was up, or somebody asked."""
    limit_ms, started_ms = live.job.limit_ms, live.started_ms
    if limit_ms is None or started_ms is None or seen.at_ms < started_ms + limit_ms:
        return "cancelled"
    return "timeout"
