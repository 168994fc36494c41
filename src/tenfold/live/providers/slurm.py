"""Rent nodes of a Slurm cluster that its power saving has switched off.

A zone is a partition. `rent` powers nodes up, `release` powers them down; Slurm's own
ResumeProgram and SuspendProgram do what that takes, in a cloud or in a machine room.
"""

from collections.abc import Sequence
from threading import Event

from tenfold.live.providers.provider import Instance, InstanceState, NoCapacity
from tenfold.live.slurm.commands import CommandFailed, SlurmCommands

OFF = "~"
STARTING = "#"
STOPPING = "%"
SEEN_TRIES, SEEN_PAUSE_S = 60, 0.5
_LIST = ("sinfo", "--noheader", "--Node", "--format", "%N|%P|%T")


class SlurmProvider:
    """Powered-down nodes of a Slurm cluster as a provider."""

    name = "slurm"

    def __init__(self, commands: SlurmCommands, partitions: Sequence[str]) -> None:
        """Take the partitions whose nodes may be powered up and down."""
        self._commands = commands
        self._partitions = tuple(partitions)

    def rent(self, zone: str, nodes: int) -> tuple[str, ...]:
        """Power up nodes of a partition that are switched off."""
        off = [
            name
            for name, partition, state in self._nodes()
            if state.endswith(OFF) and partition == zone
        ]
        if len(off) < nodes:
            raise NoCapacity(zone, f"{len(off)} of {nodes} nodes are switched off")
        chosen = tuple(off[:nodes])
        self._update(chosen, "power_up")
        self._wait_until_seen(chosen)
        return chosen

    def instances(self) -> tuple[Instance, ...]:
        """Return the nodes of the partitions that are on, or on their way."""
        return tuple(
            Instance(id=name, zone=partition, state=_state(state), address=name)
            for name, partition, state in self._nodes()
            if not state.endswith(OFF) and not state.startswith("down")
        )

    def release(self, ids: Sequence[str]) -> None:
        """Power nodes down."""
        on = {one.id for one in self.instances() if one.state != "stopping"}
        leaving = [name for name in ids if name in on]
        if leaving:
            self._update(leaving, "power_down")

    def _nodes(self) -> list[tuple[str, str, str]]:
        """Return name, partition and state of every node of the partitions, in order of name."""
        rows: list[tuple[str, str, str]] = []
        for line in self._commands.run(*_LIST).splitlines():
            name, partition, state = (part.strip() for part in line.split("|"))
            if (partition := partition.rstrip("*")) in self._partitions:
                rows.append((name, partition, state))
        return sorted(rows)

    def _wait_until_seen(self, chosen: Sequence[str]) -> None:
        """Wait until Slurm no longer lists nodes as off: it does so a moment after the request."""
        pause = Event()
        for _ in range(SEEN_TRIES):
            if not any(state.endswith(OFF) for name, _, state in self._nodes() if name in chosen):
                return
            pause.wait(SEEN_PAUSE_S)

    def _update(self, nodes: Sequence[str], state: str) -> None:
        named = ",".join(nodes)
        try:
            self._commands.run("scontrol", "update", f"nodename={named}", f"state={state}")
        except CommandFailed as error:
            raise NoCapacity(named, error.message) from error


def _state(text: str) -> InstanceState:
    if text.endswith(STARTING):
        return "starting"
    return "stopping" if text.endswith(STOPPING) else "running"
