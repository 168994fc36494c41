"""A journal that believes nothing: every fact must follow from those before it.

It knows no fleet and no decider. From the facts alone it tells a job that started unordered,
ended too early, lost work that was saved, or was never heard of again.
"""

from collections.abc import Sequence
from hashlib import blake2b

from msgspec import Struct
from msgspec.json import Encoder

from tenfold.model.actions import StartJob, StopJob
from tenfold.model.events import (
    ActionOrdered,
    ActionRefused,
    Event,
    JobCancelled,
    JobEnded,
    JobRefused,
    JobStarted,
    JobStopped,
    JobSubmitted,
    NodeJoined,
    NodeReturned,
)
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job import Job, Slot
from tenfold.testing.broken import hold


class Hands(Struct, frozen=True):
    """What a simulated world promises about saved work."""

    restart_cost_ms: int = 0
    checkpoint_every_ms: int = 0


class _Story:
    """One job so far."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.is_at = "waiting"
        self.slots: tuple[Slot, ...] = ()
        self.started_ms = 0
        self.stop_ordered = False
        self.stops = 0
        self.saved_ms = 0


class Ledger:
    """Facts in order, each checked as it comes. `hands` None means that work is not judged."""

    def __init__(self, hands: Hands | None = None) -> None:
        self.events: list[Event] = []
        self._hands = hands
        self._now_ms = 0
        self._stories: dict[JobId, _Story] = {}
        self._is_up: dict[NodeId, bool] = {}

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
            self._stories[event.job.id] = _Story(event.job)
        elif isinstance(event, ActionOrdered | ActionRefused):
            self._action(event)
        elif isinstance(event, JobStarted):
            story = self._expect(event.job_id, "ordered", event)
            story.is_at, story.started_ms, story.stop_ordered = "running", event.at_ms, False
        elif isinstance(event, JobStopped):
            self._stopped(event)
        elif isinstance(event, JobEnded):
            self._ended(event)
        elif isinstance(event, JobRefused):
            self._expect(event.job_id, "refused", event).is_at = "over"
        elif isinstance(event, JobCancelled):
            self._expect(event.job_id, "waiting", event).is_at = "over"
        else:
            name = event.node.id if isinstance(event, NodeJoined) else event.node_id
            self._is_up[name] = isinstance(event, NodeJoined | NodeReturned)

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
        elif isinstance(action, StopJob) and is_order:
            story = self._expect(action.job_id, "running", event)
            hold(
                "an-order-is-not-repeated",
                not story.stop_ordered,
                f"the stop of `{action.job_id}` was ordered twice",
            )
            story.stop_ordered = True
        elif isinstance(action, StopJob):
            if story := self._stories.get(action.job_id):
                story.stop_ordered = False
        elif is_order:
            self._expect(action.job_id, "waiting", event).is_at = "refused"

    def _stopped(self, event: JobStopped) -> None:
        story = self._stories[event.job_id]
        ran_ms = event.at_ms - story.started_ms if story.is_at == "running" else 0
        if event.cause in ("preempted", "moved"):
            self._expect(event.job_id, "running", event)
            hold("facts-follow-orders", story.stop_ordered, f"nobody ordered {event}")
        elif event.cause == "start-failed":
            self._expect(event.job_id, "ordered", event)
        else:
            is_held = story.is_at in ("ordered", "running")
            is_lost = any(not self._is_up[slot.node] for slot in story.slots)
            hold("facts-follow-orders", is_held and is_lost, f"no node of its was lost: {event}")
        self._judge_work(story, event, ran_ms)
        story.saved_ms, story.is_at = event.progress_ms, "waiting"
        story.stops += 1

    def _judge_work(self, story: _Story, event: JobStopped, ran_ms: int) -> None:
        if self._hands is None:
            return
        worked_ms = max(0, ran_ms - (self._hands.restart_cost_ms if story.stops else 0))
        done_ms = story.saved_ms + worked_ms
        least_ms = done_ms
        if event.cause == "node-lost":
            every_ms = self._hands.checkpoint_every_ms
            least_ms = done_ms // every_ms * every_ms if every_ms else 0
        least_ms = max(story.saved_ms, least_ms)
        hold(
            "saved-work-is-kept",
            least_ms <= event.progress_ms <= done_ms,
            f"between {least_ms} and {done_ms} ms were done at {event}",
        )

    def _ended(self, event: JobEnded) -> None:
        story = self._expect(event.job_id, "running", event)
        story.is_at = "over"
        if self._hands is None:
            return
        left_ms = (story.job.duration_ms or 0) - story.saved_ms
        left_ms += self._hands.restart_cost_ms if story.stops else 0
        ran_ms = event.at_ms - story.started_ms
        hold("work-takes-its-time", ran_ms == left_ms, f"{ran_ms} ms for {left_ms} ms: {event}")
