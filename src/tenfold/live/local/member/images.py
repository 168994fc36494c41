"""Run a member inside an image, with whichever of podman or apptainer this machine has.

Either runs in the foreground as a child of the supervisor, so that signals, exit codes and the
end of everything are those of any member. Nothing is ever fetched from elsewhere: an image is on
the machine already, or the start fails with that reason.

What a job sets reaches the inside alone. podman reads variables of its own, and may run as
another user than the job, so it gets the variables of the inside in a file. Arguments carry none:
others on the machine can read them.
"""

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tenfold.live.local.attempt.places import JobFolders
from tenfold.live.local.spawner.wire import LaunchLine, UserLine

RUNTIMES = ("podman", "apptainer")
INITS = (
    "/usr/libexec/podman/catatonit",
    "/usr/lib/podman/catatonit",
    "/usr/bin/catatonit",
    "/usr/bin/tini",
    "/usr/bin/docker-init",
)
"""What may stand between the kernel and a command in its own process space. Without one a command
that does not handle SIGTERM itself does not hear it."""
DEVICE_SPECS = ("/etc/cdi", "/var/run/cdi")
OWN_NAMES = (
    "HOME",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "TMPDIR",
    "CONTAINERS_CONF",
    "CONTAINERS_STORAGE_CONF",
    "CONTAINERS_REGISTRIES_CONF",
)
"""What podman reads of the environment of whoever started the controller: where images lie."""
_MARK = "TENFOLD_HEARTBEAT"


class ContainerCommand(NamedTuple):
    """One member inside an image: what is run, with which variables, and as whom."""

    words: list[str]
    environment: dict[str, str]
    user: UserLine | None


class Mounts(NamedTuple):
    """What a member inside sees of the outside, and which attempt it belongs to."""

    attempt: str
    """The folder of the attempt."""
    work: str
    shared: list[str]


def find_runtime(path: str) -> str:
    """Return the path of the first runtime that PATH holds; empty where it holds none."""
    for name in RUNTIMES:
        for folder in path.split(":"):
            file = f"{folder}/{name}"
            if folder and os.path.isfile(file) and os.access(file, os.X_OK):
                return file
    return ""


def is_podman(runtime: str) -> bool:
    """Tell whether a runtime keeps containers of its own, which must be removed by it."""
    return runtime.rpartition("/")[2] == "podman"


def runtime_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what a runtime gets of the controller's environment, and no job does."""
    return {name: environment[name] for name in OWN_NAMES if name in environment}


def lacks_device_spec(gpus: Sequence[int], specs: Sequence[str] = DEVICE_SPECS) -> bool:
    """Tell whether GPUs that are here cannot be shown to an image: nobody described them."""
    return bool(_present(gpus)) and not any(_describes_gpus(folder) for folder in specs)


def container_command(
    launch: LaunchLine,
    rank: int,
    environment: dict[str, str],
    attempt: str,
    folders: JobFolders,
    beat: str,
) -> ContainerCommand:
    """Return how a member is run in its image; may write a file, so raises `OSError`.

    podman finds its images as the user that runs Tenfold, and becomes the team's user inside.
    """
    view = Mounts(attempt, folders.workdir, [*folders.mounts(), beat])
    gpus, user = launch["members"][rank]["gpus"], launch.get("user")
    if is_podman(launch["runtime"]):
        words = [*_podman(launch, rank, environment, view, _present(gpus)), *_as_user(user)]
        own = {**runtime_environment(launch), _MARK: environment[_MARK]}
        return ContainerCommand([*words, launch["image"], *launch["command"]], own, None)
    words = [launch["runtime"], "exec", "--no-home", f"--pwd={view.work}"]
    words += [f"--bind={path}" for path in view.shared]
    if gpus:
        words.append("--nv")
    return ContainerCommand([*words, launch["image"], *launch["command"]], environment, user)


def container_name(attempt: str, rank: int) -> str:
    """Return a name that no other attempt has while this one has its folder."""
    status = os.stat(attempt)
    return f"tenfold-{status.st_dev:x}-{status.st_ino:x}-{rank}"


def runtime_environment(launch: LaunchLine) -> dict[str, str]:
    """Return the variables of the runtime itself; none that a job may set."""
    return {**launch.get("runtime_env", {}), **launch["inherited"]}


def _podman(
    launch: LaunchLine,
    rank: int,
    environment: Mapping[str, str],
    view: Mounts,
    devices: Sequence[int],
) -> list[str]:
    seen = {**environment}
    named = dict(launch["env"])
    for name in ("PATH", "HOME"):
        # The image's own, unless the job names another.
        if name not in named:
            seen.pop(name, None)
    if devices:
        # Inside, those that are shown are counted from 0.
        seen["CUDA_VISIBLE_DEVICES"] = ",".join(str(number) for number in range(len(devices)))
    words = [launch["runtime"], "run", "--rm", "--pull=never"]
    words += [f"--name={container_name(view.attempt, rank)}"]
    words += [
        f"--label=tenfold.job={launch['job']}",
        f"--label=tenfold.attempt={launch['attempt']}",
    ]
    words += ["--network=host", "--ipc=host", *_init()]
    # In the cgroup of the attempt, so that its limits hold and nothing is left behind.
    words += ["--cgroups=disabled", "--log-driver=passthrough"]
    # SELinux would hide the folders; the image's own entry point would run another command.
    words += ["--security-opt=label=disable", "--entrypoint="]
    words += [f"--workdir={view.work}", f"--env-file={_field(_env_file(view.attempt, rank, seen))}"]
    words += [f"--mount={_bind(path)}" for path in view.shared]
    return words + [f"--device=nvidia.com/gpu={device}" for device in devices]


def _as_user(user: UserLine | None) -> list[str]:
    """Return what makes a team's user of the one inside, and lets it become no other."""
    if user is None:
        return []
    words = [f"--user={user['uid']}:{user['gid']}", "--cap-drop=all"]
    words += ["--security-opt=no-new-privileges"]
    return words + [f"--group-add={group}" for group in user["groups"]]


def _init() -> list[str]:
    for file in INITS:
        if os.access(file, os.X_OK):
            return ["--init", f"--init-path={file}"]
    return []


def _bind(path: str) -> str:
    """Return a mount at the same path."""
    return f"type=bind,{_field(f'source={path}')},{_field(f'target={path}')}"


def _field(text: str) -> str:
    """Return a field of a line of CSV, as which podman reads some of its options."""
    return '"' + text.replace('"', '""') + '"' if "," in text or '"' in text else text


def _env_file(attempt: str, rank: int, environment: Mapping[str, str]) -> str:
    path = f"{attempt}/{rank}.env"
    text = "".join(f"{name}={value}\n" for name, value in environment.items())
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        rest = memoryview(text.encode(errors="surrogateescape"))
        while rest:
            rest = rest[os.write(file, rest) :]
    finally:
        os.close(file)
    return path


def _present(gpus: Sequence[int]) -> list[int]:
    """Return the GPUs that are here: those of a virtual node are numbered, and not here."""
    return [gpu for gpu in gpus if os.path.exists(f"/dev/nvidia{gpu}")]


def _describes_gpus(folder: str) -> bool:
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    for name in names:
        try:
            with open(f"{folder}/{name}", "rb") as file:
                if b"nvidia.com/gpu" in file.read():
                    return True
        except OSError:
            continue
    return False
