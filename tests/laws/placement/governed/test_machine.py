"""A governed fleet under any course of events that a search can think of.

Jobs come and end, nodes fail, are drained and return, orders take effect at once, late or
not at all, the clock jumps, and the rules change under running jobs. After every step the
state must be sound, a fresh decider must decide as the warm one, and every law must hold.
"""

from functools import partial
from random import Random

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from msgspec.structs import replace

from tenfold.decide.place.governed import GovernedPlacer
from tenfold.fleet.check import check
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import Action, RefuseJob, ResizeJob, StartJob, StopJob
from tenfold.model.events import (
    ActionOrdered,
    ActionRefused,
    Event,
    JobEnded,
    JobRefused,
    JobResized,
    JobStarted,
    JobStopped,
    JobSubmitted,
    NodeCordoned,
    NodeJoined,
    NodeLost,
    NodeReturned,
)
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Job
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.reason import Reason
from tenfold.model.units import HOUR, MINUTE, SECOND, Millis
from tests.rigs.governed.laws import Governing, index_of
from tests.rigs.governed.worlds import governance
from tests.rigs.laws import Watched
from tests.rigs.ledger import Ledger
from tests.rigs.worlds import drawn_world

ROUNDS_MOST = 12
"""Cycles of one step: stops make room, which is used, and then all is quiet."""
REFUSED = Reason("refused-by-chance", sentence="the world would not have it")
picks = st.integers(0, 1 << 16)


