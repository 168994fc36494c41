"""The live world: real time, real requests, real processes.

It turns requests and observations into events and orders into launches, and decides nothing. Its
memory can be rebuilt from the fleet, the registry and the executor's attempts, so a control plane
that was killed at any point continues where it was.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush
from typing import Protocol

from msgspec import UNSET

from tenfold.fleet.retries import back_off_ms
from tenfold.fleet.view import FleetView
from tenfold.live.acceptance import NodeRecord, NodeTester, NodeTests, node_test_of
from tenfold.live.attempts.active import ActiveAttempt, CheckpointTime
from tenfold.live.attempts.adoption import adopt
from tenfold.live.attempts.attempts import AheadClock, Attempts
from tenfold.live.blame import CordonRule, FailureCordons, no_cordons
from tenfold.live.checkpoint_reader import CheckpointReader
from tenfold.live.closed_nodes import ClosedNodes, LeavingNodes
from tenfold.live.executor import (
    AttemptEnded,
    AttemptLost,
    AttemptStarted,
    Executor,
    NodeClosed,
    NodeOpened,
    NodeReachable,
    NodeUnreachable,
    Observation,
    OrderRefused,
)
from tenfold.live.idle import idle_changes
from tenfold.live.inbox import (
    AcceptNode,
    Answer,
    Cancel,
    ChangeService,
    DeployService,
    Inbox,
    JoinNodes,
    LeaveNodes,
    MoveAlias,
    NodeBatch,
    PendingRequest,
    RegisterModel,
    Release,
    RemoveVersion,
    ReportActivity,
    RetestNode,
    SetNodeState,
    StageVersion,
    StepService,
    Submit,
)
from tenfold.live.job_registry import JobRegistry
from tenfold.live.models.registry import ModelRegistry
from tenfold.live.quarantine import Quarantine, is_job_fault
from tenfold.live.services import ServiceRequests
from tenfold.model.actions import Action, RefuseJob, ReserveStart, ResizeJob, StartJob, StopJob
from tenfold.model.events import (
    ActionRefused,
    Event,
    JobCancelled,
    JobRefused,
    JobReleased,
    JobSubmitted,
    NodeCordoned,
    NodeJoined,
    NodeLeft,
    NodeLost,
    NodeReturned,
    node_of,
)
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.submission import Submission, admitted, names_of
from tenfold.model.reason import JobRef, NodeRef, Reason, Text
from tenfold.model.units import Millis

MANUAL = "by-hand"
"""Reason code of a cordon by a user who gave a reason."""
TEAM_BYTES_MAX = 512 << 20
"""Size of the events of a team's unfinished jobs: about a million small jobs. An assumption."""
NAMED_MOST = 5
"""Unknown nodes listed in a refusal; further ones are counted."""
_LOG = logging.getLogger("tenfold.live")


class Clock(Protocol):
    """Monotonic time."""

    def now_ms(self) -> Millis:
        """Return milliseconds since 1970."""
        ...

    def wait(self, descriptors: Sequence[int], timeout_ms: int | None) -> None:
        """Return when a descriptor is readable, or after `timeout_ms`."""
        ...


