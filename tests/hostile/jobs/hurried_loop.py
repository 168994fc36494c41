"""The scheduling loop over a real journal and real processes, in time that passes over delays.

A delay before a start takes no time here: where the loop would wait for a moment and nothing else
happens, its clock jumps to that moment. Processes take the time that they take.
"""

import select
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Condition, Thread

from patience import HANG_S, until
from tenfold.clock.steady import SteadyClock
from tenfold.compose.control_plane import ControlPlane, Parts
from tenfold.compose.live_journal import LiveJournal
from tenfold.compose.policies import placing_decider
from tenfold.live.attempts.active import CheckpointTime
from tenfold.live.inbox import Answer, Inbox, JoinNodes, Request, Submit
from tenfold.live.local.executor import LocalExecutor
from tenfold.model.events import Event, JobEnded, JobRefused
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, PoolId, SiteId, TeamId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.job.submission import Submission
from tenfold.model.policy.policy import Policy
from tenfold.model.units import Millis

NODE = Node(id=NodeId("n1"), pool=PoolId("p"), site=SiteId("s"), gpus=8, cpus_milli=64_000)
GLANCE_MS = 20
"""How long something else may take to happen before the clock jumps."""


class HurriedClock(SteadyClock):
    """A clock that passes over waits with an end."""

    def __init__(self, least_ms: Millis) -> None:
        super().__init__(least_ms)
        self.skipped_ms = 0

    def now_ms(self) -> Millis:
        return Millis(super().now_ms() + self.skipped_ms)

    def wait(self, descriptors: Sequence[int], timeout_ms: int | None) -> None:
        poll = select.poll()
        for descriptor in descriptors:
            poll.register(descriptor, select.POLLIN)
        if timeout_ms is None:
            poll.poll()
        elif not poll.poll(min(GLANCE_MS, timeout_ms)):
            self.skipped_ms += max(0, timeout_ms - GLANCE_MS)


class _HeardJournal(LiveJournal):
    heard: Callable[[Sequence[Event]], None]

    def append(self, events: Sequence[Event]) -> None:
        super().append(events)
        self.heard(events)


class HurriedLoop:
    """A loop in a thread, and what it recorded."""

    def __init__(self, folder: Path, saved_at: CheckpointTime | None) -> None:
        self.run, self.journal = folder / "run", folder / "journal.db"
        self.inbox, self.events = Inbox(), list[Event]()
        self._news = Condition()
        self.plane = ControlPlane(
            Parts(
                store=self._store,
                executor=lambda: LocalExecutor(str(self.run)),
                clock=HurriedClock,
                deciders=lambda: [placing_decider(Policy(name="fifo"))],
                saved_at=saved_at or _never_saved,
                reads_files=saved_at is not None,
            ),
            self.inbox,
        )
        self.thread = Thread(target=self.plane.run_once, daemon=True)

    def ask(self, request: Request) -> Answer:
        """Return the answer to a request."""
        answers: list[Answer] = []
        self.inbox.put(request, answers.append)
        until(lambda: bool(answers))
        return answers[0]

    def submit(self, *command: str, **of_spec: object) -> JobId:
        spec = RunSpec(name="job", command=command, **of_spec)  # type: ignore[arg-type]
        submission = Submission(team=TeamId("red"), shape=shape_of(1), run_spec=spec)
        [job_id] = self.ask(Submit((submission,))).jobs
        return job_id

    def wait(self, is_it: Callable[[Event], bool], times: int = 1) -> Event:
        """Return the last of so many events; wait until they are recorded."""
        with self._news:
            found = self._news.wait_for(
                lambda: sum(is_it(one) for one in self.events) >= times, HANG_S
            )
            assert found, self.events[-10:]
            return [one for one in self.events if is_it(one)][times - 1]

    def end_of(self, job_id: JobId) -> JobEnded | JobRefused:
        kinds = (JobEnded, JobRefused)
        found = self.wait(lambda one: isinstance(one, kinds) and one.job_id == job_id)
        assert isinstance(found, kinds)
        return found

    def _store(self) -> LiveJournal:
        store = _HeardJournal(str(self.journal), "test", 1)
        store.heard = self._hear
        return store

    def _hear(self, events: Sequence[Event]) -> None:
        with self._news:
            self.events += events
            self._news.notify_all()


def _never_saved(job: Job, run_spec: RunSpec) -> Millis | None:
    return None


@contextmanager
def hurried_loop(
    folder: Path, saved_at: CheckpointTime | None = None
) -> Generator[HurriedLoop, None, None]:
    """A loop with one node; nothing of it is left afterwards."""
    made = HurriedLoop(folder, saved_at)
    made.inbox.put(JoinNodes((NODE,)), lambda _: None)
    made.thread.start()
    try:
        yield made
    finally:
        made.inbox.close()
        made.thread.join(HANG_S)
        executor = LocalExecutor(str(made.run))
        for state in executor.attempts():
            executor.stop(state.job_id, state.attempt, Millis(0))
        until(lambda: all(one.end for one in executor.attempts()))
        executor.stop_spawner()
        executor.close()
