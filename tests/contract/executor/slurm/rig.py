"""An executor on a real Slurm of four nodes, and the ways to break either."""

import os
import signal
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from contract.executor.real_processes import NOW_MS, wait_for
from engines.slurm import RunningSlurm, SlurmNode, running_slurm
from patience import until
from tenfold.live.external.executor import ExternalExecutor, ExternalOptions
from tenfold.live.local.spawner.wire import UserLine
from tenfold.live.slurm.executor.engine import SlurmEngine
from tenfold.model.ids import NodeId

NODES = [
    SlurmNode(name=name, cpus=16, memory_mib=16_000, gpu_type="h100", gpus=8)
    for name in ("node-1", "a", "b", "c")
]
CONF = (
    "SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,sched_interval=1",
    "SlurmdTimeout=5",
    "KillWait=2",
    "SelectTypeParameters=CR_CPU",
)
PERIOD_S = 0.2


@contextmanager
def four_nodes(folder: Path) -> Generator[RunningSlurm]:
    """Start a Slurm whose nodes have the names that the contract uses."""
    with running_slurm(folder, NODES, CONF) as slurm:
        yield slurm


class SlurmRig:
    """A state folder, whoever is connected to it, and what may be killed."""

    def __init__(self, home: Path, slurm: RunningSlurm) -> None:
        self.home, self.slurm = home, slurm
        self._clients: list[ExternalExecutor] = []
        self._lost: set[str] = set()

    def connect(self, users: Mapping[str, UserLine] | None = None) -> ExternalExecutor:
        environment = {**self.slurm.environment, "TENFOLD_TOKEN": "a secret", "TZ": "UTC"}
        engine = SlurmEngine(str(self.home), environment=environment)
        options = ExternalOptions(environment=environment, period_s=PERIOD_S, users=users)
        client = ExternalExecutor(str(self.home), engine, options)
        self._clients.append(client)
        return client

    def kill_service(self) -> None:
        """Restart the controller, as an upgrade of Slurm does."""
        self.slurm.daemons.end("slurmctld")
        self.slurm.daemons.start("slurmctld", "slurmctld", "-D")

    def lose_node(self, node: NodeId) -> None:
        """End everything on a node, and tell Slurm, which would find out after its timeout."""
        power_off(self.slurm, node)
        self.slurm.ask("scontrol", "update", f"nodename={node}", "state=down", "reason=lost")
        self._lost.add(node)

    def restore_node(self, node: NodeId) -> None:
        self.slurm.daemons.start(node)
        self._lost.discard(node)

    def jobs(self) -> list[str]:
        """Return the names of all jobs that Slurm knows, whatever their state."""
        return self.slurm.ask("squeue", "--noheader", "--states=all", "--format=%j|%t").split()

    def close(self) -> None:
        """Leave nothing behind: end every attempt, and bring back every node."""
        for client in self._clients:
            client.close()
        last = self.connect()
        for state in last.attempts():
            if state.end is None:
                last.stop(state.job_id, state.attempt, NOW_MS)
        wait_for(last, lambda _: all(state.end for state in last.attempts()))
        last.close()
        for node in list(self._lost):
            self.restore_node(NodeId(node))
        until(self._is_quiet, pause_s=0.1)
        self._end_leftovers()

    def _end_leftovers(self) -> None:
        """End what Slurm lost sight of: here it tracks processes by their parents."""
        mark = f"TENFOLD_HEARTBEAT={self.home}/".encode()
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark in (path / "environ").read_bytes():
                    os.kill(int(path.name), signal.SIGKILL)

    def _is_quiet(self) -> bool:
        states = self.slurm.ask("sinfo", "--noheader", "--Node", "--format=%T").split()
        return all(state == "idle" for state in states)


def power_off(slurm: RunningSlurm, node: str) -> None:
    """End everything on a node, as if its power failed."""
    slurm.daemons.end(node, signal.SIGKILL)
    for pid in _processes_on(slurm, node):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _processes_on(slurm: RunningSlurm, node: str) -> list[int]:
    """Return the processes of jobs on a node, their watchers first."""
    found: list[int] = []
    marks = (f"SLURMD_NODENAME={node}", f"SLURM_CONF={slurm.folder}/slurm.conf")
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            environment = (path / "environ").read_bytes().split(b"\0")
            if all(mark.encode() in environment for mark in marks):
                parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
                if b"slurmstepd" in (Path("/proc") / str(parent) / "cmdline").read_bytes():
                    found.insert(0, parent)
                found.append(int(path.name))
    return list(dict.fromkeys(found))
