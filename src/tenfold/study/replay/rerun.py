"""Rerun a recorded run under another policy: same jobs, durations and faults.

A job runs for its duration if the record has it, and otherwise for as long as it was seen to
run. What the record cannot know (faults after its end, jobs that never ran) becomes a note.
"""

from collections.abc import Sequence

from msgspec import UNSET, Struct
from msgspec.structs import replace

from tenfold.compose.simulation import SimRequest, simulate
from tenfold.engine.decision_log import is_observed
from tenfold.engine.recording import Recording, events_of
from tenfold.files.records.replay_bundle import Bundle
from tenfold.model.events import (
    Event,
    JobCancelled,
    JobChanged,
    JobEnded,
    JobReleased,
    JobStarted,
    JobStopped,
    JobSubmitted,
    job_of,
)
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, JobStatus
from tenfold.model.policy.policy import Policy
from tenfold.model.units import SECOND, Millis
from tenfold.report.figures import count
from tenfold.study.replay.bundle import fleet_in, nodes_in, settings_of
from tenfold.study.replay.rerun_inputs import (
    drains_in,
    events_before,
    faults_in,
    last_ms_of,
    never_used,
    not_repeated_notes,
)

LIVE_SLACK_MS = SECOND
"""An assumption: delay that process start, machine load and commits may add to a start."""


class Rerun(Struct, frozen=True, kw_only=True):
    """Two runs of the same jobs: as recorded, and under another policy."""

    recorded: list[Event]
    again: list[Event]
    gpus: int
    notes: tuple[str, ...]
    slack_ms: int = 0
    """Start changes below this are ignored: live start times vary."""


def rerun(bundle: Bundle, policy: Policy) -> Rerun:
    """Simulate the jobs of a bundle under another policy."""
    fleet = fleet_in(bundle)
    recorded = list(events_of(bundle.lines))
    if (base := bundle.base()) is not None:
        recorded = [*events_before(base, recorded[0].at_ms if recorded else Millis(0)), *recorded]
    pending = tuple(fleet.pending) if is_observed(bundle.lines) else ()
    request, notes = request_of(bundle, recorded, policy, pending)
    journal = Recording()
    simulate(request, journal=journal)
    again = list(events_of(journal.lines))
    last_ms = last_ms_of(recorded)
    if base is not None and (held := {**base.orders, **base.running}):
        notes.append(
            f"{_were(len(held), 'job')} running when the record began: simulated, not listed"
        )
        recorded = [event for event in recorded if job_of(event) not in held]
    if again and request.faults and again[-1].at_ms > last_ms:
        notes.append("the rerun continues past the end of the record, where no faults are known")
    slack_ms = 0
    if bundle.header.stretches is not UNSET:
        slack_ms = LIVE_SLACK_MS
        notes.append("live start times vary: changes of less than a second count as unchanged")
    return Rerun(
        recorded=recorded, again=again, gpus=request.gpus, notes=tuple(notes), slack_ms=slack_ms
    )


def request_of(
    bundle: Bundle, events: Sequence[Event], policy: Policy, pending: Sequence[JobId] = ()
) -> tuple[SimRequest, list[str]]:
    """Return the request that reruns a record, and notes on assumptions.

    Jobs that are still `pending` at the end take part in the queue, with an assumed run time.
    """
    settings = settings_of(bundle)
    observed = _ObservedJobs(settings.restart_cost_ms)
    for event in events:
        observed.observe(event)
    jobs, notes = observed.jobs(last_ms_of(events), pending, known=not bundle.header.contention)
    faults, still_down = faults_in(events)
    is_foreign = is_observed(bundle.lines)
    if is_foreign:
        faults = sorted([*faults, *drains_in(events)], key=lambda fault: fault.at_ms)
    if still_down:
        notes.append(
            f"{_were(still_down, 'node')} still down when the record ended: assumed up after that"
        )
    notes += not_repeated_notes(events, drains=is_foreign)
    unused = never_used(events)
    if unused:
        notes.append(f"{_were(len(unused), 'node')} cordoned and never used: skipped")
    request = SimRequest(
        nodes=[node for node in nodes_in(bundle) if node.id not in unused],
        jobs=jobs,
        policy=policy,
        settings=settings,
        faults=faults,
        release_ms=observed.release_ms,
        ends=observed.ends,
    )
    return request, notes


def _were(number: int, noun: str) -> str:
    return f"{count(number, noun)} {'was' if number == 1 else 'were'}"


