"""The live world: real time, real requests, real processes.

It turns requests and sightings into facts and orders into launches, and decides nothing. What
it keeps in memory it can build again from the fleet, the book and the executor's attempts, so
a controller that was killed at any moment goes on where it was.
"""

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import Protocol

from msgspec import UNSET

from tenfold.fleet.view import FleetView
from tenfold.live.acceptance import Examiner, Standing, Trials, trial_of
from tenfold.live.attempts import AheadClock, Attempts, Live, SavedAt
from tenfold.live.blame import Blame, Judge, nobody
from tenfold.live.executor import (
    AttemptEnded,
    AttemptLost,
    AttemptStarted,
    Executor,
    NodeSeenBack,
    NodeSeenLost,
    OrderRefused,
    Sighting,
)
from tenfold.live.idle import turns
from tenfold.live.inbox import (
    Accept,
    Answer,
    Cancel,
    Examine,
    Inbox,
    Join,
    Mark,
    Observe,
    Submit,
    Ticket,
    Together,
)
from tenfold.live.job_registry import Book, back_off_ms
from tenfold.model.actions import Action, RefuseJob, ReserveStart, ResizeJob, StartJob, StopJob
from tenfold.model.events import (
    ActionRefused,
    Event,
    JobCancelled,
    JobRefused,
    JobSubmitted,
    NodeCordoned,
    NodeJoined,
    NodeLost,
    NodeReturned,
)
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.submission import admitted, names_of
from tenfold.model.reason import JobRef, NodeRef, Reason, Text
from tenfold.model.units import Millis

BY_HAND = "by-hand"
"""The code of a cordon that a person ordered and gave a reason for."""
NAMED_MOST = 5
"""Unknown nodes that a refusal names; the others are counted."""


class Clock(Protocol):
    """Time that never goes back."""

    def now_ms(self) -> Millis:
        """Return milliseconds since 1970."""
        ...

    def wait(self, descriptors: Sequence[int], timeout_ms: int | None) -> None:
        """Return when one of these is readable, or after `timeout_ms`."""
        ...


