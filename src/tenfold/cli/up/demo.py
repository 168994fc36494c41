"""`tenfold up --demo`: a fleet to look at that is busy, with nobody's real work on it.

Three weeks of generated work, in the sizes and rhythm of a published trace, are handed in 600
times as fast as they would come. Each job is a real process on a virtual node: it sleeps for a
600th of its time. Nothing else is made up or sped up: decisions, starts and the hours of the
policy take the time that they take.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Any

import msgspec

from tenfold.client.client import Client
from tenfold.client.place import address_in
from tenfold.model.errors import TenfoldError, Unreachable
from tenfold.model.job.job import WHOLE, Job
from tenfold.model.units import SECOND
from tenfold.study.sim.workload import WorkAsk, generate_work

SPEED = 600
DAYS = 21.0
LOAD = 0.95
MIX = "helios"
SEED = 1
BATCH_MOST = 500
LOOK_S = 0.25
IN_DOUBT = ("answer-lost", "not-known")
NODE_GPUS = 8
TEAMS = {
    **{"search": 4, "ads": 4, "feed": 3, "speech": 3, "vision": 3},
    **{"translation": 2, "ranking": 2, "safety": 2, "maps": 2, "robotics": 2},
    **{"health": 1, "legal": 1, "finance": 1, "support": 1, "tools": 1},
}
"""Fifteen teams by weight. Their quotas, a node for each unit of weight, are the whole fleet."""
FLEET = """# The fleet of `tenfold up --demo`: 256 virtual GPUs below four leaf switches.
name = "demo"

[[fabric]]
name = "fabric"
kind = "fat-tree"
link = "InfiniBand-NDR"
nodes_per_leaf = 8

[[pool]]
name = "h100"
shape = "DGX-H100"
nodes = 32
nodes_per_rack = 4
"""
TEAM = """
[[team]]
name = "{name}"
weight = {weight}
quota_gpus = {{ "H100-80G-SXM" = {quota} }}
"""


def demo_fleet(home: Path) -> Path:
    """Return the fleet file of the demo, written into the state folder."""
    path = home / "demo-fleet.toml"
    teams = [
        TEAM.format(name=name, weight=weight, quota=weight * NODE_GPUS)
        for name, weight in TEAMS.items()
    ]
    path.write_text(FLEET + "".join(teams))
    return path


def demo_work(fleet: Path) -> list[Job]:
    """Return three weeks of jobs for it, always the same."""
    ask = WorkAsk(fleet=fleet, mixes=[MIX], loads=[LOAD], days=DAYS, seed=SEED)
    return generate_work(ask).trace.jobs


def submission(job: Job) -> dict[str, Any]:
    """Return what is handed in for a generated job."""
    gpus = job.shape.gpus or job.shape.milli / WHOLE
    nodes = max(1, -(-job.shape.gpus // NODE_GPUS))
    return {
        "name": MIX,
        "team": str(job.team),
        "command": ["sleep", f"{(job.duration_ms or 0) / SECOND / SPEED:.3f}"],
        "nodes": nodes,
        "gpus_per_node": gpus if nodes == 1 else NODE_GPUS,
        "cpus_per_node": 0,
    }


class Player:
    """Hands in jobs as their time comes, in a thread; a later start goes on where it was."""

    def __init__(self, home: Path, jobs: Sequence[Job]) -> None:
        self._home = home
        self._jobs = jobs
        self._kept = home / "demo.json"
        self._ends = Event()
        self._thread = Thread(target=self._run, name="tenfold-demo", daemon=True)

    @property
    def done(self) -> int:
        """How many were handed in before."""
        try:
            return msgspec.json.decode(self._kept.read_bytes(), type=int)
        except (OSError, msgspec.DecodeError):
            return 0

    @property
    def says(self) -> str:
        """What will be played, for whoever starts it."""
        jobs, left = len(self._jobs), len(self._jobs) - self.done
        minutes = DAYS * 24 * 60 / SPEED
        return f"{left:,} of {jobs:,} jobs of {len(TEAMS)} teams; all take {minutes:.0f} minutes"

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Hand in no more."""
        self._ends.set()
        if self._thread.is_alive():
            self._thread.join(LOOK_S * 4)

    def due(self, done: int, since: int, elapsed_s: float) -> list[Job]:
        """Return the next jobs whose time has come, so long after job `since` was due."""
        now_ms = self._jobs[since].submitted_ms + elapsed_s * SPEED * SECOND
        some = self._jobs[done : done + BATCH_MOST]
        return [job for job in some if job.submitted_ms <= now_ms]

    def _run(self) -> None:
        address = address_in(self._home)
        assert address is not None, "it is started once requests are answered"
        with Client(address.url, address.token) as client:
            try:
                self._play(client)
            except TenfoldError as error:
                if not self._ends.is_set():
                    sys.stderr.write(f"note: the demo ends here: {error.message}\n")

    def _play(self, client: Client) -> None:
        done = since = self.done
        begun_s = monotonic()
        while done < len(self._jobs) and not self._ends.is_set():
            due = self.due(done, since, monotonic() - begun_s)
            if due:
                done += self._handed_in(client, due)
                self._kept.write_bytes(msgspec.json.encode(done))
            self._ends.wait(LOOK_S)

    def _handed_in(self, client: Client, due: Sequence[Job]) -> int:
        """Return how many are done with: none where trouble must pass first."""
        try:
            client.submit_many([submission(job) for job in due])
        except Unreachable as error:
            # What may have been taken is not handed in twice.
            return len(due) if error.code in IN_DOUBT else 0
        return len(due)
