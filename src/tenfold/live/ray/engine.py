"""Ray as an engine: each attempt is one Ray job, whose driver reserves its nodes and members.

The name of the Ray job is derived from the attempt, and Ray refuses the same name twice. Its driver
claims the attempt before it starts a member, as on every engine.
"""

import json
import os
import sys
import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from shlex import quote

from tenfold.live.executor import Launch
from tenfold.live.external.engine import (
    EngineJob,
    EngineNode,
    EngineRefusal,
    JobPhase,
    Listing,
    Mark,
    Submission,
    Target,
)
from tenfold.live.external.script import NAME, Engagement, member_script
from tenfold.live.local.attempt.folder import write
from tenfold.live.local.attempt.places import JobFolders
from tenfold.live.local.spawner.wire import LaunchLine
from tenfold.live.ray.api import TOKEN, ApiRefused, RayApi
from tenfold.model.ids import JobId, NodeId
from tenfold.model.reason import Reason, Text

ORDER, SIGNAL = "ray.json", "signal"
DRIVER = Path(__file__).with_name("driver.py")
_PHASES: Mapping[str, JobPhase] = {
    "PENDING": "waiting",
    "RUNNING": "running",
    "STOPPED": "over",
    "SUCCEEDED": "over",
    "FAILED": "over",
}


class RayEngine:
    """One Ray cluster, through the HTTP API of its head."""

    name = "Ray"

    def __init__(
        self,
        home: str,
        address: str,
        *,
        environment: Mapping[str, str] | None = None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        """`names` are the names of Ray's nodes where they differ from ours."""
        own = os.environ if environment is None else environment
        self._api = RayApi(address, own.get(TOKEN, ""))
        self._names = names or {}
        # Ray's jobs are found again by name; another executor's have another prefix.
        digest = sha256(os.path.realpath(home).encode()).hexdigest()[:10]
        self._prefix = f"tenfold-{digest}-"
        self._addresses: dict[str, str] = {}
        self._seen: dict[str, None] = {}
        """The names of all nodes so far."""
        self._began_s = time.monotonic()

    def why_refused(self, launch: Launch) -> Reason | None:
        """Return why Ray can never start an attempt."""
        if launch.run_spec.image:
            image = Text(launch.run_spec.image)
            return Reason("no-container-runtime", {"image": image, "runtimes": ("apptainer",)})
        return None

    def script(self, launch: LaunchLine, folder: str, folders: JobFolders) -> str:
        """Return what each member runs."""
        first = launch["members"][0]["node"]
        number = int(sha256(folder.encode()).hexdigest()[:8], 16)
        engagement = Engagement(
            address=self._addresses.get(first, "127.0.0.1"), port_from=str(number)
        )
        return member_script(launch, folder, folders, engagement)

    def submit(self, submission: Submission) -> str:
        """Submit an attempt and return the name of its Ray job."""
        launch, folder = submission.launch, submission.folder
        handle = self._handle(launch["job"], launch["attempt"])
        order = {
            "folder": folder,
            "script": f"{folder}/{NAME}",
            "grace_s": launch["grace_ms"] / 1_000,
            "members": [
                {
                    "node": self._names.get(member["node"], member["node"]),
                    "cpus": member["cpus_milli"] / 1_000,
                    "gpus": len(member["gpus"]),
                    "memory_bytes": member["memory_mib"] << 20,
                }
                for member in launch["members"]
            ],
        }
        write(f"{folder}/{ORDER}", json.dumps(order))
        job = {
            "entrypoint": f"{quote(sys.executable)} {quote(str(DRIVER))} {quote(folder)}",
            "submission_id": handle,
            "metadata": {
                "tenfold_job": launch["job"],
                "tenfold_attempt": str(launch["attempt"]),
                "tenfold_epoch": str(submission.fence),
            },
        }
        try:
            self._api.submit(job)
        except ApiRefused as refused:
            if "already" in refused.text:
                return handle
            raise EngineRefusal("engine-refused", f"Ray: {refused}") from None
        return handle

    def listing(self) -> Listing:
        """Return our jobs and all nodes: two requests, however many there are."""
        jobs: list[EngineJob] = []
        for row in self._api.jobs():
            handle, metadata, state = row.submission_id or "", row.metadata or {}, row.status
            if not handle.startswith(self._prefix):
                continue
            mark = Mark(JobId(metadata["tenfold_job"]), int(metadata["tenfold_attempt"]))
            jobs.append(
                EngineJob(
                    handle=handle,
                    mark=mark,
                    phase=_PHASES.get(state, "running"),
                    cause="cancelled" if state == "STOPPED" else "",
                    state=state,
                )
            )
        return Listing(jobs=tuple(jobs), nodes=tuple(self._nodes()))

    def terminate(self, target: Target) -> None:
        """Have the driver send SIGTERM to all members."""
        write(f"{target.folder}/{SIGNAL}", "TERM")

    def kill(self, target: Target, *, is_repeated: bool) -> None:
        """Have the driver kill all members; stop it if it does not."""
        write(f"{target.folder}/{SIGNAL}", "KILL")
        if is_repeated:
            self.cancel(target.handle)

    def cancel(self, handle: str) -> None:
        """Stop the Ray job, unless it is over."""
        try:
            self._api.stop(handle)
        except ApiRefused:
            return

    def cost(self) -> str:
        """Return what the requests have cost."""
        cost, lived_s = self._api.cost, time.monotonic() - self._began_s
        return (
            f"{cost.requests} requests to Ray in {lived_s:.0f} s, {cost.seconds:.1f} s in all, "
            f"{cost.bytes_read / 1e6:.1f} MB read"
        )

    def close(self) -> None:
        """Disconnect."""
        self._api.close()

    def _handle(self, job: str, attempt: int) -> str:
        return f"{self._prefix}{sha256(job.encode()).hexdigest()[:16]}-{attempt}"

    def _nodes(self) -> list[EngineNode]:
        """Return the nodes under our names, with those that were there and are there no more.

        A node that starts again is another one to Ray, under the same name; one that is lost may
        have lost its name, too.
        """
        alive: set[str] = set()
        for row in self._api.nodes():
            if row.is_alive:
                alive.add(row.name)
                self._addresses[row.name] = row.ip or "127.0.0.1"
            elif row.raylet.node_name:
                self._seen.setdefault(row.name)
        self._seen.update(dict.fromkeys(sorted(alive)))
        ours: dict[str, list[str]] = {}
        for name, theirs in self._names.items():
            ours.setdefault(theirs, []).append(name)
            self._addresses[name] = self._addresses.get(theirs, "127.0.0.1")
        return [
            EngineNode(id=NodeId(name), is_up=theirs in alive)
            for theirs in self._seen
            for name in ours.get(theirs, [theirs])
        ]
