"""Run a policy on a small fleet in virtual time, and check every invariant of the fleet."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from tenfold.engine.loop import Decider, run
from tenfold.fleet.check import check
from tenfold.fleet.fleet import Fleet
from tenfold.model.decision import Decision
from tenfold.model.events import (
    Event,
    JobEnded,
    JobRefused,
    JobStarted,
    JobStopped,
    NodeJoined,
)
from tenfold.model.fault import Fault
from tenfold.model.fleet.node import Node
from tenfold.model.ids import NodeId
from tenfold.model.job.job import Job
from tenfold.model.units import DAY, SECOND, Millis
from tenfold.sim.settings import SimSettings
from tenfold.sim.world import SimWorld


class PolicyRun(Struct, frozen=True):
    """What happened in a run: every event, and the fleet at its end."""

    events: tuple[Event, ...]
    fleet: Fleet

    def starts_s(self, job: Job) -> list[float]:
        """Return each time at which a job started."""
        return self._times_s(JobStarted, job)

    def stops_s(self, job: Job) -> list[float]:
        """Return each time at which a job was stopped before it completed."""
        return self._times_s(JobStopped, job)

    def end_s(self, job: Job) -> float | None:
        """Return when a job completed; None if it never did."""
        return next(iter(self._times_s(JobEnded, job)), None)

    def is_refused(self, job: Job) -> bool:
        """Return whether the policy refused a job as one that the fleet can never run."""
        return bool(self._times_s(JobRefused, job))

    def _times_s(
        self, kind: type[JobStarted | JobStopped | JobEnded | JobRefused], job: Job
    ) -> list[float]:
        return [
            event.at_ms / SECOND
            for event in self.events
            if isinstance(event, kind) and event.job_id == job.id
        ]


def outage(node: str, at_s: float, until_s: float) -> Fault:
    """Return a failure of one node."""
    return Fault(Millis(round(at_s * SECOND)), NodeId(node), Millis(round(until_s * SECOND)))


def run_policy(
    policy: Decider,
    nodes: Sequence[Node],
    jobs: Iterable[Job],
    *,
    outages: Sequence[Fault] = (),
    settings: SimSettings | None = None,
    until_s: float = 30 * DAY / SECOND,
) -> PolicyRun:
    """Run jobs, each with a duration, until all are done, nothing more can happen, or `until_s`.

    Raises `AssertionError` where an order of the policy breaks an invariant: too many GPUs
    allocated, a job in two states, an incomplete gang.
    """
    fleet, journal = Fleet(), _Events()
    world = SimWorld(
        list(jobs),
        settings=settings,
        initial_events=[NodeJoined(Millis(0), node) for node in nodes],
        outages=outages,
    )
    world.last_ms = round(until_s * SECOND)
    run(world, fleet, [policy], journal=journal, witnesses=[_Checked()])
    return PolicyRun(tuple(journal.events), fleet)


class _Events:
    """A journal in memory."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def append(self, events: Sequence[Event]) -> None:
        self.events.extend(events)


class _Checked:
    """A witness that checks the fleet after every cycle."""

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        check(fleet)
