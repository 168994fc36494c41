"""Wait for real processes without sleeping: on an executor, on a named pipe, on a process.

Every wait has a deadline, after which the test fails and says what it saw.
"""

import os
import select
import signal
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Protocol

from patience import HANG_S
from tenfold.live.executor import (
    AttemptEnded,
    AttemptLost,
    Executor,
    Launch,
    Member,
    Observation,
)
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.units import Millis

DEADLINE_S = HANG_S
LONG_MS = Millis(600_000)
NOW_MS = Millis(0)
JOB = JobId("job/1")
FOREVER = "while :; do sleep 1000 & wait $!; done"


class Rig(Protocol):
    """An executor under test and the ways to break it."""

    def connect(self) -> Executor: ...
    def lose_node(self, node: NodeId) -> None: ...
    def restore_node(self, node: NodeId) -> None: ...


class ServiceRig(Rig, Protocol):
    """One whose service can be killed; it is back by itself, or at once."""

    def kill_service(self) -> None: ...


class LocalProcessRig(ServiceRig, Protocol):
    """One whose supervisors can be killed."""

    def kill_watcher(self, job_id: JobId, attempt: int) -> None: ...


class Ear:
    """A named pipe on which jobs say words."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._text = b""

    def words(self, count: int) -> list[str]:
        ends = monotonic() + DEADLINE_S
        while self._text.count(b"\n") < count:
            assert select.select([self._file], [], [], max(ends - monotonic(), 0))[0], self._text
            self._text += os.read(self._file, 65_536)
        *found, self._text = self._text.split(b"\n", count)
        return [word.decode() for word in found]

    def nothing_more(self) -> bool:
        return not self._text and not select.select([self._file], [], [], 0)[0]

    def close(self) -> None:
        os.close(self._file)


class Process:
    """A process by its descriptor, so that another of the same number is not taken for it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._file = os.pidfd_open(pid)

    def is_gone(self, within_s: float = DEADLINE_S) -> bool:
        return bool(select.select([self._file], [], [], within_s)[0])

    def kill(self) -> None:
        signal.pidfd_send_signal(self._file, signal.SIGKILL)


def launch(
    script: str,
    *,
    job_id: JobId = JOB,
    attempt: int = 1,
    nodes: tuple[str, ...] = ("node-1",),
    **of_work: object,
) -> Launch:
    spec = RunSpec(name="a job", command=("sh", "-c", script), **of_work)  # type: ignore[arg-type]
    members = tuple(Member(node=NodeId(node)) for node in nodes)
    return Launch(
        job_id=job_id, attempt=attempt, team=TeamId("team"), run_spec=spec, members=members
    )


def wait_for(
    executor: Executor,
    enough: Callable[[list[Observation]], bool],
    deadline_s: float = DEADLINE_S,
) -> list[Observation]:
    """Return the sightings up to those that are enough."""
    ends = monotonic() + deadline_s
    seen = executor.observations()
    while not enough(seen):
        left = ends - monotonic()
        assert left > 0, f"only {seen} within {deadline_s:g} s"
        if select.select([executor], [], [], left)[0]:
            seen += executor.observations()
    return seen


def wait_for_a(executor: Executor, *kinds: type[Observation]) -> list[Observation]:
    return wait_for(executor, lambda seen: any(isinstance(one, kinds) for one in seen))


def wait_until_over(executor: Executor) -> list[Observation]:
    return wait_for_a(executor, AttemptEnded, AttemptLost)


def kinds_of(seen: list[Observation]) -> list[type[Observation]]:
    return [type(one) for one in seen]
