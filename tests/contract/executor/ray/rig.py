"""An executor on a real Ray of three nodes, and the ways to break either.

The contract names four nodes: two of them are the head. The cluster is
in a network of its own, which the thread of the executor enters.
"""

import ctypes
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from contract.executor.real_processes import NOW_MS, wait_for
from engines.ray_cluster import RayNodes
from tenfold.live.external.engine import Listing
from tenfold.live.external.executor import ExternalExecutor, ExternalOptions
from tenfold.live.ray.engine import RayEngine
from tenfold.model.ids import NodeId

NAMES = {"node-1": "one", "a": "three", "b": "two", "c": "one"}
PERIOD_S = 0.3
CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


class _Inside(RayEngine):
    """Enters the network of the cluster before its first request, in the thread that asks."""

    enter: Callable[[], None] | None = None

    def listing(self) -> Listing:
        if self.enter is not None:
            self.enter()
            self.enter = None
        return super().listing()


class RayRig:
    """A state folder, whoever is connected to it, and what may be killed."""

    def __init__(self, home: Path, ray: RayNodes) -> None:
        self.home, self.ray = home, ray
        self._clients: list[ExternalExecutor] = []

    def connect(self) -> ExternalExecutor:
        environment = {**self.ray.environment, "TENFOLD_TOKEN": "a secret", "TZ": "UTC"}
        engine = _Inside(str(self.home), self.ray.url, environment=environment, names=NAMES)
        engine.enter = partial(enter, self.ray)
        options = ExternalOptions(environment=environment, period_s=PERIOD_S)
        client = ExternalExecutor(str(self.home), engine, options)
        self._clients.append(client)
        return client

    def lose_node(self, node: NodeId) -> None:
        self.ray.end(NAMES[node])

    def restore_node(self, node: NodeId) -> None:
        self.ray.start(NAMES[node])

    def close(self) -> None:
        """Leave nothing behind: end every attempt, and bring back the nodes."""
        for client in self._clients:
            client.close()
        for name in self.ray.names:
            self.ray.start(name)
        last = self.connect()
        for state in last.attempts():
            if state.end is None:
                last.stop(state.job_id, state.attempt, NOW_MS)
        wait_for(last, lambda _: all(state.end for state in last.attempts()))
        last.close()


def enter(ray: RayNodes) -> None:
    """Move this thread, and no other, into the network of a cluster."""
    file = os.open(f"/var/run/netns/{ray.network}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        assert _libc.setns(file, CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
    finally:
        os.close(file)