class LiveWorld:
    """Requests, processes and time of a real fleet."""

    def __init__(
        self,
        *,
        executor: Executor,
        inbox: Inbox,
        clock: Clock,
        view: FleetView,
        registry: JobRegistry,
        saved_at: CheckpointTime | CheckpointReader,
    ) -> None:
        """A `saved_at` that is not a reader is called in the loop, so it must not read files."""
        self._executor, self._inbox, self._clock = executor, inbox, clock
        self._view, self._registry = view, registry
        self._models = ModelRegistry()
        self._reader = saved_at if isinstance(saved_at, CheckpointReader) else None
        self._attempts = Attempts(
            executor, registry, view, None if isinstance(saved_at, CheckpointReader) else saved_at
        )
        if isinstance(clock, AheadClock):
            self._attempts.clock = clock
        self._quarantine = Quarantine(self._attempts, view)
        self._node_tests = NodeTests(executor, view)
        self._cordons = FailureCordons(no_cordons, view)
        self._closed_nodes = ClosedNodes(view)
        self._leaving = LeavingNodes(view)
        self._left: dict[NodeId, None] = {}
        """Nodes that left, and did not join again."""
        self._services = ServiceRequests(view, registry)
        self._due: list[tuple[int, int, JobId]] = []
        """When to check an attempt: (time, attempt, job)."""
        self._answers: list[tuple[PendingRequest, Answer]] = []
        """Replies to send once the last returned events are on disk."""
        self._cancels: list[ActiveAttempt] = []
        """Attempts to stop once the request is on disk: an accepted one survives a kill."""
        self._moment_ms: int = -1
        """The moment that `wait` returned last."""
        self._woken_ms: Millis | None = None
        """The same moment, if it was a wake-up without events."""
        self._startup_events: list[Event] | None = self._adopted()
        """Events since the last control plane stopped, until they are returned."""

    def test_nodes_with(
        self, node_tester: NodeTester, records: Mapping[NodeId, NodeRecord]
    ) -> None:
        """Enable node tests; `records` has earlier results."""
        self._node_tests.test_nodes_with(node_tester, records)
        self._closed_nodes.restore((node, record.cause) for node, record in records.items())
        self._leaving.restore((node, one.cause, one.fields) for node, one in records.items())
        self._left = {node: None for node, record in records.items() if record.has_left}

    def register_models_in(self, models: ModelRegistry) -> None:
        """Continue with the models that were registered so far."""
        self._models = models

    def cordon_with(self, judge: CordonRule) -> None:
        """Enable cordons of nodes that keep failing jobs."""
        self._cordons = FailureCordons(judge, self._view)

    def wait(self, until_ms: Millis | None) -> tuple[Millis, Sequence[Event]] | None:
        """Return the next events, or none at `until_ms`; None at shutdown.

        A decider that asks for a moment decides at that moment, as in a simulation, even if the
        clock is past it: what was observed since then follows with the next call.
        """
        if self._startup_events is None:
            # The previously returned events are recorded by now.
            self._attempts.settle()
        woken_ms, self._woken_ms = self._woken_ms, None
        while True:
            now_ms = self._clock.now_ms()
            # A second wake-up in a row collects events first: a slow decider must not starve them.
            if until_ms is not None and woken_ms is None and self._moment_ms < until_ms <= now_ms:
                return self._wake(until_ms)
            events = self._collect_events(now_ms)
            if events or self._answers:
                self._moment_ms = now_ms
                return now_ms, events
            if self._inbox.is_closed:
                return None
            # Nothing is waiting to be written: what a test depends on is recorded.
            self._node_tests.begin(now_ms)
            if until_ms is not None and now_ms >= until_ms:
                return self._wake(until_ms)
            due_ms = self._due[0][0] if self._due else None
            files = [self._inbox.fileno(), self._executor.fileno()]
            read_ms = None
            if self._reader is not None:
                files.append(self._reader.fileno())
                read_ms = self._reader.next_deadline_ms()
            wakes = [at for at in (until_ms, due_ms, read_ms, self._leaving.next_ms()) if at]
            timeout_ms = max(1, min(wakes) - now_ms) if wakes else None
            self._clock.wait(files, timeout_ms)

    def _wake(self, until_ms: Millis) -> tuple[Millis, Sequence[Event]]:
        self._moment_ms = self._woken_ms = moment_ms = Millis(max(until_ms, self._moment_ms))
        return moment_ms, ()

    def recorded(self) -> None:
        """Stop what was cancelled and reply to requests: their events are on disk."""
        cancels, self._cancels = self._cancels, []
        for active in cancels:
            # It may have ended in the same moment.
            if self._attempts.get(active.job.id) is active:
                self._attempts.stop(active, "cancelled")
        answers, self._answers = self._answers, []
        for pending, answer in answers:
            pending.reply(answer)

    def failed(self, reason: Reason) -> None:
        """Reply to requests that it is unknown whether their events are on disk."""
        answers, self._answers = self._answers, []
        for pending, _ in answers:
            pending.reply(Answer(refused=reason))

    def carry_out(self, actions: Sequence[Action], now_ms: Millis) -> Sequence[Event]:
        """Pass orders to the executor; most outcomes come with `wait`. Reservations need none."""
        outcomes: list[Event] = []
        for action in actions:
            outcomes += self._quarantine.handle(
                action.job_id,
                now_ms,
                partial(self._carry_out, action, now_ms),
                is_over=type(action) is StartJob,
                made=outcomes,
            )
        return outcomes

    def _carry_out(self, action: Action, now_ms: Millis) -> Sequence[Event]:
        outcomes: list[Event] = []
        if type(action) is StartJob:
            order = self._view.orders[action.job_id]
            active = self._attempts.order(order.job, action.slots)
            self._launch(active, now_ms)
        elif type(action) is StopJob:
            self._stop(action, now_ms, outcomes)
        elif type(action) is ResizeJob:
            self._resize(action, now_ms, outcomes)
        elif type(action) is not ReserveStart:
            assert type(action) is RefuseJob
            self._registry.close(action.job_id)
            outcomes.append(JobRefused(now_ms, action.job_id, action.reasons))
        return outcomes

    def hold(self, job_id: JobId, error: Exception) -> None:
        """Hold a pending job that a policy fails on."""
        self._quarantine.hold(job_id, error)

    def _adopted(self) -> list[Event]:
        now_ms = self._clock.now_ms()
        found = self._node_tests.adopt(self._executor.attempts())
        handle = self._quarantine.handle
        events = adopt(
            self._attempts,
            found,
            now_ms,
            lambda job, work, is_over: handle(job, now_ms, work, is_over=is_over),
        )
        for job_id in self._view.running:
            active = self._attempts.get(job_id)
            if active is not None:
                self._limit(active)
        return events

    def _collect_events(self, now_ms: Millis) -> list[Event]:
        events, self._startup_events = self._startup_events or [], None
        events += self._quarantine.due(now_ms)
        for pending in self._inbox.drain():
            self._try_request(pending, now_ms, events)
        waiting, self._attempts.waiting = self._attempts.waiting, []
        for observation in (*waiting, *self._executor.observations()):
            work = partial(self._on_new, observation, now_ms)
            events += self._observe(observation, work, now_ms, events)
        if self._reader is not None:
            for observation, saved_ms in self._reader.answers(now_ms):
                work = partial(self._on_saved, observation, saved_ms, now_ms)
                events += self._observe(observation, work, now_ms, events)
        self._run_due(now_ms, events)
        events += self._cordons.cordons(events, now_ms)
        events += self._departures(events, now_ms)
        return events

    def _try_request(self, pending: PendingRequest, now_ms: Millis, events: list[Event]) -> None:
        """Handle a request; one that cannot be handled is refused, and changes nothing."""
        before = len(events)
        try:
            self._request(pending, now_ms, events)
        except Exception as error:
            if not is_job_fault(error):
                raise
            _LOG.exception("a request is rejected: the loop failed on it")
            del events[before:]
            pending.reply(Answer(refused=Reason("request-failed", {"error": type(error).__name__})))

    def _request(self, pending: PendingRequest, now_ms: Millis, events: list[Event]) -> None:
        match pending.request:
            case Submit() as request:
                self._answers.append((pending, self._submit(request, now_ms, events)))
            case Cancel(job_id, members, by):
                answer = self._cancel(members or (job_id,), by, now_ms, events)
                self._answers.append((pending, answer))
            case Release(job_id, members, by):
                answer = self._release(members or (job_id,), by, now_ms, events)
                self._answers.append((pending, answer))
            case JoinNodes() | LeaveNodes() as request:
                answer = self._join_or_leave(request, now_ms, events)
                self._answers.append((pending, answer))
            case ReportActivity() as request:
                made = idle_changes(request, self._view, self._attempts, now_ms, events)
                events += made
                if made:
                    self._answers.append((pending, Answer()))
                else:
                    # No events, so there is no commit to wait for.
                    pending.reply(Answer())
            case DeployService() | ChangeService() | StepService() as request:
                self._answers.append((pending, self._for_service(request, now_ms, events)))
            case RegisterModel() | MoveAlias() | StageVersion() | RemoveVersion() as request:
                answer, made = self._models.change(request, now_ms)
                events += made
                self._answers.append((pending, answer))
            case NodeBatch(requests):
                self._answers.append((pending, self._for_nodes(requests, now_ms, events)))
            case one:
                self._answers.append((pending, self._for_nodes((one,), now_ms, events)))

    def _submit(self, request: Submit, now_ms: Millis, events: list[Event]) -> Answer:
        key, number = request.key, self._registry.next_number
        before = None if key is None else self._registry.keys.find(key)
        if isinstance(before, Reason):
            return Answer(refused=before)
        if before is not None:
            return Answer(names_of(request.submissions, before), again=True)
        reason = self._over_backlog(request.submissions)
        if reason is not None:
            return Answer(refused=reason)
        made: list[JobId] = []
        for submission in request.submissions:
            jobs = admitted(submission, self._registry.next_number, now_ms)
            self._registry.admit(jobs, submission.event_bytes)
            for one in jobs:
                events.append(JobSubmitted(now_ms, one.job, one.run_spec, None if made else key))
                made.append(one.job.id)
        if key is not None:
            self._registry.keys.note(key, number)
        return Answer(tuple(made))

    def _over_backlog(self, submissions: Sequence[Submission]) -> Reason | None:
        """Return why a team may not have more unfinished jobs; each is kept in memory."""
        wanted: dict[TeamId, int] = {}
        for one in submissions:
            wanted[one.team] = wanted.get(one.team, 0) + one.all_bytes
        for team, size in wanted.items():
            if self._registry.unfinished_bytes(team) + size > TEAM_BYTES_MAX:
                return Reason("backlog-full", {"most_mib": TEAM_BYTES_MAX >> 20})
        return None

    def _join_or_leave(
        self, request: JoinNodes | LeaveNodes, now_ms: Millis, events: list[Event]
    ) -> Answer:
        if isinstance(request, LeaveNodes):
            return self._leave(request, now_ms, events)
        self._join(request, now_ms, events)
        return Answer()

    def _join(self, request: JoinNodes, now_ms: Millis, events: list[Event]) -> None:
        joined = [event.node.id for event in events if type(event) is NodeJoined]
        for node in request.nodes:
            if node.id in self._left and not request.has_left_ones:
                continue
            if node.id not in self._view.nodes and node.id not in joined:
                self._left.pop(node.id, None)
                self._attempts.devices.join(node.id, node.gpus)
                events += self._node_tests.join(node, now_ms, is_tested=request.is_tested)

    def _leave(self, request: LeaveNodes, now_ms: Millis, events: list[Event]) -> Answer:
        for node in request.nodes:
            if self._node_tests.is_tested_now(node):
                return Answer(refused=Reason("node-under-test", {"node": NodeRef(node)}))
        made = self._leaving.request(request, now_ms)
        if isinstance(made, Reason):
            return Answer(refused=made)
        events += made
        return Answer()

    def _departures(self, made: Sequence[Event], now_ms: Millis) -> list[Event]:
        """Return what becomes of nodes that leave and that no event of this moment is about."""
        if not self._leaving.nodes:
            return []
        touched = dict.fromkeys(node_of(event) for event in made)
        events = self._leaving.due(now_ms, touched, self._attempts.stop_on_node)
        for event in events:
            if type(event) is NodeLeft:
                self._left[event.node_id] = None
                self._attempts.devices.leave(event.node_id)
                self._node_tests.left(event.node_id)
        return events

    def _cancel(
        self, job_ids: Sequence[JobId], by: str, now_ms: Millis, events: list[Event]
    ) -> Answer:
        gone = {event.job_id for event in events if type(event) is JobCancelled}
        fresh = {event.job.id for event in events if type(event) is JobSubmitted}
        cancelled: list[JobId] = []
        for job_id in job_ids:
            active = self._attempts.get(job_id)
            if active is not None and active.launched:
                events += self._attempts.request_cancel(active, by, now_ms)
                self._cancels.append(active)
            elif active is not None:
                events += self._attempts.cancel_delayed(active, by, now_ms)
            elif job_id not in gone and (
                job_id in fresh or job_id in self._view.pending or job_id in self._view.held
            ):
                self._registry.close(job_id)
                events.append(JobCancelled(now_ms, job_id, by or UNSET))
            else:
                continue
            cancelled.append(job_id)
        if not cancelled:
            return Answer(refused=Reason("job-not-active", {"name": job_ids[0]}))
        return Answer(tuple(cancelled))

    def _for_service(
        self,
        request: DeployService | ChangeService | StepService,
        now_ms: Millis,
        events: list[Event],
    ) -> Answer:
        made = self._services.events_of(request, now_ms, events)
        if isinstance(made, Reason):
            return Answer(refused=made)
        events += made
        if isinstance(request, StepService):
            for job_id in request.step.stops:
                self._cancel((job_id,), "", now_ms, events)
        return Answer()

    def _release(
        self, job_ids: Sequence[JobId], by: str, now_ms: Millis, events: list[Event]
    ) -> Answer:
        kinds = (JobCancelled, JobReleased)
        gone = {event.job_id for event in events if isinstance(event, kinds)}
        held = tuple(one for one in job_ids if one in self._view.held and one not in gone)
        if not held:
            return Answer(refused=Reason("job-not-held", {"name": job_ids[0]}))
        events += [JobReleased(now_ms, job_id, by or UNSET) for job_id in held]
        return Answer(held)

    def _for_nodes(
        self,
        requests: Sequence[SetNodeState | RetestNode | AcceptNode],
        now_ms: Millis,
        events: list[Event],
    ) -> Answer:
        """Apply a request to each node, or to none if one is impossible."""
        unknown = tuple(NodeRef(one.node) for one in requests if one.node not in self._view.nodes)
        if unknown:
            return Answer(refused=Reason("no-such-node", {"nodes": unknown}))
        for one in requests:
            if (reason := self._why_not(one)) is not None:
                return Answer(refused=reason)
        for one in requests:
            if isinstance(one, SetNodeState):
                self._mark(one.node, one.state, one.cause, now_ms, events)
            elif isinstance(one, RetestNode):
                self._node_tests.test(one.node, now_ms, events)
            else:
                self._node_tests.accept(one.node, one.by, now_ms, events)
        return Answer()

    def _why_not(self, one: SetNodeState | RetestNode | AcceptNode) -> Reason | None:
        if isinstance(one, RetestNode):
            return self._node_tests.why_not_test(one.node)
        if isinstance(one, AcceptNode):
            return self._node_tests.why_not_accept(one.node)
        return self._node_tests.why_not_return(one.node) if one.state == "up" else None

    def _mark(
        self, node: NodeId, state: str, cause: str, now_ms: Millis, events: list[Event]
    ) -> None:
        made: dict[str, Event] = {
            "cordoned": NodeCordoned(
                now_ms, node, Reason(MANUAL, {"note": Text(cause)}) if cause else UNSET
            ),
            "down": NodeLost(now_ms, node, cause),
            "up": NodeReturned(now_ms, node),
        }
        if self._view.states[node] != state:
            events.append(made[state])
            if state == "down":
                self._attempts.stop_on_node(node)

    def _on_new(self, observation: Observation, now_ms: Millis) -> list[Event]:
        if self._stays_away(observation) or self._asks_when_saved(observation, now_ms):
            return []
        return self._on_observation(observation, now_ms)

    def _on_saved(
        self, observation: AttemptEnded | AttemptLost, saved_ms: Millis | None, now_ms: Millis
    ) -> list[Event]:
        self._attempts.note_saved(observation, saved_ms)
        return self._on_observation(observation, now_ms)

    def _observe(
        self,
        observation: Observation,
        work: Callable[[], list[Event]],
        now_ms: Millis,
        events: Sequence[Event],
    ) -> Sequence[Event]:
        if isinstance(observation, NodeUnreachable | NodeReachable | NodeClosed | NodeOpened):
            return work()
        is_over = isinstance(observation, AttemptEnded | AttemptLost | OrderRefused)
        return self._quarantine.handle(
            observation.job_id, now_ms, work, is_over=is_over, made=events
        )

    def _stays_away(self, observation: Observation) -> bool:
        """Return whether a node that leaves was seen to be back, which changes nothing."""
        is_back = isinstance(observation, NodeReachable | NodeOpened)
        return is_back and observation.node in self._leaving

    def _asks_when_saved(self, observation: Observation, now_ms: Millis) -> bool:
        """Return whether an end waits until it is known when its job last saved."""
        if self._reader is None or not isinstance(observation, AttemptEnded | AttemptLost):
            return False
        active = self._attempts.awaits_saved(observation)
        if active is None:
            return False
        run_spec = self._registry.run_spec(active.job.id)
        self._reader.ask(observation, active.job, run_spec, now_ms)
        return True

    def _on_observation(self, observation: Observation, now_ms: Millis) -> list[Event]:
        if isinstance(observation, NodeClosed | NodeOpened):
            return self._closed_nodes.observe(observation, now_ms)
        if node_test_of(observation) is not None:
            return self._node_tests.observe(observation, now_ms)
        match observation:
            case AttemptStarted():
                events = self._attempts.started(observation, now_ms)
                active = self._attempts.get(observation.job_id)
                if events and active is not None:
                    self._limit(active)
                return events
            case AttemptEnded():
                return self._attempts.ended(observation, now_ms)
            case AttemptLost():
                return self._attempts.lost(observation, now_ms)
            case OrderRefused():
                return self._attempts.refused(observation, now_ms)
            case NodeUnreachable(_, node, cause):
                known = self._view.states.get(node, "down") != "down"
                return [NodeLost(now_ms, node, cause)] if known else []
            case NodeReachable(_, node):
                known = self._view.states.get(node) == "down"
                return self._node_tests.returned(node, now_ms) if known else []
            case _:
                return []

    def _launch(self, active: ActiveAttempt, now_ms: Millis) -> None:
        crashes = self._view.failure_log.crashes.get(active.job.id)
        failures = 0 if crashes is None else crashes.count
        wait_ms = back_off_ms(max(failures, self._registry.refusals(active.job.id)))
        if wait_ms:
            self._schedule(now_ms + wait_ms, active)
        else:
            self._attempts.launch(active)

    def _stop(self, action: StopJob, now_ms: Millis, outcomes: list[Event]) -> None:
        active = self._attempts.get(action.job_id)
        if active is None:
            outcomes.append(ActionRefused(now_ms, action, _not_running(action.job_id, "stop")))
        else:
            self._attempts.stop(active, action.cause)

    def _resize(self, action: ResizeJob, now_ms: Millis, outcomes: list[Event]) -> None:
        active = self._attempts.get(action.job_id)
        if active is None or active.stop_reason is not None:
            outcomes.append(ActionRefused(now_ms, action, _not_running(action.job_id, "resize")))
        else:
            self._attempts.resize(active, action.slots)

    def _limit(self, active: ActiveAttempt) -> None:
        if active.job.limit_ms is not None and active.started_ms is not None:
            self._schedule(active.started_ms + active.job.limit_ms, active)

    def _schedule(self, at_ms: int, active: ActiveAttempt) -> None:
        heappush(self._due, (at_ms, active.attempt, active.job.id))

    def _run_due(self, now_ms: Millis, events: list[Event]) -> None:
        """Launch delayed attempts, and stop those past their time limit."""
        while self._due and self._due[0][0] <= now_ms:
            _, attempt, job_id = heappop(self._due)
            active = self._attempts.get(job_id)
            if active is None or active.attempt != attempt:
                continue
            work = partial(self._attempt_due, active)
            is_over = not active.launched
            events += self._quarantine.handle(job_id, now_ms, work, is_over=is_over, made=events)

    def _attempt_due(self, active: ActiveAttempt) -> Sequence[Event]:
        if not active.launched:
            self._attempts.launch(active)
        elif active.started_ms is not None and active.stop_reason is None:
            self._attempts.stop(active, "timeout")
        return ()


def _not_running(job_id: JobId, what: str) -> Reason:
    return Reason("job-not-running", {"job": JobRef(job_id), "order": what})
