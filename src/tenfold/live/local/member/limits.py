"""CPU, memory and process limits by what the machine supports: cgroup v2, cgroup v1, or prlimit.

Support is tested, not derived from versions: a container may see a controller without being allowed
to use it. An attempt without any of the three limits gets no group: moving a process into one takes
a tenth of a whole start and blocks other starts meanwhile.
"""

import os
import resource
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Literal

ROOT = "/sys/fs/cgroup"
PERIOD_US = 100_000
QUOTA_US_LEAST = 1_000
"""Minimum of the kernel."""
MIB = 1024 * 1024
NO_SWAP = {"memory.swap.max": "0", "memory.oom.group": "1"}
"""Memory is not swapped, which would slow down others; out of memory kills the whole group."""
V1_WITH_SWAP = "memory.memsw.limit_in_bytes"
NOTHING: Mapping[str, str] = {}
PIDS_MOST = 16_384
"""Processes and threads of an attempt. An assumption: several times those of a training job on
eight GPUs, and a fraction of what a machine can have."""
PREFIX = "tenfold-"
"""Start of the name of every group that a spawner makes beside its jobs'."""
MemoryScope = Literal["job", "process"]
"""A job as a whole, or each of its processes by itself."""
ABANDONED_S = 60.0
"""Age of an empty group that no attempt can be about to join."""
MAKE_TRIES = 3


class AttemptCgroup:
    """The control groups of one attempt; empty without cgroups."""

    def __init__(self, folders: list[str], *, kind: str) -> None:
        self.folders = folders
        self.kind = kind

    def join(self, memory_mib: int) -> None:
        """Put this process, which becomes a member, under the limits."""
        for folder in self.folders:
            _put(f"{folder}/cgroup.procs", "0")
        if self.kind == "prlimit" and memory_mib:
            # Data, not address space: GPU drivers reserve far more addresses than they use.
            most = memory_mib * MIB
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))

    def pids(self) -> list[int]:
        """Return the processes in the group."""
        found: dict[int, None] = {}
        for folder in self.folders:
            for word in _text(f"{folder}/cgroup.procs").split():
                found[int(word)] = None
        return list(found)

    def ran_out_of_memory(self) -> bool:
        """Return whether the kernel killed a process of the group for memory."""
        for folder in self.folders:
            for name in ("memory.events", "memory.oom_control"):
                for line in _text(f"{folder}/{name}").splitlines():
                    word, _, count = line.partition(" ")
                    if word == "oom_kill" and count.strip() != "0":
                        return True
        return False

    def remove(self) -> None:
        """Remove the groups; one with a process left stays until the next sweep."""
        for folder in self.folders:
            _remove(folder)


