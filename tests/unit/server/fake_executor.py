"""An executor without processes: attempts run until a test ends them."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock

from tenfold.clock.wall import now_ms
from tenfold.live.executor import (
    AttemptEnded,
    AttemptStarted,
    AttemptState,
    Launch,
    MemberLog,
    Observation,
    ShellRequest,
)
from tenfold.model.ids import JobId
from tenfold.model.reason import Reason
from tenfold.model.units import Millis


class FakeProcesses:
    """Fake attempts; they outlive every executor client, as real processes would."""

    def __init__(self, logs: Path) -> None:
        self._lock = Lock()
        self._unseen: list[Observation] = []
        self._folder = logs
        self.bell = os.eventfd(0, os.EFD_NONBLOCK)
        self.launches: dict[tuple[JobId, int], Launch] = {}
        self.ends: dict[tuple[JobId, int], AttemptEnded] = {}

    def see(self, observation: Observation) -> None:
        with self._lock:
            self._unseen.append(observation)
        os.eventfd_write(self.bell, 1)

    def seen(self) -> list[Observation]:
        with suppress(BlockingIOError):
            os.eventfd_read(self.bell)
        with self._lock:
            seen, self._unseen = self._unseen, []
        return seen

    def end(self, job_id: str, attempt: int = 1, *, exit_code: int = 0) -> None:
        """Let an attempt come to its end."""
        self._end(JobId(job_id), attempt, exit_code)

    def stop(self, job_id: JobId, attempt: int) -> None:
        end = AttemptEnded(at_ms=Millis(now_ms()), job_id=job_id, attempt=attempt, how="stopped")
        self.ends[job_id, attempt] = end
        self.see(end)

    def write(self, job_id: str, text: str, attempt: int = 1, member: int = 0) -> None:
        """Let a member write something."""
        with self._path(JobId(job_id), attempt, member).open("a") as file:
            file.write(text)

    def logs(self, job_id: JobId, attempt: int, member: int, bytes_most: int = 65_536) -> MemberLog:
        path = self._path(job_id, attempt, member)
        if not path.exists():
            return MemberLog(tail=b"", paths=(), bytes_kept=0)
        content = path.read_bytes()
        return MemberLog(tail=content[-bytes_most:], paths=(str(path),), bytes_kept=len(content))

    def _end(self, job_id: JobId, attempt: int, exit_code: int) -> None:
        end = AttemptEnded(
            at_ms=Millis(now_ms()), job_id=job_id, attempt=attempt, exit_code=exit_code
        )
        self.ends[job_id, attempt] = end
        self.see(end)

    def _path(self, job_id: JobId, attempt: int, member: int) -> Path:
        return self._folder / f"{job_id}.{attempt}.{member}.log"


class FakeExecutor:
    """An executor client over the fake processes."""

    def __init__(self, processes: FakeProcesses) -> None:
        self._processes = processes

    def fileno(self) -> int:
        return self._processes.bell

    def start(self, launch: Launch) -> None:
        key = (launch.job_id, launch.attempt)
        if key not in self._processes.launches:
            self._processes.launches[key] = launch
            self._processes.see(AttemptStarted(Millis(now_ms()), *key))

    def stop(self, job_id: JobId, attempt: int, grace_ms: Millis) -> None:
        if (job_id, attempt) not in self._processes.ends:
            self._processes.stop(job_id, attempt)

    def observations(self) -> list[Observation]:
        return self._processes.seen()

    def attempts(self) -> list[AttemptState]:
        return [
            AttemptState(
                job_id=job_id,
                attempt=number,
                phase="ended" if (job_id, number) in self._processes.ends else "running",
                members=launch.members,
                ordered_ms=Millis(0),
                started_ms=Millis(1),
                end=self._processes.ends.get((job_id, number)),
            )
            for (job_id, number), launch in self._processes.launches.items()
        ]

    def settle(self, attempts: Sequence[tuple[JobId, int]]) -> None:
        for key in attempts:
            self._processes.launches.pop(key, None)

    def logs(self, job_id: JobId, attempt: int, member: int, bytes_most: int = 65_536) -> MemberLog:
        return self._processes.logs(job_id, attempt, member, bytes_most)

    def open_shell(self, job_id: JobId, attempt: int, request: ShellRequest) -> Reason:
        return Reason("shell-unsupported")

    def close(self) -> None:
        pass
