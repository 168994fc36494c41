"""What would have differed: the same work in two runs, job by job and in sum."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from msgspec import Struct

from tenfold.model.actions import ResizeJob, StartJob
from tenfold.model.events import (
    ActionOrdered,
    Event,
    JobEnded,
    JobRefused,
    JobResized,
    JobStarted,
    JobStopped,
    JobSubmitted,
)
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import WHOLE, Job, Slot
from tenfold.model.units import SECOND, Millis

TOP = 20


class Figures(Struct, frozen=True, kw_only=True):
    """The figures of one run, by the definitions of `tenfold sim run`."""

    jobs: int
    finished: int
    refused: int
    avg_jct_s: float
    avg_wait_s: float
    makespan_s: float
    gpu_utilization: float
    preemptions: int
    failures: int


class Shift(Struct, frozen=True, kw_only=True):
    """Jobs whose first start moved one way: how many, and how far."""

    jobs: int
    mean_s: float
    most_s: float


class JobDiff(Struct, frozen=True, kw_only=True):
    """One job in both runs; waits are those before the first start."""

    job: JobId
    team: str
    wait_s: float
    wait_again_s: float
    start_moved_s: float
    end_moved_s: float | None
    same_nodes: bool
    preemptions: int
    preemptions_again: int


class ReplayDiff(Struct, frozen=True, kw_only=True):
    """All that differs between a recorded run and the same work under another policy."""

    recorded: Figures
    again: Figures
    earlier: Shift
    later: Shift
    alike: int
    """Jobs that start at the same moment on the same nodes, or in neither run."""
    same_start_other_nodes: int
    """Jobs that start at the same moment on other nodes."""
    other_nodes: int
    """Jobs that start on other nodes, whenever that is."""
    only_recorded: int
    """Jobs that start only in the record."""
    only_again: int
    preemptions_added: int
    preemptions_avoided: int
    jobs: tuple[JobDiff, ...]
    """Those whose start moved most."""


class JobRun:
    """What a run did with one job."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.first_ms: Millis | None = None
        self.first_nodes: tuple[NodeId, ...] = ()
        self.ended_ms: Millis | None = None
        self.preemptions = 0
        self.failures = 0
        self.refused = False
        self.held_ms = 0
        self.milli_ms = 0
        self._slots: tuple[Slot, ...] = ()
        self._next_slots: tuple[Slot, ...] = ()
        self._started_ms: Millis | None = None

    def order(self, action: StartJob | ResizeJob) -> None:
        """Note where it will run."""
        if isinstance(action, StartJob):
            self._slots = action.slots
        else:
            self._next_slots = action.slots

    def resize(self, at_ms: Millis) -> None:
        """Note that it goes on with the slots of its last resize."""
        if self.leave(at_ms):
            self._slots, self._started_ms = self._next_slots, at_ms

    def start(self, at_ms: Millis) -> None:
        """Note that it runs."""
        self._started_ms = at_ms
        if self.first_ms is None:
            self.first_ms = at_ms
            self.first_nodes = tuple(slot.node for slot in self._slots)

    def leave(self, at_ms: Millis) -> bool:
        """Note that it gave back its slots; False where it had not begun to run."""
        if self._started_ms is None:
            return False
        ran_ms = at_ms - self._started_ms
        self.held_ms += ran_ms
        self.milli_ms += ran_ms * sum(slot.milli or slot.gpus * WHOLE for slot in self._slots)
        self._started_ms = None
        return True


def runs_of(events: Iterable[Event]) -> dict[JobId, JobRun]:
    """Return what a run did with each of its jobs, in order of submission."""
    runs: dict[JobId, JobRun] = {}
    for event in events:
        if isinstance(event, JobSubmitted):
            runs[event.job.id] = JobRun(event.job)
        elif isinstance(event, ActionOrdered):
            if isinstance(event.action, StartJob | ResizeJob):
                runs[event.action.job_id].order(event.action)
        elif isinstance(event, JobStarted | JobResized | JobStopped | JobEnded | JobRefused):
            _apply_event(runs[event.job_id], event)
    return runs


def _apply_event(
    run: JobRun, event: JobStarted | JobResized | JobStopped | JobEnded | JobRefused
) -> None:
    """Note what a fact says about a job."""
    if isinstance(event, JobStarted):
        run.start(event.at_ms)
    elif isinstance(event, JobResized):
        run.resize(event.at_ms)
    elif isinstance(event, JobStopped):
        if run.leave(event.at_ms):
            run.preemptions += event.cause in ("preempted", "moved")
            run.failures += event.cause == "node-lost"
    elif isinstance(event, JobEnded):
        run.leave(event.at_ms)
        run.ended_ms = event.at_ms
    else:
        run.refused = True


