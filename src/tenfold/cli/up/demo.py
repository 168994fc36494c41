"""`tenfold up --demo`: a busy fleet to look at, without real work on it.

Three weeks of generated jobs, with the sizes and arrival pattern of a published trace, are
submitted 600 times faster than they would arrive. Each job is a real process on a virtual node
that sleeps for a 600th of its run time. Nothing else is simulated or sped up: decisions, starts
and the hours of the policy take real time.
"""

from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Any

import msgspec

from tenfold.cli.output import print_note
from tenfold.client.client import Client
from tenfold.client.endpoint import read_address
from tenfold.model.errors import TenfoldError, Unreachable
from tenfold.model.job.job import WHOLE, Job
from tenfold.model.units import SECOND
from tenfold.study.sim.workload import WorkloadRequest, generate_workload

SPEED = 600
DAYS = 21.0
LOAD = 0.95
MIX = "helios"
SEED = 1
BATCH_MAX = 500
POLL_S = 0.25
UNCERTAIN = ("answer-lost", "not-known")
NODE_GPUS = 8
TEAMS = {
    **{"search": 4, "ads": 4, "feed": 3, "speech": 3, "vision": 3},
    **{"translation": 2, "ranking": 2, "safety": 2, "maps": 2, "robotics": 2},
    **{"health": 1, "legal": 1, "finance": 1, "support": 1, "tools": 1},
}
"""Fifteen teams by weight. Their quotas, one node per unit of weight, add up to the fleet."""
FLEET = """# The fleet of `tenfold up --demo`: 256 virtual GPUs under four leaf switches.
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


def demo_fleet(state_dir: Path) -> Path:
    """Write the fleet file of the demo to the state directory and return its path."""
    path = state_dir / "demo-fleet.toml"
    teams = [
        TEAM.format(name=name, weight=weight, quota=weight * NODE_GPUS)
        for name, weight in TEAMS.items()
    ]
    path.write_text(FLEET + "".join(teams))
    return path


def demo_work(fleet: Path) -> list[Job]:
    """Return three weeks of jobs for it; the same ones each time."""
    request = WorkloadRequest(fleet=fleet, mixes=[MIX], loads=[LOAD], days=DAYS, seed=SEED)
    return generate_workload(request).trace.jobs


def submission(job: Job) -> dict[str, Any]:
    """Return the job file keys of a generated job."""
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


class DemoPlayer:
    """Submits jobs when they are due, in a thread; a restart continues where it stopped."""

    def __init__(self, state_dir: Path, jobs: Sequence[Job]) -> None:
        self._state_dir = state_dir
        self._jobs = jobs
        self._progress_file = state_dir / "demo.json"
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="tenfold-demo", daemon=True)

    @property
    def done(self) -> int:
        """How many jobs were submitted before."""
        try:
            return msgspec.json.decode(self._progress_file.read_bytes(), type=int)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return 0

    @property
    def summary(self) -> str:
        """What the demo will submit, for the user."""
        jobs, left = len(self._jobs), len(self._jobs) - self.done
        minutes = DAYS * 24 * 60 / SPEED
        return (
            f"{left:,} of {jobs:,} jobs by {len(TEAMS)} teams; a full run takes {minutes:.0f} min"
        )

    def start(self) -> None:
        """Start submitting."""
        self._thread.start()

    def stop(self) -> None:
        """Stop submitting."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(POLL_S * 4)

    def due(self, done: int, since: int, elapsed_s: float) -> list[Job]:
        """Return the next jobs that are due, this long after job `since` was due."""
        now_ms = self._jobs[since].submitted_ms + elapsed_s * SPEED * SECOND
        some = self._jobs[done : done + BATCH_MAX]
        return [job for job in some if job.submitted_ms <= now_ms]

    def _run(self) -> None:
        address = read_address(self._state_dir)
        assert address is not None, "the demo starts once the server answers"
        with Client(address.url, address.token) as client:
            try:
                self._play(client)
            except TenfoldError as error:
                if not self._stopping.is_set():
                    print_note(f"the demo stopped: {error.message}")

    def _play(self, client: Client) -> None:
        done = since = self.done
        begun_s = monotonic()
        while done < len(self._jobs) and not self._stopping.is_set():
            due = self.due(done, since, monotonic() - begun_s)
            if due:
                done += self._submit(client, due)
                self._progress_file.write_bytes(msgspec.json.encode(done))
            self._stopping.wait(POLL_S)

    def _submit(self, client: Client, due: Sequence[Job]) -> int:
        """Submit jobs; return how many are done, 0 to try them again later."""
        try:
            client.submit_many([submission(job) for job in due])
        except Unreachable as error:
            # Jobs that may have been accepted are not submitted twice.
            return len(due) if error.code in UNCERTAIN else 0
        return len(due)
