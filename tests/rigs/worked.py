"""How far a job has come, reckoned from the facts alone, to judge what a world says of it.

A job without terms is reckoned to the millisecond. An elastic one goes at a share of its
speed, and what a world rounds away at a stop is missing here, so it has a little slack.
"""

from msgspec import Struct

from tenfold.model.events import JobEnded, JobStopped
from tenfold.model.job.job import Job, Slot
from tests.rigs.broken import hold


class Hands(Struct, frozen=True):
    """What a simulated world promises about saved work."""

    restart_cost_ms: int = 0
    checkpoint_every_ms: int = 0


class Worked:
    """The work of one job: saved, and since then."""

    def __init__(self, job: Job, hands: Hands | None) -> None:
        self._job = job
        self._hands = hands
        """None means that work is not judged."""
        self._stops = 0
        self._saved_ms = 0.0
        """What no stop and no lost node can take any more."""
        self._work_ms = 0.0
        self._since_ms = 0
        self._begun_ms = 0
        """When the attempt began that a time limit is counted from."""
        self._speed = 1.0

    def start(self, at_ms: int, slots: tuple[Slot, ...]) -> None:
        """Note that a run begins, from what was saved."""
        cost_ms = self._hands.restart_cost_ms if self._hands and self._stops else 0
        self._work_ms, self._since_ms = self._saved_ms, at_ms + cost_ms
        self._begun_ms = at_ms
        self._speed = _speed(self._job, slots)

    def resize(self, at_ms: int, before: tuple[Slot, ...], after: tuple[Slot, ...]) -> None:
        """Note that a run goes on with other slots: that saves all of its work."""
        self._work_ms = self._saved_ms = min(self._at(at_ms), self._job.duration_ms or 0)
        self._since_ms = max(self._since_ms, at_ms)
        self._begun_ms = at_ms
        if self._hands and sorted(map(_key, before)) != sorted(map(_key, after)):
            self._since_ms = at_ms + self._hands.restart_cost_ms
        self._speed = _speed(self._job, after)

    def stop(self, event: JobStopped, *, ran: bool) -> None:
        """Judge what a stop saved; without a run nothing is added."""
        done_ms = self._at(event.at_ms) if ran else self._saved_ms
        self._stops += 1
        if self._hands is not None:
            least_ms = max(self._saved_ms, self._kept(done_ms, event.cause == "node-lost"))
            slack_ms = self._slack_ms()
            hold(
                "saved-work-is-kept",
                least_ms - slack_ms <= event.progress_ms <= done_ms + slack_ms,
                f"between {least_ms} and {done_ms} ms were done at {event}",
            )
        self._saved_ms = float(event.progress_ms)

    def end(self, event: JobEnded) -> None:
        """Judge when a job is over that went to its end."""
        if self._hands is None:
            return
        left_ms = ((self._job.duration_ms or 0) - self._work_ms) / self._speed
        due_ms = self._since_ms + left_ms
        limit_ms = self._job.limit_ms
        if event.status == "timeout":
            cut_ms = self._begun_ms + (limit_ms or 0)
            hold(
                "time-limits-are-kept",
                limit_ms is not None and event.at_ms == cut_ms < due_ms + self._slack_ms(),
                f"its limit is at {cut_ms} ms and its work is done at {due_ms} ms: {event}",
            )
            return
        hold(
            "work-takes-its-time",
            abs(event.at_ms - due_ms) <= self._slack_ms(),
            f"its work would have been done at {due_ms} ms: {event}",
        )

    def _at(self, now_ms: int) -> float:
        return self._work_ms + max(0, now_ms - self._since_ms) * self._speed

    def _kept(self, done_ms: float, is_lost: bool) -> float:
        """Return how much of the work a checkpoint holds."""
        assert self._hands is not None, "only work that is judged is kept"
        terms, every_ms = self._job.terms, self._hands.checkpoint_every_ms
        if terms is not None and terms.checkpoint_every_ms is not None:
            every_ms = terms.checkpoint_every_ms
        elif not is_lost:
            return done_ms
        return done_ms // every_ms * every_ms if every_ms else 0.0

    def _slack_ms(self) -> float:
        return 0.0 if self._job.terms is None else 1.0 + 1.0 / self._speed


def _speed(job: Job, slots: tuple[Slot, ...]) -> float:
    if job.terms is None or not job.terms.least_gpus:
        return 1.0
    return sum(slot.gpus for slot in slots) / job.shape.gpus


def _key(slot: Slot) -> tuple[str, int, int, int]:
    return slot.node, slot.gpus, slot.milli, slot.device
