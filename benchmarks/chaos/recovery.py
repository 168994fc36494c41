"""Two processes that train together, killed at random points: what is lost, and what is not.

The job is `examples/train-and-survive` under `tenfold up`. Now a process of it dies, now its
supervisor, now the controller too. Every start must begin at a checkpoint that holds and that
is no older than the last one that was reported as saved. Work is counted in steps, whose least
length is known, so that a slow machine changes nothing. The weights at the end must be those of
a run that nobody broke.
"""

import importlib.util
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import Any

from msgspec import Struct, field

from benchmarks.chaos.plane import Plane
from benchmarks.chaos.victims import Victims
from tenfold.checkpoint import verify
from tenfold.client.client import Client
from tenfold.live.local.attempt.folder import ExecutorDir
from tenfold.model.ids import JobId
from tenfold.server.runtime.state_dir import LocalLogs

SCRIPT = Path(__file__).parents[2] / "examples" / "train-and-survive" / "train.py"
KILLS = 20
EVERY_S, STEP_S = 0.5, 0.05
LOST_STEPS_MOST = math.ceil(EVERY_S / STEP_S) + 1
"""An interval of work; it is counted from the end of the first step."""
EARLY_SHARE = 0.2
"""Of kills: before the attempt has taken a step."""
SUPERVISOR_SHARE, CONTROLLER_SHARE = 0.4, 0.25
WORK_S_MOST = 1.2
STEPS_A_KILL = 24
"""More than a run can get on before it is killed."""
LOOK_S = 0.02
DEADLINE_S = 120.0


class Ask(Struct, frozen=True):
    """How often, and from which dice."""

    kills: int = KILLS
    seed: int = 1


class Found(Struct, kw_only=True):
    """What came of it."""

    kills: int = 0
    controllers: int = 0
    supervisors: int = 0
    lost: list[int] = field(default_factory=list[int])
    """Steps that were taken and had to be taken again, kill by kill."""
    beyond: list[int] = field(default_factory=list[int])
    """Those of more than an interval."""
    invalid: int = 0
    """Starts that went back behind a checkpoint that was reported as saved."""
    back_s: list[float] = field(default_factory=list[float])
    """From a kill to the moment at which the run goes on."""
    same: bool = False
    state: str = ""


def missing() -> str:
    """Say what is missing to run this; empty where nothing is."""
    return "" if importlib.util.find_spec("torch") else "torch is missing: pip install torch"


