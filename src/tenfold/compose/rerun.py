"""Run what a bundle records again under another policy: same jobs, same work, same faults.

What a job takes is its duration where the record knows it, and otherwise what it was seen
to take. What the record cannot know (faults after its end, jobs that never ran) is said.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from tenfold.compose.replaying import fleet_in, nodes_in, settings_of
from tenfold.compose.residency import bound_jobs
from tenfold.compose.simulation import SimAsk, simulate
from tenfold.engine.recording import Recording, events_of
from tenfold.files.replay_bundle import Bundle
from tenfold.model.events import (
    Event,
    JobCancelled,
    JobEnded,
    JobStarted,
    JobStopped,
    JobSubmitted,
    NodeCordoned,
    NodeJoined,
    NodeLost,
    NodeReturned,
)
from tenfold.model.fault import Fault
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job import Job, JobStatus
from tenfold.model.policy import Policy
from tenfold.model.units import Millis


class Rerun(Struct, frozen=True, kw_only=True):
    """Two runs of the same work: as it was recorded, and under another policy."""

    recorded: list[Event]
    again: list[Event]
    gpus: int
    notes: tuple[str, ...]


def rerun(bundle: Bundle, policy: Policy) -> Rerun:
    """Simulate what a bundle records under another policy."""
    fleet_in(bundle)
    recorded = list(events_of(bundle.lines))
    ask, notes = ask_of(bundle, recorded, policy)
    journal = Recording()
    simulate(ask, journal=journal)
    again = list(events_of(journal.lines))
    last_ms = _last_ms(recorded)
    if again and ask.faults and again[-1].at_ms > last_ms:
        notes.append("the run goes on after the end of the record, from where no fault is known")
    return Rerun(recorded=recorded, again=again, gpus=ask.gpus, notes=tuple(notes))


def ask_of(bundle: Bundle, events: Sequence[Event], policy: Policy) -> tuple[SimAsk, list[str]]:
    """Return the question that runs a record again, and what had to be supposed."""
    settings = settings_of(bundle)
    work = _Work(settings.restart_cost_ms)
    for event in events:
        work.hear(event)
    jobs, notes = work.jobs(_last_ms(events), known=not bundle.header.contention)
    faults, away = _faults(events)
    if away:
        notes.append(f"{away:,} nodes were still away where the record ends: back from then on")
    notes += _unlike(events)
    ask = SimAsk(
        nodes=nodes_in(bundle),
        jobs=bound_jobs(jobs, policy),
        policy=policy,
        settings=settings,
        faults=faults,
        release_ms=work.release_ms,
        ends=work.ends,
    )
    return ask, notes


class _Work:
    """What each job was seen to take."""

    def __init__(self, restart_cost_ms: int) -> None:
        self._restart_cost_ms = restart_cost_ms
        self._submitted: dict[JobId, Job] = {}
        self._started: dict[JobId, Millis] = {}
        self._saved: dict[JobId, Millis] = {}
        self._took: dict[JobId, int] = {}
        self._cancelled: dict[JobId, None] = {}
        self.release_ms: dict[JobId, Millis] = {}
        """When jobs came that had been held back."""
        self.ends: dict[JobId, JobStatus] = {}
        """How jobs ended that did not complete."""

    def hear(self, event: Event) -> None:
        """Follow the jobs through one more fact."""
        if isinstance(event, JobSubmitted):
            self._submitted[event.job.id] = event.job
            if event.at_ms > event.job.submitted_ms:
                self.release_ms[event.job.id] = event.at_ms
        elif isinstance(event, JobStarted):
            self._started[event.job_id] = event.at_ms
        elif isinstance(event, JobStopped):
            self._started.pop(event.job_id, None)
            self._saved[event.job_id] = event.progress_ms
        elif isinstance(event, JobEnded):
            self._took[event.job_id] = self._so_far(event.job_id, event.at_ms)
            del self._started[event.job_id]
            if event.status != "completed":
                self.ends[event.job_id] = event.status
        elif isinstance(event, JobCancelled):
            self._cancelled[event.job_id] = None

    def jobs(self, last_ms: Millis, *, known: bool) -> tuple[list[Job], list[str]]:
        """Return jobs in order of submission with what they take, and what was supposed."""
        jobs: list[Job] = []
        unknown = cut = 0
        for job_id, job in self._submitted.items():
            took = self._took.get(job_id)
            if job.duration_ms is not None and (known or took is None):
                took = job.duration_ms
            elif took is None and (job_id in self._started or job_id in self._saved):
                took, cut = self._so_far(job_id, last_ms), cut + 1
            if took is None or job_id in self._cancelled:
                unknown += 1
            else:
                jobs.append(replace(job, duration_ms=Millis(took)))
        notes: list[str] = []
        if unknown:
            notes.append(f"{unknown:,} jobs were cancelled or never ran: left out of both runs")
        if cut:
            notes.append(f"{cut:,} jobs were not over where the record ends: taken as over there")
        if not known:
            notes.append(
                "jobs slowed each other in the record: they take here what they took there"
            )
        jobs.sort(key=lambda job: (job.submitted_ms, job.seq))
        return jobs, notes

    def _so_far(self, job_id: JobId, now_ms: Millis) -> int:
        saved = self._saved.get(job_id)
        ran = now_ms - self._started.get(job_id, now_ms)
        if saved is None:
            return ran
        return saved + max(0, ran - self._restart_cost_ms)


def _faults(events: Sequence[Event]) -> tuple[list[Fault], int]:
    """Return when nodes were away, in order, and how many never came back."""
    lost: dict[NodeId, int] = {}
    faults: list[Fault] = []
    last_ms = _last_ms(events)
    for event in events:
        if isinstance(event, NodeLost):
            lost[event.node_id] = len(faults)
            until_ms = Millis(max(last_ms, event.at_ms + 1))
            faults.append(Fault(event.at_ms, event.node_id, until_ms, event.cause))
        elif isinstance(event, NodeReturned) and event.node_id in lost:
            place = lost.pop(event.node_id)
            faults[place] = replace(faults[place], until_ms=event.at_ms)
    return faults, len(lost)


def _unlike(events: Sequence[Event]) -> list[str]:
    """Say what a simulation does not repeat."""
    first_ms = events[0].at_ms if events else Millis(0)
    late = sum(isinstance(event, NodeJoined) and event.at_ms > first_ms for event in events)
    cordoned = sum(isinstance(event, NodeCordoned) for event in events)
    notes: list[str] = []
    if late:
        notes.append(f"{late:,} nodes joined later: taken as there from the start")
    if cordoned:
        notes.append(f"{cordoned:,} cordons are not repeated")
    return notes


def _last_ms(events: Sequence[Event]) -> Millis:
    return events[-1].at_ms if events else Millis(0)
