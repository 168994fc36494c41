"""What the journal and the witnesses say after a soak, held against each other.

Nothing here is asked of the controller: the journal is read as a file, and the witnesses wrote
theirs without knowing of it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct, field

from benchmarks.chaos.people import People
from benchmarks.chaos.victims import Victims
from benchmarks.chaos.witness import Told
from tenfold.fleet.check import check
from tenfold.fleet.fleet import Fleet
from tenfold.journal import read
from tenfold.journal.integrity.head_file import SUFFIX
from tenfold.journal.rows import AttemptRow, JobRow
from tenfold.journal.store import open_store
from tenfold.journal.verify import verify
from tenfold.model.api.jobs import PAGE_MAX
from tenfold.model.events import Event, JobCancelled, JobEnded, JobRefused, JobSubmitted

LOST = ("node-lost", "supervisor-lost", "supervisor-told")
"""How the journal says that nobody saw an attempt end."""


class History(Struct, kw_only=True):
    """What the journal holds."""

    events: list[Event]
    jobs: dict[str, JobRow]
    attempts: dict[str, tuple[AttemptRow, ...]]
    damage: list[str] = field(default_factory=list[str])
    """What `journal verify` says: a kill must not look like damage."""


class Ruling(Struct, kw_only=True):
    """Numbers, and whatever should not be."""

    submitted: int = 0
    """Jobs in the journal; some were taken and their answers lost."""
    states: dict[str, int] = field(default_factory=dict[str, int])
    attempts: int = 0
    runs: int = 0
    """Processes that began."""
    adopted: int = 0
    """Processes that lived through a death of the controller, and whose end it learnt."""
    repeated: int = 0
    """Jobs with more than one attempt."""
    faults: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def hold(self, law: str, broken: Iterable[str]) -> None:
        """Note a law, and by whom it is broken."""
        self.faults.setdefault(law, []).extend(broken)


def history(journal: Path | str) -> History:
    """Read a journal whole."""
    store = open_store(str(journal))
    try:
        events = [event for _, event in read.events_after(store)]
        jobs: dict[str, JobRow] = {}
        before: int | None = None
        while page := read.jobs(store, before=before, limit=PAGE_MAX):
            jobs |= {row.id: row for row in page}
            before = page[-1].seq
        attempts: dict[str, tuple[AttemptRow, ...]] = {}
        names = list(jobs)
        for at in range(0, len(names), 500):
            attempts |= read.attempts_of(store, names[at : at + 500])
        head = None if store.file is None else store.file.with_suffix(SUFFIX)
        damage = [one.message for one in verify(store, head).findings]
    finally:
        store.close()
    return History(events=events, jobs=jobs, attempts=attempts, damage=damage)


def judge(past: History, told: Told, people: People, victims: Victims) -> Ruling:
    """Hold every law against what was written down."""
    ruling = Ruling(
        submitted=len(past.jobs),
        states=dict(Counter(row.state for row in past.jobs.values())),
        attempts=sum(len(rows) for rows in past.attempts.values()),
        runs=len(told.runs),
        repeated=sum(len(rows) > 1 for rows in past.attempts.values()),
    )
    _ends(ruling, past, people)
    _runs(ruling, past, told)
    _blame(ruling, past, told, victims, people)
    ruling.hold("wrong answer", people.wrong)
    ruling.hold("called damaged", past.damage)
    return ruling


def _ends(ruling: Ruling, past: History, people: People) -> None:
    ends = Counter[str]()
    submitted = Counter[str]()
    for event in past.events:
        if isinstance(event, JobEnded | JobCancelled | JobRefused):
            ends[event.job_id] += 1
        elif isinstance(event, JobSubmitted):
            submitted[event.job.id] += 1
    ruling.hold("acknowledged and lost", (name for name in people.told if not submitted[name]))
    ruling.hold("admitted twice", (name for name, count in submitted.items() if count > 1))
    ruling.hold("not one end", (f"{name}: {ends[name]}" for name in submitted if ends[name] != 1))
    ruling.hold("refused", (event.job_id for event in past.events if isinstance(event, JobRefused)))
    fleet = Fleet()
    fleet.apply_all(past.events)
    check(fleet)
    left = [*fleet.pending, *fleet.orders, *fleet.running]
    ruling.hold("left in the fleet", (str(name) for name in left))


def _runs(ruling: Ruling, past: History, told: Told) -> None:
    ordered = {(row.job_id, row.number) for rows in past.attempts.values() for row in rows}
    ruling.hold("two runs at once", told.twice)
    ruling.hold("an attempt begun twice", told.again)
    ruling.hold(
        "run without an order",
        (f"{run.job} {run.attempt}" for run in told.runs if (run.job, run.attempt) not in ordered),
    )
    ended = {(run.job, run.attempt) for run in told.runs if run.ended is not None}
    for job_id, row in past.jobs.items():
        if row.state == "succeeded" and (job_id, row.attempts) not in ended:
            ruling.hold("succeeded without a run to its end", [job_id])


def _blame(ruling: Ruling, past: History, told: Told, victims: Victims, people: People) -> None:
    """Only those whose own processes were killed may lose anything."""
    begun = {(run.job, run.attempt) for run in told.runs}
    lost = {(row.job_id, row.number) for row in _attempts(past) if row.reason in LOST}
    ruling.hold(
        "lost, and its supervisor was not killed",
        (f"{job} {number}" for job, number in sorted((lost & begun) - victims.supervisors)),
    )
    hurt = {job for job, _ in victims.members}
    ruling.hold(
        "failed, and nobody touched it",
        (
            job_id
            for job_id, row in past.jobs.items()
            if row.state == "failed" and row.name != "fail" and job_id not in hurt
        ),
    )
    ruling.hold(
        "cancelled unasked",
        (
            job_id
            for job_id, row in past.jobs.items()
            if row.state == "cancelled" and job_id not in people.asked
        ),
    )
    ruling.hold(
        "a cancellation that was acknowledged and forgotten",
        (
            job_id
            for job_id in sorted(people.cancelled)
            if past.jobs[job_id].name == "stubborn" and past.jobs[job_id].state == "succeeded"
        ),
    )
    whole = {(row.job_id, row.number) for row in _attempts(past) if row.ended_ms is not None}
    adopted = told.adopted()
    ruling.adopted = sum((run.job, run.attempt) in whole - lost for run in adopted)
    ruling.hold(
        "lived through a kill and was taken for lost",
        (
            f"{run.job} {run.attempt}"
            for run in adopted
            if (run.job, run.attempt) in lost - victims.supervisors
        ),
    )


def _attempts(past: History) -> Iterator[AttemptRow]:
    for rows in past.attempts.values():
        yield from rows