def figures_of(runs: Mapping[JobId, JobRun], gpus: int) -> Figures:
    """Return the sums of a run on so many GPUs."""
    jcts: list[int] = []
    waits: list[int] = []
    last_ms = 0
    for run in runs.values():
        if run.ended_ms is not None:
            jcts.append(run.ended_ms - run.job.submitted_ms)
            waits.append(jcts[-1] - run.held_ms)
            last_ms = max(last_ms, run.ended_ms)
    first_ms = min((run.job.submitted_ms for run in runs.values()), default=0)
    makespan_ms = max(0, last_ms - first_ms)
    capacity = gpus * WHOLE * makespan_ms
    return Figures(
        jobs=len(runs),
        finished=len(jcts),
        refused=sum(run.refused for run in runs.values()),
        avg_jct_s=_mean(jcts) / SECOND,
        avg_wait_s=_mean(waits) / SECOND,
        makespan_s=makespan_ms / SECOND,
        gpu_utilization=sum(run.milli_ms for run in runs.values()) / capacity if capacity else 0.0,
        preemptions=sum(run.preemptions for run in runs.values()),
        failures=sum(run.failures for run in runs.values()),
    )


def replay_diff(
    recorded: Iterable[Event], again: Iterable[Event], gpus: int, slack_ms: int = 0
) -> ReplayDiff:
    """Compare two runs of the same jobs; those that only one of them knows are left out.

    A start that moves by less than the slack counts as one that does not: real ones vary.
    """
    before, after = runs_of(recorded), runs_of(again)
    before = {job_id: run for job_id, run in before.items() if job_id in after}
    after = {job_id: after[job_id] for job_id in before}
    pairs = [(run, after[job_id]) for job_id, run in before.items()]
    diffs = [
        diff
        for before_run, after_run in pairs
        if (diff := _job_diff(before_run, after_run, slack_ms))
    ]
    moved = [diff.start_moved_s for diff in diffs]
    preempted = [after_run.preemptions - before_run.preemptions for before_run, after_run in pairs]
    most_moved = sorted(
        (diff_row for diff_row in diffs if diff_row.start_moved_s),
        key=lambda diff_row: -abs(diff_row.start_moved_s),
    )
    return ReplayDiff(
        recorded=figures_of(before, gpus),
        again=figures_of(after, gpus),
        earlier=_shift([-by for by in moved if by < 0]),
        later=_shift([by for by in moved if by > 0]),
        alike=sum(diff.start_moved_s == 0 and diff.same_nodes for diff in diffs)
        + sum(
            not _started(before_run) and not _started(after_run) for before_run, after_run in pairs
        ),
        same_start_other_nodes=sum(
            diff.start_moved_s == 0 and not diff.same_nodes for diff in diffs
        ),
        other_nodes=sum(not diff.same_nodes for diff in diffs),
        only_recorded=sum(
            _started(before_run) and not _started(after_run) for before_run, after_run in pairs
        ),
        only_again=sum(
            _started(after_run) and not _started(before_run) for before_run, after_run in pairs
        ),
        preemptions_added=sum(by for by in preempted if by > 0),
        preemptions_avoided=-sum(by for by in preempted if by < 0),
        jobs=tuple(most_moved[:TOP]),
    )


def _job_diff(before_run: JobRun, after_run: JobRun, slack_ms: int) -> JobDiff | None:
    if before_run.first_ms is None or after_run.first_ms is None:
        return None
    submitted_ms = before_run.job.submitted_ms
    moved_ms = after_run.first_ms - before_run.first_ms
    ended = None
    if before_run.ended_ms is not None and after_run.ended_ms is not None:
        ended = (after_run.ended_ms - before_run.ended_ms) / SECOND
    return JobDiff(
        job=before_run.job.id,
        team=str(before_run.job.team),
        wait_s=(before_run.first_ms - submitted_ms) / SECOND,
        wait_again_s=(after_run.first_ms - submitted_ms) / SECOND,
        start_moved_s=moved_ms / SECOND if abs(moved_ms) >= slack_ms else 0.0,
        end_moved_s=ended,
        same_nodes=sorted(before_run.first_nodes) == sorted(after_run.first_nodes),
        preemptions=before_run.preemptions,
        preemptions_again=after_run.preemptions,
    )


def _started(run: JobRun) -> bool:
    return run.first_ms is not None


def _shift(by_s: Sequence[float]) -> Shift:
    return Shift(jobs=len(by_s), mean_s=_mean(by_s), most_s=max(by_s, default=0.0))


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0