class Recovery:
    """One training run that is killed again and again."""

    def __init__(self, folder: Path, ask: Ask) -> None:
        self._ask, self._dice = ask, Random(ask.seed)
        self._plane = Plane(folder / "home", 2)
        self._victims = Victims(self._plane.folder.run, Random(ask.seed + 1))
        self._home = ExecutorDir(str(self._plane.folder.run))
        self._logs = LocalLogs(self._plane.folder.run)
        self._steps = STEPS_A_KILL * (ask.kills + 1)
        self._job = ""
        self._early = False
        """Whether the attempt under way is to be killed before it begins."""
        self._seen = 1
        """The last attempt that was seen to begin."""
        self.found = Found()

    def run(self) -> Found:
        """Train once unbroken and once broken, and compare."""
        try:
            self._plane.begin()
            self._plane.wait()
            with self._client() as client:
                whole = client.submit(**self._asked("whole", 0.0)).id
                client.wait(whole, timeout_s=DEADLINE_S)
                self._job = client.submit(**self._asked("broken", STEP_S)).id
            while self.found.kills < self._ask.kills and self._break():
                pass
            with self._client() as client:
                over = client.wait(self._job, timeout_s=DEADLINE_S + self._steps * 2 * STEP_S)
            self.found.state = over.state
            weights = [self._weights(name) for name in (whole, self._job)]
            self.found.same = weights[0] == weights[1] != ""
            held = verify(Path(self._home.team_folder("admin")) / self._job / "saves")
            self.found.invalid += sum(one.state != "valid" for one in held)
        finally:
            self._plane.leave()
        return self.found

    def _break(self) -> bool:
        """Kill one attempt, and look at how the next begins; False where there is none."""
        attempt = self._newest()
        if not self._early:
            self._begun(attempt)
        sleep(self._dice.uniform(0, WORK_S_MOST))
        # A process that crashes thrice before it saves is given up; a lost one is not.
        if self._early or self._dice.random() < SUPERVISOR_SHARE:
            self._until(self._victims.kill_supervisor)
            self.found.supervisors += 1
        else:
            self._until(self._victims.kill_member)
        killed_s = monotonic()
        if self._dice.random() < CONTROLLER_SHARE:
            self._plane.kill()
            self._plane.begin()
            self._plane.wait()
            self.found.controllers += 1
        self.found.kills += 1
        return self._resumed(attempt, killed_s)

    def _resumed(self, before: int, killed_s: float) -> bool:
        ends_s = monotonic() + DEADLINE_S
        while (attempt := self._newest()) == before:
            if monotonic() > ends_s:
                return False
            sleep(LOOK_S)
        self._early = self._dice.random() < EARLY_SHARE
        if self._early:
            return True
        begun = self._begun(attempt)
        self.found.back_s.append(monotonic() - killed_s)
        lost = max(0, self._taken(self._seen, attempt) - begun)
        self._seen = attempt
        self.found.lost.append(lost)
        if lost > LOST_STEPS_MOST:
            self.found.beyond.append(lost)
        self.found.invalid += begun < self._saved(attempt)
        return True

    def _until(self, kills: Callable[[], bool]) -> None:
        ends_s = monotonic() + DEADLINE_S
        while not kills():
            assert monotonic() < ends_s, "there is nothing to kill"
            sleep(LOOK_S)

    def _newest(self) -> int:
        ends_s = monotonic() + DEADLINE_S
        while not (numbers := self._home.numbers(self._job)):
            assert monotonic() < ends_s, "no attempt was ever made"
            sleep(LOOK_S)
        return numbers[-1]

    def _begun(self, attempt: int) -> int:
        """Return the step at which an attempt began, once it has."""
        ends_s = monotonic() + DEADLINE_S
        while True:
            said = re.search(r"begins at step (\d+)", self._log(attempt))
            if said is not None:
                return int(said[1])
            assert monotonic() < ends_s, f"attempt {attempt} does not begin"
            sleep(LOOK_S)

    def _taken(self, since: int, before: int) -> int:
        """Return the last step that attempts since one took, by their heartbeats."""
        steps = [0]
        for number in range(since, before):
            beat = Path(self._home.attempt(self._job, number).path) / "0.beat"
            said = re.search(r'"step": (\d+)', beat.read_text()) if beat.exists() else None
            steps += [int(said[1])] if said else []
        return max(steps)

    def _saved(self, before: int) -> int:
        """Return the last step that any earlier attempt reported as saved."""
        said = "".join(self._log(number) for number in range(1, before))
        return max([0, *(int(one) for one in re.findall(r"saved step (\d+)", said))])

    def _weights(self, job_id: str) -> str:
        last = self._home.numbers(job_id)[-1]
        said = re.search(r"final weights (\w{64})", self._log(last, job_id))
        return said[1] if said else ""

    def _log(self, attempt: int, job_id: str = "") -> str:
        found = self._logs.logs(JobId(job_id or self._job), attempt, 0)
        return found.tail.decode(errors="replace")

    def _asked(self, name: str, pause_s: float) -> dict[str, Any]:
        words = [sys.executable, str(SCRIPT), "--steps", str(self._steps)]
        return {
            "name": name,
            "command": [*words, "--pause-s", str(pause_s)],
            "env": {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"},
            "nodes": 2,
            "gpus_per_node": 1,
            "cpus_per_node": 0,
            "checkpoint": {"dir": "saves", "interval": EVERY_S},
            "grace": 1,
        }

    def _client(self) -> Client:
        client = self._plane.client()
        assert client is not None, "it answers"
        return client


def line(found: Found) -> str:
    """Return what is told of it."""
    lost = sorted(found.lost)
    middle = lost[len(lost) // 2] if lost else 0
    back = sorted(found.back_s)
    return (
        f"killed {found.kills} times ({found.supervisors} by way of the supervisor, "
        f"{found.controllers} with the controller): lost {middle} steps in the median and "
        f"{max(lost, default=0)} at most, an interval has {LOST_STEPS_MOST}; "
        f"back after {back[len(back) // 2] if back else 0:.1f} s in the median; "
        f"{found.state}, weights {'the same' if found.same else 'DIFFER'}"
    )
