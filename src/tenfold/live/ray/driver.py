"""Runs inside a Ray job: reserves the members' nodes, starts them, and passes on signals.

It has the members on the nodes that were ordered, in one placement group, so that they start
together or not at all. It is run by Ray as a program, and imports nothing of Tenfold: the nodes of
a Ray cluster need not have it.
"""

import json
import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

ray: Any = import_module("ray")
groups: Any = import_module("ray.util.placement_group")
strategies: Any = import_module("ray.util.scheduling_strategies")

CLAIMED = 0
POLL_S = 0.1
VERDICT_S = 30.0
"""How long Ray may take to find that a node is lost whose processes are gone. An assumption."""
PATIENCE = 50
"""Looks for the start of a command that is to be signalled."""
_RUN = """\
exec 3<&0 0< /dev/null
sh "$0" "$1" 3<&- &
member=$!
(
  cat <&3 > /dev/null
  # First the shell that would report the end of its command: that one did not end by itself.
  kill -KILL "$member" 2> /dev/null
  kill -KILL "-$(cat "$2")" 2> /dev/null
) &
exec 3<&-
wait "$member"
"""
"""Ends the member with the process that started it, which holds the other end of descriptor 3."""


class Member:
    """One member, in a process on its node."""

    def __init__(self, folder: str, script: str, rank: int) -> None:
        self._folder, self._script, self._rank = folder, script, rank
        self._process: subprocess.Popen[bytes] | None = None

    def run(self) -> int:
        """Run the member until it ends. Its result is in its file."""
        started = f"{self._folder}/{self._rank}.started"
        reads, holds = os.pipe()
        devices = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        self._process = subprocess.Popen(
            ["sh", "-c", _RUN, self._script, str(self._rank), started],
            stdin=reads,
            env={"PATH": os.defpath, "CUDA_VISIBLE_DEVICES": devices},
            start_new_session=True,
        )
        os.close(reads)
        self._process.wait()
        os.close(holds)
        return self._rank

    def signal(self, name: str) -> None:
        """Send a signal to the member's command; a kill ends the shell that watches it, too."""
        number = signal.Signals[f"SIG{name}"]
        started = Path(f"{self._folder}/{self._rank}.started")
        for _ in range(PATIENCE):
            if name == "KILL" or (started.exists() and started.read_text()):
                break
            time.sleep(POLL_S)
        if started.exists() and started.read_text():
            _signal(int(started.read_text()), number)
        if name == "KILL" and self._process is not None:
            # After its command, so that it can say how that ended.
            time.sleep(POLL_S)
            _signal(self._process.pid, number)


def _signal(pid: int, number: signal.Signals) -> None:
    for send in (os.killpg, os.kill):
        try:
            send(pid, number)
        except ProcessLookupError:
            continue
        return


def main(folder: str) -> int:
    """Run an attempt; return the exit status of the driver."""
    try:
        os.mkdir(f"{folder}/claim/taken")
    except FileExistsError:
        return CLAIMED
    if os.path.exists(f"{folder}/end.json"):
        return CLAIMED
    order = json.loads(Path(f"{folder}/ray.json").read_text())
    ray.init(address="auto", log_to_driver=False, logging_level="ERROR")
    group = _reserved(order, folder)
    if group is None:
        return 0
    try:
        return _watch(folder, order, _started(order, folder, group))
    finally:
        groups.remove_placement_group(group)


def _reserved(order: dict[str, Any], folder: str) -> Any:
    """Return the placement group once it is ready; None if the attempt is stopped before."""
    ids = {node["NodeName"]: node["NodeID"] for node in ray.nodes() if node["Alive"]}
    bundles: list[dict[str, float]] = []
    places: list[dict[str, str]] = []
    for member in order["members"]:
        bundle = {"CPU": max(member["cpus"], 0.01), "GPU": member["gpus"]}
        bundle["memory"] = member["memory_bytes"]
        bundles.append({key: value for key, value in bundle.items() if value})
        places.append({"ray.io/node-id": ids[member["node"]]})
    group = groups.placement_group(bundles, strategy="PACK", bundle_label_selector=places)
    while not group.wait(POLL_S):
        if _wanted(folder):
            groups.remove_placement_group(group)
            return None
    return group


def _started(order: dict[str, Any], folder: str, group: Any) -> list[Any]:
    """Return the actor of each member."""
    members: list[Any] = []
    for rank, member in enumerate(order["members"]):
        strategy = strategies.PlacementGroupSchedulingStrategy(
            group, placement_group_bundle_index=rank
        )
        made = ray.remote(Member).options(
            num_cpus=max(member["cpus"], 0.01),
            num_gpus=member["gpus"],
            memory=member["memory_bytes"] or None,
            scheduling_strategy=strategy,
            max_concurrency=2,
        )
        members.append(made.remote(folder, order["script"], rank))
    return members


def _watch(folder: str, order: dict[str, Any], members: list[Any]) -> int:
    """Wait for all members, pass on signals, and end the others when one fails."""
    runs: dict[Any, Any] = {member.run.remote(): member for member in members}
    nodes = dict(zip(runs, (member["node"] for member in order["members"]), strict=True))
    gone: list[str] = []
    sent = ""
    kill_at_s: float | None = None
    while runs:
        done, _ = ray.wait(list(runs), timeout=POLL_S)
        for one in done:
            del runs[one]
            try:
                ray.get(one)
            except ray.exceptions.RayError:
                # Its node or its process is gone: the others are of no use.
                gone.append(nodes[one])
                kill_at_s = 0.0
        wanted = _wanted(folder)
        if wanted and wanted != sent:
            sent = wanted
            _send(runs, wanted)
        if kill_at_s is None and not sent and os.path.exists(f"{folder}/claim/first"):
            kill_at_s = time.monotonic() + order["grace_s"]
            _send(runs, "TERM")
        if kill_at_s is not None and time.monotonic() >= kill_at_s:
            kill_at_s = time.monotonic() + 1.0
            _send(runs, "KILL")
    _wait_for_verdict(gone)
    return 0


def _wait_for_verdict(names: list[str]) -> None:
    """Return once Ray knows that a node is lost, if one is: the end of this job is read with it."""
    until_s = time.monotonic() + VERDICT_S
    while names and time.monotonic() < until_s:
        alive = {node["NodeName"] for node in ray.nodes() if node["Alive"]}
        if not alive.issuperset(names):
            return
        time.sleep(POLL_S)


def _send(runs: dict[Any, Any], name: str) -> None:
    for member in runs.values():
        member.signal.remote(name)


def _wanted(folder: str) -> str:
    try:
        return Path(f"{folder}/signal").read_text()
    except OSError:
        return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