class ResourceLimits:
    """How limits are enforced: group folders by controller, none for prlimit."""

    def __init__(self, kind: str, bases: dict[str, str]) -> None:
        self.kind = kind
        self._bases = bases

    @property
    def memory(self) -> MemoryScope:
        """What a memory limit is the limit of."""
        return "job" if self._bases.get("memory") else "process"

    def group(self, name: str) -> AttemptCgroup:
        """Return the existing groups of an attempt, to kill its processes."""
        folders = [f"{base}/{name}" for base in dict.fromkeys(self._bases.values())]
        return AttemptCgroup(
            [folder for folder in folders if os.path.isdir(folder)], kind=self.kind
        )

    def make(self, name: str, *, cpus_milli: int, memory_mib: int, pids: int = 0) -> AttemptCgroup:
        """Return new groups with limits; 0 means no limit. prlimit covers what groups cannot.

        Without a controller for processes, they are limited by user and not by attempt.
        """
        folders: list[str] = []
        limited = True
        if cpus_milli:
            quota = max(cpus_milli * PERIOD_US // 1_000, QUOTA_US_LEAST)
            settings = {"cpu.max": f"{quota} {PERIOD_US}", "cpu.cfs_quota_us": str(quota)}
            limited &= self._add(folders, "cpu", name, settings)
        if memory_mib:
            most = str(memory_mib * MIB)
            settings = {"memory.max": most, "memory.limit_in_bytes": most}
            limited &= self._add(folders, "memory", name, settings, {**NO_SWAP, V1_WITH_SWAP: most})
        if pids:
            self._add(folders, "pids", name, {"pids.max": str(pids)})
        return AttemptCgroup(folders, kind=self.kind if limited else "prlimit")

    def join_own(self, name: str, pids: int) -> bool:
        """Put this process into a new group with a limit of processes; False if it cannot be."""
        base = self._bases.get("pids", "")
        folder = f"{base}/{name}"
        if not base or not self._make_group(base, folder):
            return False
        if self.limit_own(name, pids) and _put(f"{folder}/cgroup.procs", "0"):
            return True
        _rmdir(folder)
        return False

    def limit_own(self, name: str, pids: int) -> bool:
        """Set the limit of a group that a supervisor is in; 0 means no limit."""
        most = str(pids + 1) if pids else "max"
        return _put(f"{self._bases['pids']}/{name}/pids.max", most)

    def sweep(self, active: Collection[str] = ()) -> None:
        """Remove the groups of ended attempts, by the names of those that are not."""
        for base in dict.fromkeys(self._bases.values()):
            for name in _groups_in(base):
                if name not in active:
                    _remove(f"{base}/{name}")

    def remove_abandoned(self, now_s: float, older_s: float = ABANDONED_S) -> None:
        """Remove empty groups of spawners that were killed and whose state directory is gone.

        A spawner that lives makes its group again when it needs one.
        """
        for own in dict.fromkeys(self._bases.values()):
            parent, _, own_name = own.rpartition("/")
            for name in _groups_in(parent):
                base = f"{parent}/{name}"
                if not name.startswith(PREFIX) or name == own_name:
                    continue
                below = [f"{base}/{one}" for one in _groups_in(base)]
                for folder in [one for one in (*below, base) if _age_s(one, now_s) >= older_s]:
                    _rmdir(folder)

    def leave(self) -> None:
        """Remove what `detect_limits` made, where nothing is in it any more."""
        self.sweep()
        for base in self._bases.values():
            _rmdir(base)

    def _add(
        self,
        folders: list[str],
        controller: str,
        name: str,
        settings: dict[str, str],
        optional: Mapping[str, str] = NOTHING,
    ) -> bool:
        """Create a group with the supported settings; return whether one was applied."""
        base = self._bases.get(controller, "")
        folder = f"{base}/{name}"
        if not base or not self._make_group(base, folder):
            return False
        if folder not in folders:
            folders.append(folder)
        applied = any([_put(f"{folder}/{file}", value) for file, value in settings.items()])
        for file, value in optional.items():
            _put(f"{folder}/{file}", value)
        return applied

    def _make_group(self, base: str, folder: str) -> bool:
        """Create a group, and the one above it, which another spawner may remove while empty."""
        for _ in range(MAKE_TRIES):
            if _mkdir(folder):
                return True
            if not _mkdir(base):
                return False
            if self.kind == "cgroup-v2":
                _enable_controllers(base)
        return False


class SupervisorGroup:
    """A group for a supervisor and its members, joined once and kept for later attempts.

    Members are born in it, so nothing is left to do between fork and exec. It limits processes and
    nothing else: memory and CPU of a job must not be those of its supervisor.
    """

    def __init__(self, limits: ResourceLimits) -> None:
        self.name = ""
        """Empty until this process is in a group."""
        self.limits = limits
        self._pids = 0

    def join(self, name: str, pids: int) -> bool:
        """Be in a group with this limit, 0 for none; return whether a new one was joined."""
        if self.name:
            self.limit(pids)
        elif self.limits.join_own(name, pids):
            self.name, self._pids = name, pids
            return True
        return False

    def limit(self, pids: int) -> None:
        """Change the limit of the group, if this process is in one."""
        if self.name and pids != self._pids and self.limits.limit_own(self.name, pids):
            self._pids = pids


def detect_limits(name: str, *, root: str = ROOT, own: str = "/proc/self/cgroup") -> ResourceLimits:
    """Return the best mechanism that works; `name` separates state directories."""
    paths = _own_paths(own)
    unified = _find_unified(name, root, paths.get("", ""))
    if unified:
        bases = {"cpu": unified, "memory": unified}
        if "pids" in _text(f"{unified}/cgroup.controllers").split():
            bases["pids"] = unified
        return ResourceLimits("cgroup-v2", bases)
    bases: dict[str, str] = {}
    for controller in ("cpu", "memory", "pids"):
        base = _find_v1(name, f"{root}/{controller}", paths.get(controller))
        if base:
            bases[controller] = base
    return ResourceLimits("cgroup-v1" if bases else "prlimit", bases)


def _own_paths(own: str) -> dict[str, str]:
    """Return this process's path by v1 controller; v2 is under the empty name."""
    paths: dict[str, str] = {}
    for line in _text(own).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            paths[controller] = path.rstrip("/")
    return paths


def _find_unified(name: str, root: str, path: str) -> str:
    """Return the folder for v2 groups; empty if CPU and memory cannot be limited there.

    Its own group rarely works: a shell and the control plane are in it too, and a group with
    processes cannot delegate controllers. An ancestor may work, if this user has access.
    """
    mount = root if os.path.exists(f"{root}/cgroup.controllers") else f"{root}/unified"
    for parent in _upwards(mount, path):
        if "memory" in _text(f"{parent}/cgroup.controllers").split():
            base = f"{parent}/{name}"
            if _mkdir(base):
                if _delegates(parent, base) or _delegates_after_move(parent, base, name):
                    return base
                _rmdir(base)
    return ""


def _upwards(mount: str, path: str) -> Iterator[str]:
    """Yield a group and its ancestors, only the mount if it is outside this view."""
    if os.path.isdir(mount + path):
        while path.strip("/"):
            yield mount + path
            path = path.rpartition("/")[0]
    yield mount


def _delegates(parent: str, base: str) -> bool:
    """Return whether groups below `base` can limit processes."""
    _enable_controllers(parent)
    given = _text(f"{base}/cgroup.controllers").split()
    return "cpu" in given and "memory" in given and _enable_controllers(base) and _can_join(base)


def _delegates_after_move(parent: str, base: str, name: str) -> bool:
    """Move this process to a leaf group if it is alone in its group, and try again."""
    if f"{os.getpid()}" not in _text(f"{parent}/cgroup.procs").split():
        return False
    leaf = f"{parent}/{name}-spawner"
    if _mkdir(leaf) and _put(f"{leaf}/cgroup.procs", "0"):
        if _delegates(parent, base):
            return True
        _put(f"{parent}/cgroup.procs", "0")
    _rmdir(leaf)
    return False


def _can_join(base: str) -> bool:
    """Return whether a process of this user can be moved there, by trying with a fork."""
    probe = f"{base}/probe"
    if not _mkdir(probe):
        return False
    pid = os.fork()
    if pid == 0:
        os._exit(0 if _put(f"{probe}/cgroup.procs", "0") else 1)
    _, status = os.waitpid(pid, 0)
    _rmdir(probe)
    return status == 0


def _enable_controllers(folder: str) -> bool:
    # Apart from the others: where it is missing, the whole line would be refused.
    _put(f"{folder}/cgroup.subtree_control", "+pids")
    return _put(f"{folder}/cgroup.subtree_control", "+cpu +memory")


def _find_v1(name: str, mount: str, path: str | None) -> str:
    if path is None:
        return ""
    parent = mount + path if os.path.isdir(mount + path) else mount
    if not os.path.exists(f"{parent}/cgroup.procs"):
        return ""
    base = f"{parent}/{name}"
    return base if _mkdir(base) else ""


def _mkdir(folder: str) -> bool:
    try:
        os.mkdir(folder)
    except FileExistsError:
        return True
    except OSError:
        return False
    return True


def _groups_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _age_s(folder: str, now_s: float) -> float:
    """Return the time since a group or one in it was made; 0 if it is gone."""
    try:
        return now_s - os.stat(folder).st_mtime
    except OSError:
        return 0.0


def _remove(folder: str) -> None:
    """Remove a group and those that a job made in it; one with a process stays."""
    # Not recursive: a job may nest groups arbitrarily deep.
    found = [folder]
    for one in found:
        found += [f"{one}/{name}" for name in _groups_in(one)]
    for one in reversed(found):
        _rmdir(one)


def _rmdir(folder: str) -> None:
    with suppress(OSError):
        os.rmdir(folder)


def _put(path: str, value: str) -> bool:
    try:
        file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(file, value.encode())
    except OSError:
        return False
    finally:
        os.close(file)
    return True


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""