class _ObservedJobs:
    """Run times and ends of jobs, observed in the record."""

    def __init__(self, restart_cost_ms: int) -> None:
        self._restart_cost_ms = restart_cost_ms
        self._submitted: dict[JobId, Job] = {}
        self._started: dict[JobId, Millis] = {}
        self._saved: dict[JobId, Millis] = {}
        self._ran_ms: dict[JobId, int] = {}
        self._cancelled: dict[JobId, None] = {}
        self._broken = 0
        """Runs that crashed or failed to start, without a node failure."""
        self.release_ms: dict[JobId, Millis] = {}
        """Release time of jobs that were delayed."""
        self.ends: dict[JobId, JobStatus] = {}
        """How jobs ended that did not complete."""

    def observe(self, event: Event) -> None:
        """Follow the jobs through one more fact."""
        if isinstance(event, JobSubmitted):
            self._submitted[event.job.id] = event.job
            if event.at_ms > event.job.submitted_ms:
                self.release_ms[event.job.id] = event.at_ms
        elif isinstance(event, JobChanged):
            self._submitted[event.job.id] = event.job
        elif isinstance(event, JobReleased):
            self._release(event)
        elif isinstance(event, JobStarted):
            self._started[event.job_id] = event.at_ms
        elif isinstance(event, JobStopped):
            self._started.pop(event.job_id, None)
            self._saved[event.job_id] = event.progress_ms
            self._broken += event.cause in ("crashed", "start-failed")
        elif isinstance(event, JobEnded):
            self._ran_ms[event.job_id] = self._progress_ms(event.job_id, event.at_ms)
            self._started.pop(event.job_id, None)
            if event.status != "completed":
                self.ends[event.job_id] = event.status
        elif isinstance(event, JobCancelled):
            self._cancelled[event.job_id] = None

    def _release(self, event: JobReleased) -> None:
        """Keep a job out of the rerun until it was eligible, before its first run."""
        if event.job_id not in self._started and event.job_id not in self._saved:
            self.release_ms[event.job_id] = event.at_ms

    def jobs(
        self, last_ms: Millis, pending: Sequence[JobId] = (), *, known: bool
    ) -> tuple[list[Job], list[str]]:
        """Return jobs with their run times in order of submission, and notes on assumptions."""
        jobs: list[Job] = []
        assumed_ms = self._assumed_ms(pending)
        skipped = truncated = 0
        for job_id, job in self._submitted.items():
            ran_ms = self._ran_ms.get(job_id)
            if job.duration_ms is not None and (known or ran_ms is None):
                ran_ms = job.duration_ms
            elif ran_ms is None and (job_id in self._started or job_id in self._saved):
                ran_ms, truncated = self._progress_ms(job_id, last_ms), truncated + 1
            elif ran_ms is None:
                ran_ms = assumed_ms.get(job_id)
            if ran_ms is None or job_id in self._cancelled:
                skipped += 1
            else:
                jobs.append(replace(job, duration_ms=Millis(ran_ms)))
        notes = self._notes(skipped, truncated, len(assumed_ms))
        if not known:
            notes.append(
                "jobs slowed each other down in the record: their recorded run times are used"
            )
        jobs.sort(key=lambda job: (job.submitted_ms, job.seq))
        return jobs, notes

    def _notes(self, skipped: int, truncated: int, assumed: int) -> list[str]:
        """Return notes on jobs whose run is not known in full."""
        notes: list[str] = []
        if skipped:
            notes.append(
                f"{_were(skipped, 'job')} cancelled or never started: left out of both runs"
            )
        if assumed:
            notes.append(
                f"{_were(assumed, 'job')} still pending when the record ended: "
                "the rerun assumes the median run time"
            )
        if truncated:
            notes.append(
                f"{_were(truncated, 'job')} still running when the record ended: "
                "the rerun uses the run time so far"
            )
        stopped = sum(status == "cancelled" for status in self.ends.values())
        if stopped:
            notes.append(
                f"{_were(stopped, 'job')} cancelled while running: "
                "the rerun uses the run time up to the cancellation"
            )
        if self._broken:
            notes.append(f"crashed runs and failed starts are not repeated: {self._broken:,}")
        return notes

    def _assumed_ms(self, pending: Sequence[JobId]) -> dict[JobId, int]:
        """Return a run time for jobs that have not run: the median, within their limit."""
        ran = sorted(self._ran_ms.values())
        found: dict[JobId, int] = {}
        for job_id in pending:
            job = self._submitted[job_id]
            if job_id in self._ran_ms or job_id in self._saved:
                continue
            usual = ran[len(ran) // 2] if ran else job.limit_ms or 0
            found[job_id] = usual if job.limit_ms is None else min(usual, job.limit_ms)
        return found

    def _progress_ms(self, job_id: JobId, now_ms: Millis) -> int:
        saved = self._saved.get(job_id)
        ran = now_ms - self._started.get(job_id, now_ms)
        if saved is None:
            return ran
        return saved + max(0, ran - self._restart_cost_ms)