class GovernedFleet(RuleBasedStateMachine):
    """One fleet, one decider, and a world that does what the search tells it to."""

    fleet: Fleet
    decider: Governing
    jobs: list[Job]

    @initialize(seed=picks)
    def begin(self, seed: int) -> None:
        drawn = drawn_world(Random(seed), jobs=(20, 40), faults=(0, 0), governed=True)
        self.now_ms, self.fleet, self.ledger = Millis(0), Fleet(), Ledger()
        self.nodes, self.jobs = drawn.nodes, list(drawn.jobs)
        self.all_jobs = drawn.jobs
        self.govern_by(drawn.govern or GovernanceRules())
        self.happen(*(NodeJoined(self.now_ms, node) for node in drawn.nodes))

    def govern_by(self, govern: GovernanceRules) -> None:
        watched = Watched(lambda: GovernedPlacer(govern), build=partial(index_of, govern))
        self.decider = Governing(watched, govern)
        self.news: list[Event] = []
        self.at_once = True

    def happen(self, *events: Event) -> None:
        """Let facts come, and decide until nothing more is decided."""
        self.record(list(events))
        for _ in range(ROUNDS_MOST):
            news, self.news = self.news, []
            decision = self.decider.decide(self.fleet, self.now_ms, news)
            if not decision.actions:
                return
            self.record([ActionOrdered(self.now_ms, action) for action in decision.actions])
            self.record([one for action in decision.actions for one in self.outcome(action)])
            check(self.fleet)

    def record(self, events: list[Event]) -> None:
        self.ledger.append(events)
        self.fleet.apply_all(events)
        self.news += events

    def outcome(self, action: Action) -> list[Event]:
        """Return what comes of an action at once; the rest comes with later steps."""
        match action:
            case RefuseJob():
                return [JobRefused(self.now_ms, action.job_id, action.reasons)]
            case StartJob() if self.at_once:
                return [JobStarted(self.now_ms, action.job_id)]
            case StopJob() if self.at_once:
                return [self.stopped(action.job_id, action.cause == "idle")]
            case ResizeJob() if self.at_once:
                return [JobResized(self.now_ms, action.job_id)]
            case _:
                return []

    def stopped(self, job_id: JobId, is_idle: bool = False) -> Event:
        if is_idle:
            return JobEnded(self.now_ms, job_id, "cancelled")
        past = self.fleet.past.get(job_id)
        return JobStopped(self.now_ms, job_id, "preempted", past.progress_ms if past else Millis(0))

    @precondition(lambda self: self.jobs)
    @rule(count=st.integers(2, 8))
    def submit(self, count: int) -> None:
        came, self.jobs = self.jobs[:count], self.jobs[count:]
        now = self.now_ms
        self.happen(*(JobSubmitted(now, replace(job, submitted_ms=now)) for job in came))

    @precondition(lambda self: any(not run.stopping for run in self.fleet.running.values()))
    @rule(pick=picks, failed=st.booleans())
    def finish(self, pick: int, failed: bool) -> None:
        runs = [name for name, run in self.fleet.running.items() if not run.stopping]
        job_id = runs[pick % len(runs)]
        self.happen(JobEnded(self.now_ms, job_id, "failed" if failed else "completed"))

    @precondition(lambda self: any(state == "up" for state in self.fleet.states.values()))
    @rule(pick=picks)
    def fail(self, pick: int) -> None:
        node_id, fleet = self.pick_node(pick, "up"), self.fleet
        events: list[Event] = [NodeLost(self.now_ms, node_id)]
        for job_id, one in (*fleet.orders.items(), *fleet.running.items()):
            becoming = getattr(one, "becoming", None)
            if any(slot.node == node_id for slot in one.slots):
                past = fleet.past.get(job_id)
                saved = past.progress_ms if past else Millis(0)
                events.append(JobStopped(self.now_ms, job_id, "node-lost", saved))
            elif any(slot.node == node_id for slot in becoming or ()):
                action = ResizeJob(job_id, becoming, REFUSED)
                events.append(ActionRefused(self.now_ms, action, REFUSED))
        self.happen(*events)

    @precondition(lambda self: any(state == "up" for state in self.fleet.states.values()))
    @rule(pick=picks)
    def drain(self, pick: int) -> None:
        self.happen(NodeCordoned(self.now_ms, self.pick_node(pick, "up")))

    @precondition(lambda self: any(state != "up" for state in self.fleet.states.values()))
    @rule(pick=picks)
    def bring_back(self, pick: int) -> None:
        self.happen(NodeReturned(self.now_ms, self.pick_node(pick, "down", "cordoned")))

    def pick_node(self, pick: int, *states: str) -> NodeId:
        names = [name for name, state in self.fleet.states.items() if state in states]
        return names[pick % len(names)]

    @precondition(lambda self: self.under_way())
    @rule(pick=picks, well=st.booleans())
    def come_to_pass(self, pick: int, well: bool) -> None:
        """Let one order that is under way take effect, or be refused."""
        kind, job_id = self.under_way()[pick % len(self.under_way())]
        fleet, now = self.fleet, self.now_ms
        if kind == "start":
            refused = ActionRefused(now, StartJob(job_id, fleet.orders[job_id].slots), REFUSED)
            self.happen(JobStarted(now, job_id) if well else refused)
        elif kind == "stop":
            self.happen(self.stopped(job_id))
        else:
            becoming = fleet.running[job_id].becoming or ()
            refused = ActionRefused(now, ResizeJob(job_id, becoming, REFUSED), REFUSED)
            self.happen(JobResized(now, job_id) if well else refused)

    def under_way(self) -> list[tuple[str, JobId]]:
        runs = self.fleet.running.items()
        found = [("start", job_id) for job_id in self.fleet.orders]
        found += [("stop", job_id) for job_id, run in runs if run.stopping]
        return found + [("resize", job_id) for job_id, run in runs if run.becoming]

    @rule(at_once=st.booleans())
    def take_effect(self, at_once: bool) -> None:
        """From now on orders take effect at once, or when told to."""
        self.at_once = at_once

    @rule(seed=picks)
    def change_quotas(self, seed: int) -> None:
        self.govern_by(governance(Random(seed), self.nodes, self.all_jobs))
        self.happen()

    @rule(step_ms=st.sampled_from((1, SECOND, MINUTE, 10 * MINUTE, HOUR, 7 * HOUR)))
    def pass_time(self, step_ms: int) -> None:
        self.now_ms = Millis(self.now_ms + step_ms)
        self.happen()

    @invariant()
    def the_state_is_sound(self) -> None:
        if hasattr(self, "fleet"):
            check(self.fleet)


GovernedFleet.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestGovernedFleet = GovernedFleet.TestCase
