"""A journal that believes nothing: every fact must follow from those before it.

It knows no fleet and no decider. From the facts alone it tells a job that started unordered,
ended too early, lost work that was saved, was resized unasked, or was never heard of again.
"""

from collections.abc import Sequence
from hashlib import blake2b

from msgspec.json import Encoder

from tenfold.model.actions import ReserveStart, ResizeJob, StartJob, StopJob
from tenfold.model.events import (
    ActionOrdered,
    ActionRefused,
    Event,
    JobBusy,
    JobCancelled,
    JobEnded,
    JobHeld,
    JobIdled,
    JobRefused,
    JobReleased,
    JobResized,
    JobStarted,
    JobStopped,
    JobSubmitted,
    NodeEvent,
    NodeJoined,
    NodeLost,
)
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Job, Slot
from tests.rigs.broken import hold
from tests.rigs.worked import Hands, Worked

__all__ = ["Hands", "Ledger"]


class _Story:
    """One job so far."""

    def __init__(self, job: Job, hands: Hands | None) -> None:
        self.job = job
        self.is_at = "waiting"
        self.slots: tuple[Slot, ...] = ()
        self.becoming: tuple[Slot, ...] | None = None
        """The slots of a resize that was ordered."""
        self.stop_ordered = ""
        """The cause of a stop that was ordered."""
        self.idles = False
        self.work = Worked(job, hands)

    def leave(self, where: str) -> None:
        """Give back what it holds."""
        self.is_at, self.becoming, self.stop_ordered, self.idles = where, None, "", False


