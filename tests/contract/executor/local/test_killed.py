"""Many jobs while spawners, supervisors and clients are killed: each ends once, and ran once.

Who is killed is drawn from a seed; when is left to the machine. A job makes a file that only a
first run can make, so that a second run of one attempt would be seen.
"""

import os
import select
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from time import monotonic

import pytest

from contract.executor.local.test_executor import LocalRig
from contract.executor.real_processes import launch
from patience import HANG_S
from tenfold.live.executor import AttemptEnded, AttemptLost, AttemptStarted, Observation
from tenfold.live.local.attempt.environment import attempt_mark
from tenfold.live.local.processes import processes_with_mark
from tenfold.live.local.spawner.watch import watch_supervisor
from tenfold.model.ids import JobId

JOBS = 60
SPAWNERS = 3
AT_ONCE = 4
DEADLINE_S = HANG_S
RAN_TWICE = 99


class Chaos:
    """One run: orders, sightings, and who is killed in between."""

    def __init__(self, rig: LocalRig, place: Path, seed: int) -> None:
        self.rig = rig
        self.place = place
        self.dice = Random(seed)
        self.executor = rig.connect()
        self.ordered: list[int] = []
        self.ends: dict[int, Observation] = {}
        self.killed = {"spawner": 0, "client": 0, "supervisor": 0}
        self._shot_at = 0

    def run(self) -> None:
        """Run jobs until there were enough of them, and enough kills, however long that takes."""
        ends = monotonic() + DEADLINE_S
        while self.is_short() or len(self.ends) < len(self.ordered):
            for number in range(len(self.ordered), len(self.ordered) + AT_ONCE):
                if self.is_short():
                    self.ordered.append(number)
                    self.order(number)
            self.hurt()
            if select.select([self.executor], [], [], 1.0)[0]:
                for seen in self.executor.observations():
                    self.note(seen)
            said = f"{len(self.ends)} of {len(self.ordered)} ended, {self.killed}"
            assert monotonic() < ends, said

    def is_short(self) -> bool:
        return len(self.ordered) < JOBS or self.killed["spawner"] < SPAWNERS

    def order(self, number: int) -> None:
        file = f"{self.place}/{number}"
        script = f"set -C; : > {file} || exit {RAN_TWICE}; exit {number % 50}"
        self.executor.start(launch(script, job_id=JobId(f"job-{number}")))

    def note(self, seen: Observation) -> None:
        if isinstance(seen, AttemptEnded | AttemptLost):
            number = int(seen.job_id.rpartition("-")[2])
            assert self.ends.setdefault(number, seen) == seen
        else:
            assert isinstance(seen, AttemptStarted)

    def hurt(self) -> None:
        die = self.dice.random()
        if die < 0.3:
            self.kill_spawner()
        elif die < 0.4:
            self.replace_client()
        elif die < 0.6:
            self.kill_supervisor()

    def kill_spawner(self) -> None:
        link = self.executor.link
        if self._shot_at != link.connections:
            self._shot_at = link.connections
            with suppress(ProcessLookupError):  # It may have left by itself.
                os.kill(link.spawner, signal.SIGKILL)
                self.killed["spawner"] += 1

    def kill_supervisor(self) -> None:
        for folder in self.executor.home.unsettled():
            found = watch_supervisor(folder) if folder.is_locked() else None
            if found is not None:
                # On a busy machine it may end between the look and the signal.
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(found.file, signal.SIGKILL)
                    self.killed["supervisor"] += 1
                os.close(found.file)
                return

    def replace_client(self) -> None:
        """As after the death of a controller: orders without an outcome are given again."""
        self.executor.close()
        self.executor = self.rig.connect()
        self._shot_at = 0
        for number in self.ordered:
            if number not in self.ends:
                self.order(number)
        self.killed["client"] += 1


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[LocalRig]:
    rig = LocalRig(tmp_path / "state")
    yield rig
    rig.close()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_job_ends_once_and_ran_once(rig: LocalRig, tmp_path: Path, seed: int):
    place = tmp_path / "ran"
    place.mkdir()
    chaos = Chaos(rig, place, seed)
    chaos.run()
    print(chaos.killed, sum(isinstance(end, AttemptLost) for end in chaos.ends.values()), "lost")
    assert sorted(chaos.ends) == chaos.ordered
    for number, end in chaos.ends.items():
        if isinstance(end, AttemptEnded):
            assert (end.how, end.exit_code) == ("exited", number % 50)
            assert (place / str(number)).exists()
    for folder in chaos.executor.home.unsettled():
        assert processes_with_mark(attempt_mark(folder.path)) == []
    assert len(chaos.ordered) >= JOBS
    assert chaos.killed["spawner"] >= SPAWNERS