class LiveWorld:
    """Everything a real fleet cannot decide: requests, processes, time."""

    def __init__(
        self,
        *,
        executor: Executor,
        inbox: Inbox,
        clock: Clock,
        view: FleetView,
        book: Book,
        saved_at: SavedAt,
    ) -> None:
        self._executor, self._inbox, self._clock = executor, inbox, clock
        self._view, self._book = view, book
        self._attempts = Attempts(executor, book, view, saved_at)
        if isinstance(clock, AheadClock):
            self._attempts.clock = clock
        self._trials = Trials(executor, view)
        self._blame = Blame(nobody, view)
        self._due: list[tuple[int, int, JobId]] = []
        """Moments at which an attempt is to be looked at: (when, attempt, job)."""
        self._answers: list[tuple[Ticket, Answer]] = []
        """What to tell once the facts that were handed out last are on the disk."""
        self._first: list[Event] | None = self._adopted()
        """What happened while nobody looked, until it is handed out."""

    def examined_by(self, examiner: Examiner, standings: Mapping[NodeId, Standing]) -> None:
        """Let nodes be tested; `standings` tell how those that are here did before."""
        self._trials.examined_by(examiner, standings)

    def judged_by(self, judge: Judge) -> None:
        """Let nodes be cordoned that are to blame for what fails on them."""
        self._blame = Blame(judge, self._view)

    def wait(self, until_ms: Millis | None) -> tuple[Millis, Sequence[Event]] | None:
        """Return the facts of the next moment, or nothing at `until_ms`; None at the end."""
        if self._first is None:
            # What was handed out before is recorded by now.
            self._attempts.settle()
        while True:
            now_ms = self._clock.now_ms()
            facts = self._facts(now_ms)
            if facts or self._answers:
                return now_ms, facts
            if self._inbox.is_closed:
                return None
            # Nothing is on its way to the disk: what a test rests on is recorded.
            self._trials.begin(now_ms)
            if until_ms is not None and now_ms >= until_ms:
                return now_ms, ()
            wakes = [at for at in (until_ms, self._due[0][0] if self._due else None) if at]
            timeout_ms = max(1, min(wakes) - now_ms) if wakes else None
            self._clock.wait((self._inbox.fileno(), self._executor.fileno()), timeout_ms)

    def recorded(self) -> None:
        """Tell those who wait that what they asked for is on the disk."""
        answers, self._answers = self._answers, []
        for ticket, answer in answers:
            ticket.tell(answer)

    def failed(self, reason: Reason) -> None:
        """Tell those who wait that it is not known whether the disk has what they asked for."""
        answers, self._answers = self._answers, []
        for ticket, _ in answers:
            ticket.tell(Answer(refused=reason))

    def carry_out(self, actions: Sequence[Action], now_ms: Millis) -> Sequence[Event]:
        """Hand orders to the executor; most outcomes come with `wait`. A promise is no work."""
        outcomes: list[Event] = []
        for action in actions:
            if type(action) is StartJob:
                order = self._view.orders[action.job_id]
                live = self._attempts.order(order.job, action.slots)
                self._launch(live, now_ms)
            elif type(action) is StopJob:
                self._stop(action, now_ms, outcomes)
            elif type(action) is ResizeJob:
                self._resize(action, now_ms, outcomes)
            elif type(action) is not ReserveStart:
                assert type(action) is RefuseJob
                self._book.close(action.job_id)
                outcomes.append(JobRefused(now_ms, action.job_id, action.reasons))
        return outcomes

    def _adopted(self) -> list[Event]:
        now_ms = self._clock.now_ms()
        found = self._trials.adopt(self._executor.attempts())
        facts = self._attempts.adopt(found, now_ms)
        for job_id in self._view.running:
            live = self._attempts.get(job_id)
            if live is not None:
                self._limit(live)
        return facts

    def _facts(self, now_ms: Millis) -> list[Event]:
        facts, self._first = self._first or [], None
        for ticket in self._inbox.take():
            self._request(ticket, now_ms, facts)
        for sighting in self._executor.sightings():
            facts += self._sighted(sighting, now_ms)
        self._look(now_ms)
        facts += self._blame.verdicts(facts, now_ms)
        return facts

    def _request(self, ticket: Ticket, now_ms: Millis, facts: list[Event]) -> None:
        match ticket.request:
            case Submit() as request:
                self._answers.append((ticket, self._submit(request, now_ms, facts)))
            case Cancel(job_id, members, by):
                answer = self._cancel(members or (job_id,), by, now_ms, facts)
                self._answers.append((ticket, answer))
            case Join(nodes, is_tested):
                self._join(nodes, is_tested, now_ms, facts)
                self._answers.append((ticket, Answer()))
            case Observe() as request:
                made = turns(request, self._view, self._attempts, now_ms, facts)
                facts += made
                if made:
                    self._answers.append((ticket, Answer()))
                else:
                    # Nothing is to be written, so nothing is to be waited for.
                    ticket.tell(Answer())
            case Together(requests):
                self._answers.append((ticket, self._for_nodes(requests, now_ms, facts)))
            case one:
                self._answers.append((ticket, self._for_nodes((one,), now_ms, facts)))

    def _submit(self, request: Submit, now_ms: Millis, facts: list[Event]) -> Answer:
        key, number = request.key, self._book.next_number
        before = None if key is None else self._book.keys.find(key)
        if isinstance(before, Reason):
            return Answer(refused=before)
        if before is not None:
            return Answer(names_of(request.submissions, before), again=True)
        made: list[JobId] = []
        for submission in request.submissions:
            jobs = admitted(submission, self._book.next_number, now_ms)
            self._book.admit(jobs)
            for one in jobs:
                facts.append(JobSubmitted(now_ms, one.job, one.run_spec, None if made else key))
                made.append(one.job.id)
        if key is not None:
            self._book.keys.note(key, number)
        return Answer(tuple(made))

    def _join(
        self, nodes: Sequence[Node], is_tested: bool, now_ms: Millis, facts: list[Event]
    ) -> None:
        joined = [fact.node.id for fact in facts if type(fact) is NodeJoined]
        for node in nodes:
            if node.id not in self._view.nodes and node.id not in joined:
                self._attempts.devices.join(node.id, node.gpus)
                facts += self._trials.join(node, now_ms, is_tested=is_tested)

    def _cancel(
        self, job_ids: Sequence[JobId], by: str, now_ms: Millis, facts: list[Event]
    ) -> Answer:
        gone = {fact.job_id for fact in facts if type(fact) is JobCancelled}
        fresh = {fact.job.id for fact in facts if type(fact) is JobSubmitted}
        taken: list[JobId] = []
        for job_id in job_ids:
            live = self._attempts.get(job_id)
            if live is not None and live.launched:
                live.by = live.by or by
                self._attempts.stop(live, "cancelled")
            elif live is not None:
                facts += self._attempts.withdraw(live, by, now_ms)
            elif job_id not in gone and (job_id in fresh or job_id in self._view.pending):
                self._book.close(job_id)
                facts.append(JobCancelled(now_ms, job_id, by or UNSET))
            else:
                continue
            taken.append(job_id)
        if not taken:
            return Answer(refused=Reason("job-not-active", {"name": job_ids[0]}))
        return Answer(tuple(taken))

    def _for_nodes(
        self, requests: Sequence[Mark | Examine | Accept], now_ms: Millis, facts: list[Event]
    ) -> Answer:
        """Do what is asked of each node; nothing is done where one of them cannot be."""
        unknown = tuple(NodeRef(one.node) for one in requests if one.node not in self._view.nodes)
        if unknown:
            return Answer(refused=Reason("no-such-node", {"nodes": unknown}))
        for one in requests:
            if (reason := self._why_not(one)) is not None:
                return Answer(refused=reason)
        for one in requests:
            if isinstance(one, Mark):
                self._mark(one.node, one.state, one.cause, now_ms, facts)
            elif isinstance(one, Examine):
                self._trials.test(one.node, now_ms, facts)
            else:
                self._trials.accept(one.node, one.by, now_ms, facts)
        return Answer()

    def _why_not(self, one: Mark | Examine | Accept) -> Reason | None:
        if isinstance(one, Examine):
            return self._trials.untestable(one.node)
        if isinstance(one, Accept):
            return self._trials.unacceptable(one.node)
        return self._trials.hindrance(one.node) if one.state == "up" else None

    def _mark(
        self, node: NodeId, state: str, cause: str, now_ms: Millis, facts: list[Event]
    ) -> None:
        made: dict[str, Event] = {
            "cordoned": NodeCordoned(
                now_ms, node, Reason(BY_HAND, {"note": Text(cause)}) if cause else UNSET
            ),
            "down": NodeLost(now_ms, node, cause),
            "up": NodeReturned(now_ms, node),
        }
        if self._view.states[node] != state:
            facts.append(made[state])
            if state == "down":
                self._attempts.leave(node)

    def _sighted(self, sighting: Sighting, now_ms: Millis) -> list[Event]:
        if trial_of(sighting) is not None:
            return self._trials.sighted(sighting, now_ms)
        match sighting:
            case AttemptStarted():
                facts = self._attempts.started(sighting, now_ms)
                live = self._attempts.get(sighting.job_id)
                if facts and live is not None:
                    self._limit(live)
                return facts
            case AttemptEnded():
                return self._attempts.ended(sighting, now_ms)
            case AttemptLost():
                return self._attempts.lost(sighting, now_ms)
            case OrderRefused():
                return self._attempts.refused(sighting, now_ms)
            case NodeSeenLost(_, node):
                known = self._view.states.get(node, "down") != "down"
                return [NodeLost(now_ms, node, "executor")] if known else []
            case NodeSeenBack(_, node):
                known = self._view.states.get(node) == "down"
                return self._trials.back(node, now_ms) if known else []
            case _:
                return []

    def _launch(self, live: Live, now_ms: Millis) -> None:
        wait_ms = back_off_ms(self._view.trouble.crashes.get(live.job.id))
        if wait_ms:
            self._push(now_ms + wait_ms, live)
        else:
            self._attempts.launch(live)

    def _stop(self, action: StopJob, now_ms: Millis, outcomes: list[Event]) -> None:
        live = self._attempts.get(action.job_id)
        if live is None:
            outcomes.append(ActionRefused(now_ms, action, _not_running(action.job_id, "stop")))
        else:
            self._attempts.stop(live, action.cause)

    def _resize(self, action: ResizeJob, now_ms: Millis, outcomes: list[Event]) -> None:
        live = self._attempts.get(action.job_id)
        if live is None or live.why is not None:
            outcomes.append(ActionRefused(now_ms, action, _not_running(action.job_id, "resize")))
        else:
            self._attempts.resize(live, action.slots)

    def _limit(self, live: Live) -> None:
        if live.job.limit_ms is not None and live.started_ms is not None:
            self._push(live.started_ms + live.job.limit_ms, live)

    def _push(self, at_ms: int, live: Live) -> None:
        heappush(self._due, (at_ms, live.attempt, live.job.id))

    def _look(self, now_ms: Millis) -> None:
        """Launch what was put off, and stop what has run for too long."""
        while self._due and self._due[0][0] <= now_ms:
            _, attempt, job_id = heappop(self._due)
            live = self._attempts.get(job_id)
            if live is None or live.attempt != attempt:
                continue
            if not live.launched:
                self._attempts.launch(live)
            elif live.started_ms is not None and live.why is None:
                self._attempts.stop(live, "timeout")


def _not_running(job_id: JobId, what: str) -> Reason:
    return Reason("job-not-running", {"job": JobRef(job_id), "order": what})