class Ledger:
    """Facts in order, each checked as it comes. `hands` None means that work is not judged."""

    def __init__(self, hands: Hands | None = None) -> None:
        self.events: list[Event] = []
        self._hands = hands
        self._now_ms = 0
        self._stories: dict[JobId, _Story] = {}
        self._is_lost: dict[NodeId, bool] = {}

    def append(self, events: Sequence[Event]) -> None:
        """Keep facts, after checking that they may be."""
        for event in events:
            hold(
                "time-goes-on",
                event.at_ms >= self._now_ms,
                f"{event} came after {self._now_ms} ms",
            )
            self._now_ms = event.at_ms
            self._check(event)
            self.events.append(event)

    def close(self) -> None:
        """Check that no job was lost: each has ended, was refused or was taken back."""
        left = [
            f"`{job_id}` is {one.is_at}"
            for job_id, one in self._stories.items()
            if one.is_at != "over"
        ]
        hold("no-job-is-lost", not left, f"at the end {', '.join(left)}")

    def digest(self) -> str:
        """Return a digest of all facts, byte by byte."""
        text = Encoder().encode(self.events)
        return blake2b(text, digest_size=16).hexdigest()

    def _check(self, event: Event) -> None:
        if isinstance(event, JobSubmitted):
            hold(
                "a-job-comes-once",
                event.job.id not in self._stories,
                f"job `{event.job.id}` was submitted twice",
            )
            self._stories[event.job.id] = _Story(event.job, self._hands)
        elif isinstance(event, ActionOrdered | ActionRefused):
            self._action(event)
        elif isinstance(event, JobStarted):
            story = self._expect(event.job_id, "ordered", event)
            story.is_at = "running"
            story.work.start(event.at_ms, story.slots)
        elif isinstance(event, JobStopped):
            self._stopped(event)
        elif isinstance(event, JobEnded):
            self._ended(event)
        elif isinstance(event, JobRefused):
            self._expect(event.job_id, "refused", event).is_at = "over"
        elif isinstance(event, JobCancelled):
            self._expect(event.job_id, "waiting", event).is_at = "over"
        elif isinstance(event, JobResized):
            self._resized(event)
        elif isinstance(event, JobIdled | JobBusy | JobHeld | JobReleased):
            self._used(event)
        else:
            assert isinstance(event, NodeEvent), f"it comes in no simulation: {event}"
            name = event.node.id if isinstance(event, NodeJoined) else event.node_id
            self._is_lost[name] = isinstance(event, NodeLost)

    def _expect(self, job_id: JobId, where: str, event: Event) -> _Story:
        story = self._stories.get(job_id)
        is_at = story.is_at if story else "unknown"
        hold("facts-follow-orders", is_at == where, f"job `{job_id}` is {is_at}, yet {event}")
        assert story is not None
        return story

    def _action(self, event: ActionOrdered | ActionRefused) -> None:
        action, is_order = event.action, isinstance(event, ActionOrdered)
        if isinstance(action, StartJob):
            before, after = ("waiting", "ordered") if is_order else ("ordered", "waiting")
            story = self._expect(action.job_id, before, event)
            story.is_at, story.slots = after, action.slots
        elif isinstance(action, StopJob):
            self._stop_action(action, event)
        elif isinstance(action, ResizeJob):
            self._resize_action(action, event)
        elif isinstance(action, ReserveStart):
            if is_order:
                self._expect(action.job_id, "waiting", event)
        elif is_order:
            self._expect(action.job_id, "waiting", event).is_at = "refused"

    def _stop_action(self, action: StopJob, event: ActionOrdered | ActionRefused) -> None:
        if isinstance(event, ActionRefused):
            if story := self._stories.get(action.job_id):
                story.stop_ordered = ""
            return
        story = self._expect(action.job_id, "running", event)
        hold(
            "an-order-is-not-repeated",
            not story.stop_ordered,
            f"the stop of `{action.job_id}` was ordered twice",
        )
        is_idle = action.cause != "idle" or (story.idles and _is_session(story.job))
        hold("only-who-idles-is-reclaimed", is_idle, f"`{action.job_id}` is in use: {event}")
        story.stop_ordered = action.cause

    def _resize_action(self, action: ResizeJob, event: ActionOrdered | ActionRefused) -> None:
        if isinstance(event, ActionRefused):
            if story := self._stories.get(action.job_id):
                story.becoming = None
            return
        story = self._expect(action.job_id, "running", event)
        hold(
            "an-order-is-not-repeated",
            story.becoming is None,
            f"the resize of `{action.job_id}` was ordered before the last was done",
        )
        terms, gpus = story.job.terms, sum(slot.gpus for slot in action.slots)
        is_within = terms is not None and terms.least_gpus <= gpus <= terms.most_gpus
        bounds = f"{terms.least_gpus} to {terms.most_gpus}" if terms else "no"
        hold("a-resize-keeps-its-bounds", is_within, f"{gpus} of {bounds} GPUs: {event}")
        story.becoming = action.slots

    def _resized(self, event: JobResized) -> None:
        story = self._expect(event.job_id, "running", event)
        hold("facts-follow-orders", story.becoming is not None, f"nobody ordered {event}")
        assert story.becoming is not None
        down = [slot.node for slot in story.becoming if self._is_lost[slot.node]]
        hold("no-start-on-a-lost-node", not down, f"{down} are lost: {event}")
        story.work.resize(event.at_ms, story.slots, story.becoming)
        story.slots, story.becoming = story.becoming, None

    def _used(self, event: JobIdled | JobBusy | JobHeld | JobReleased) -> None:
        if isinstance(event, JobHeld | JobReleased):
            self._expect(event.job_id, "waiting", event)
            return
        story = self._expect(event.job_id, "running", event)
        turns = story.idles != isinstance(event, JobIdled)
        hold("idling-begins-and-ends", turns, f"it idles or not already: {event}")
        story.idles = isinstance(event, JobIdled)

    def _stopped(self, event: JobStopped) -> None:
        story = self._stories[event.job_id]
        if event.cause in ("preempted", "moved"):
            self._expect(event.job_id, "running", event)
            hold("facts-follow-orders", bool(story.stop_ordered), f"nobody ordered {event}")
        elif event.cause == "start-failed":
            self._expect(event.job_id, "ordered", event)
        else:
            is_held = story.is_at in ("ordered", "running")
            is_lost = any(self._is_lost[slot.node] for slot in story.slots)
            hold("facts-follow-orders", is_held and is_lost, f"no node of its was lost: {event}")
        story.work.stop(event, ran=story.is_at == "running")
        story.leave("waiting")

    def _ended(self, event: JobEnded) -> None:
        story = self._expect(event.job_id, "running", event)
        # A session that idles may be ended before its time; nobody else is.
        if not (story.stop_ordered == "idle" and event.status == "cancelled"):
            story.work.end(event)
        story.leave("over")


def _is_session(job: Job) -> bool:
    return job.terms is not None and job.terms.kind == "interactive"
