"""What a policy would have started on an attached cluster, and what became of it.

A job is recommended if the policy would start it now, on nodes of its partition, in two readings
in a row: so Slurm had its own pass in between. The promise is the wait that is left to it under
Slurm, from simulations of the recorded fleet under Slurm's policy. A report compares that with the
start that came, and says if the GPUs of the recommendation were given to another job before.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from tenfold.engine.loop import Decider
from tenfold.engine.recording import events_of
from tenfold.files.records.replay_bundle import Bundle
from tenfold.files.slurm.settings import PartitionState
from tenfold.fleet.fleet import Fleet, FleetView
from tenfold.model.actions import StartJob
from tenfold.model.errors import InputError
from tenfold.model.events import (
    ActionOrdered,
    Event,
    JobCancelled,
    JobEnded,
    JobStarted,
    JobStopped,
    JobSubmitted,
)
from tenfold.model.ids import JobId
from tenfold.model.job.job import WHOLE, Slot
from tenfold.model.units import SECOND, Millis
from tenfold.study.eta.eta import Eta, eta_of

RECOMMENDATIONS = "recommendations.jsonl"
PROMISES_MOST = 3
"""Promises worked out in one reading: each is a set of simulations."""
HOUR_S = 3_600.0


class Recommendation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One start that a policy would have made."""

    at_ms: Millis
    policy: str
    job_id: JobId
    gpus: float
    slots: tuple[Slot, ...]
    saves_ms: int | None = None
    """The wait that it would have saved, as promised then; None if it was not worked out."""


class Recommender:
    """Follows readings, and returns what is new to recommend."""

    def __init__(
        self,
        policy: str,
        decider_of: Callable[[], Decider],
        slurm_of: Callable[[], Decider],
        known: Iterable[JobId] = (),
    ) -> None:
        """`known` jobs were recommended before a restart."""
        self._policy = policy
        self._decider_of = decider_of
        self._slurm_of = slurm_of
        self._candidates: dict[JobId, None] = {}
        """Jobs that the policy would have started at the last reading."""
        self._known = dict.fromkeys(known)

    def after(
        self, fleet: Fleet, partitions: Mapping[str, PartitionState], now_ms: Millis
    ) -> list[Recommendation]:
        """Return what to recommend after a reading."""
        starts = startable(fleet, self._decider_of(), partitions, now_ms)
        before, self._candidates = self._candidates, {one.job_id: None for one in starts}
        self._known = {job: None for job in self._known if job in fleet.pending}
        new = [one for one in starts if one.job_id in before and one.job_id not in self._known]
        found: list[Recommendation] = []
        for place, one in enumerate(new):
            self._known[one.job_id] = None
            job = fleet.pending[one.job_id]
            found.append(
                Recommendation(
                    at_ms=now_ms,
                    policy=self._policy,
                    job_id=one.job_id,
                    gpus=job.shape.milli / WHOLE or job.shape.gpus,
                    slots=one.slots,
                    saves_ms=self._promise(fleet, one, now_ms) if place < PROMISES_MOST else None,
                )
            )
        return found

    def _promise(self, fleet: Fleet, one: StartJob, now_ms: Millis) -> int | None:
        """Return how long Slurm is expected to leave a job waiting."""
        expected = eta_of(fleet, one.job_id, now_ms, self._slurm_of)
        return max(0, expected.p50_ms - now_ms) if isinstance(expected, Eta) else None


def startable(
    fleet: FleetView,
    decider: Decider,
    partitions: Mapping[str, PartitionState],
    now_ms: Millis,
) -> list[StartJob]:
    """Return the starts that a policy would order now and that Slurm would accept."""
    found: list[StartJob] = []
    for action in decider.decide(fleet, now_ms, None).actions:
        if not isinstance(action, StartJob) or action.job_id not in fleet.pending:
            continue
        partition = partitions.get(fleet.pending[action.job_id].qos)
        allowed = partition.nodes if partition is not None else ()
        is_there = all(fleet.states.get(slot.node) == "up" for slot in action.slots)
        if is_there and (not allowed or all(slot.node in allowed for slot in action.slots)):
            found.append(action)
    return found


class CheckedStart(Struct, frozen=True, kw_only=True):
    """A recommendation beside what happened."""

    job_id: JobId
    recommended_ms: Millis
    started_ms: Millis | None
    promised_s: float | None
    came_s: float | None
    """How much earlier it would have started; None if it has not started."""
    taken_by: JobId | None = None
    """The first other job that got some of these GPUs meanwhile."""


