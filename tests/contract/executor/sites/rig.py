"""Executors of two sites, each a local one, and the ways to break either."""

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from contract.executor.real_processes import NOW_MS, Process, wait_for
from tenfold.live.local.executor import LocalExecutor
from tenfold.live.sites.executor import SitesExecutor
from tenfold.live.sites.folders import prepare_site_home
from tenfold.live.sites.site import SiteSettings
from tenfold.model.ids import JobId, NodeId, SiteId

SITES: Mapping[str, Sequence[str]] = {"north": ("a", "b", "c"), "south": ("node-1",)}
LOST_AFTER_S = 60.0


class SitesRig:
    """A state folder, whoever is connected to it, and what may be killed."""

    def __init__(self, home: Path, lost_after_s: float = LOST_AFTER_S) -> None:
        self.home, self._lost_after_s = home, lost_after_s
        self._clients: list[SitesExecutor] = []
        self.homes = {name: prepare_site_home(str(home), name) for name in SITES}

    def connect(self) -> SitesExecutor:
        environment = {**os.environ, "TENFOLD_TOKEN": "a secret", "TZ": "UTC"}
        sites = [
            SiteSettings(
                name=SiteId(name),
                nodes=tuple(NodeId(node) for node in nodes),
                home=self.homes[name],
                make=lambda home=self.homes[name]: LocalExecutor(home, environment=environment),
                lost_after_s=self._lost_after_s,
                opens_shells=True,
            )
            for name, nodes in SITES.items()
        ]
        client = SitesExecutor(str(self.home), sites)
        self._clients.append(client)
        return client

    def spawner(self, site: str) -> Process:
        """Return the process that starts jobs at a site."""
        direct = LocalExecutor(self.homes[site])
        direct.close()
        return Process(direct.link.spawner)

    def pause(self, site: str) -> int:
        """Let the engine of a site hang, with everything that runs there; return its process."""
        pid = self.spawner(site).pid
        os.kill(pid, signal.SIGSTOP)
        return pid

    def kill_service(self) -> None:
        for site in SITES:
            spawner = self.spawner(site)
            spawner.kill()
            assert spawner.is_gone()

    def kill_watcher(self, job_id: JobId, attempt: int) -> None:
        for home in self.homes.values():
            direct = LocalExecutor(home)
            record = direct.home.attempt(job_id, attempt).record()
            direct.close()
            if "supervisor" in record:
                supervisor = Process(record["supervisor"])
                supervisor.kill()
                assert supervisor.is_gone()

    def lose_node(self, node: NodeId) -> None:
        self._mark(node, lost=True)

    def restore_node(self, node: NodeId) -> None:
        self._mark(node, lost=False)

    def _mark(self, node: NodeId, *, lost: bool) -> None:
        [home] = [self.homes[name] for name, nodes in SITES.items() if node in nodes]
        direct = LocalExecutor(home)
        if lost:
            direct.lose_node(node)
        else:
            direct.restore_node(node)
        wait_for(direct, lambda _: direct.home.is_lost(node) == lost)
        direct.close()

    def close(self) -> None:
        """Leave nothing behind: end every attempt, then the spawners."""
        for client in self._clients:
            client.close()
        for home in self.homes.values():
            self._end(home)

    def _end(self, home: str) -> None:
        last = LocalExecutor(home)
        for state in last.attempts():
            if state.end is None:
                last.stop(state.job_id, state.attempt, NOW_MS)
        wait_for(last, lambda _: all(state.end for state in last.attempts()))
        spawner = Process(last.link.spawner)
        last.stop_spawner()
        assert spawner.is_gone()
        last.close()