class RecommendReport(Struct, frozen=True, kw_only=True):
    """What was promised, and what came true."""

    recommended: int
    started: int
    """Of those, jobs that Slurm has started since."""
    cancelled: int
    waiting: int
    free: int
    """Of those started, jobs whose recommended GPUs stayed free until then: nobody else lost."""
    promised: int
    """Started jobs with a promise."""
    promised_hours: float
    """Waiting that the recommendations of these would have saved, as promised ..."""
    came_hours: float
    """... and as it came."""
    free_hours: float
    """Hours of waiting saved where the GPUs stayed free."""
    free_gpu_hours: float
    """The GPU-hours that were idle in the meantime."""
    starts: tuple[CheckedStart, ...]


def append_recommendations(folder: Path, found: Sequence[Recommendation]) -> None:
    """Add records to the file in a state folder."""
    if found:
        with (folder / RECOMMENDATIONS).open("ab") as stream:
            stream.write(b"".join(msgspec.json.encode(one) + b"\n" for one in found))


def read_recommendations(folder: Path) -> list[Recommendation]:
    """Return the records of a state folder; a last line that was cut off is left out."""
    path = folder / RECOMMENDATIONS
    if not path.is_file():
        return []
    found: list[Recommendation] = []
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines[:-1], start=1):
        try:
            found.append(msgspec.json.decode(line, type=Recommendation))
        except msgspec.DecodeError as error:
            raise InputError(
                "wrong-line",
                f"not a recommendation: {error}",
                "the file is written by `tenfold attach`; do not edit it",
                file=str(path),
                line=number,
            ) from None
    return found


def report_of(bundle: Bundle, records: Sequence[Recommendation]) -> RecommendReport:
    """Return what became of recommendations."""
    history = _History(events_of(bundle.lines))
    starts = tuple(history.checked(one) for one in records)
    began = [
        (one, start) for one, start in zip(records, starts, strict=True) if start.came_s is not None
    ]
    with_promise = [start for _, start in began if start.promised_s is not None]
    free = [(one, start) for one, start in began if start.taken_by is None]
    cancelled = sum(one.job_id in history.cancelled for one in records)
    return RecommendReport(
        recommended=len(records),
        started=len(began),
        cancelled=cancelled,
        waiting=len(records) - len(began) - cancelled,
        free=len(free),
        promised=len(with_promise),
        promised_hours=sum(start.promised_s or 0.0 for start in with_promise) / HOUR_S,
        came_hours=sum(start.came_s or 0.0 for start in with_promise) / HOUR_S,
        free_hours=sum(start.came_s or 0.0 for _, start in free) / HOUR_S,
        free_gpu_hours=sum((start.came_s or 0.0) * one.gpus for one, start in free) / HOUR_S,
        starts=starts,
    )


class _History:
    """When jobs started after a time, and which GPUs were free meanwhile."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.cancelled: dict[JobId, None] = {}
        self._starts: dict[JobId, list[Millis]] = {}
        self._changes: list[tuple[Millis, JobId, tuple[Slot, ...], int]] = []
        held: dict[JobId, tuple[Slot, ...]] = {}
        for event in events:
            if isinstance(event, ActionOrdered) and isinstance(event.action, StartJob):
                held[event.action.job_id] = event.action.slots
            elif isinstance(event, JobStarted):
                slots = held.get(event.job_id, ())
                self._starts.setdefault(event.job_id, []).append(event.at_ms)
                self._changes.append((event.at_ms, event.job_id, slots, 1))
            elif isinstance(event, JobEnded | JobStopped):
                slots = held.pop(event.job_id, ())
                self._changes.append((event.at_ms, event.job_id, slots, -1))
            elif isinstance(event, JobCancelled):
                self.cancelled[event.job_id] = None
            elif isinstance(event, JobSubmitted):
                self.cancelled.pop(event.job.id, None)
        # At one moment, what ends comes first.
        self._changes.sort(key=lambda change: (change[0], change[3]))

    def checked(self, one: Recommendation) -> CheckedStart:
        """Return a recommendation beside what happened."""
        later = [at for at in self._starts.get(one.job_id, ()) if at >= one.at_ms - SECOND]
        started = later[0] if later else None
        promised = None if one.saves_ms is None else one.saves_ms / SECOND
        if started is None:
            return CheckedStart(
                job_id=one.job_id,
                recommended_ms=one.at_ms,
                started_ms=None,
                promised_s=promised,
                came_s=None,
            )
        return CheckedStart(
            job_id=one.job_id,
            recommended_ms=one.at_ms,
            started_ms=started,
            promised_s=promised,
            came_s=max(0, started - one.at_ms) / SECOND,
            taken_by=self._taken_by(one, started),
        )

    def _taken_by(self, one: Recommendation, started: Millis) -> JobId | None:
        """Return the first other job that started on a node of a recommendation meanwhile."""
        nodes = {slot.node for slot in one.slots}
        for at_ms, job_id, slots, sign in self._changes:
            if at_ms > started:
                return None
            if at_ms < one.at_ms or sign < 0 or job_id == one.job_id:
                continue
            if any(slot.node in nodes for slot in slots):
                return job_id
        return None
