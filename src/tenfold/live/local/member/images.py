"""Run a member in a container image, with podman or apptainer.

The runtime runs in the foreground as a child of the supervisor, so signals, exit codes and clean-up
work as for any member. Nothing is pulled: an image is on the machine already, or the start fails.

The job's variables only reach the container. podman reads variables of its own, and may run as
another user than the job, so it gets the job's variables in a file. They are not passed as
arguments, which other users of the machine can read.
"""

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tenfold.live.local.attempt.folder import private_folder
from tenfold.live.local.attempt.places import JobFolders
from tenfold.live.local.member.mounts import TeamMounts
from tenfold.live.local.spawner.wire import LaunchLine, ShellLine, UserLine

RUNTIMES = ("podman", "apptainer")
INITS = (
    "/usr/libexec/podman/catatonit",
    "/usr/lib/podman/catatonit",
    "/usr/bin/catatonit",
    "/usr/bin/tini",
    "/usr/bin/docker-init",
)
"""Init programs for a container. Without one, a command that does not handle SIGTERM does not
receive it."""
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
"""Variables that podman reads from the control plane's environment: where images are stored."""
_MARK = "TENFOLD_HEARTBEAT"


class ContainerCommand(NamedTuple):
    """One member in a container: command line, variables and user."""

    words: list[str]
    environment: dict[str, str]
    user: UserLine | None
    mounts: TeamMounts | None = None
    """What to mount before the command runs."""


class Mounts(NamedTuple):
    """What a member in a container sees of the host, and its attempt."""

    attempt: str
    """The folder of the attempt."""
    work: str
    shared: list[tuple[str, str]]
    """Source and target of each mount."""


def find_runtime(path: str) -> str:
    """Return the first runtime on PATH; empty if there is none."""
    for name in RUNTIMES:
        for folder in path.split(":"):
            file = f"{folder}/{name}"
            if folder and os.path.isfile(file) and os.access(file, os.X_OK):
                return file
    return ""


def is_podman(runtime: str) -> bool:
    """Return whether a runtime keeps container records that it must remove."""
    return runtime.rpartition("/")[2] == "podman"


def runtime_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that only the runtime gets."""
    return {name: environment[name] for name in OWN_NAMES if name in environment}


def lacks_device_spec(gpus: Sequence[int], specs: Sequence[str] = DEVICE_SPECS) -> bool:
    """Return whether existing GPUs cannot be passed to a container: they have no CDI spec."""
    return bool(_present(gpus)) and not any(_describes_gpus(folder) for folder in specs)


def container_command(
    launch: LaunchLine,
    rank: int,
    environment: dict[str, str],
    attempt: str,
    folders: JobFolders,
    beat: str,
) -> ContainerCommand:
    """Return how to run a member in its image; writes a file, so it may raise `OSError`.

    podman finds images as the user that runs Tenfold, and becomes the team's user inside.
    """
    gpus, user = launch["members"][rank]["gpus"], launch.get("user")
    paths = folders.mounts()
    sources, mounts = paths, None
    if user is not None and is_podman(launch["runtime"]):
        sources = _mount_points(folders.home.mounts, len(paths))
        mounts = TeamMounts(user, folders.team, list(zip(paths, sources, strict=True)))
    view = Mounts(attempt, folders.workdir, [*zip(sources, paths, strict=True), (beat, beat)])
    if is_podman(launch["runtime"]):
        words = [*_podman(launch, rank, environment, view, _present(gpus)), *_as_user(user)]
        own = {**runtime_environment(launch), _MARK: environment[_MARK]}
        return ContainerCommand([*words, launch["image"], *launch["command"]], own, None, mounts)
    words = [launch["runtime"], "exec", "--no-home", f"--pwd={view.work}"]
    words += [f"--bind={path}" for _, path in view.shared]
    if gpus:
        words.append("--nv")
    return ContainerCommand([*words, launch["image"], *launch["command"]], environment, user)


def shell_command(
    launch: LaunchLine,
    rank: int,
    environment: dict[str, str],
    attempt: str,
    folders: JobFolders,
    shell: ShellLine,
) -> ContainerCommand:
    """Return how to run a shell in the container of a member.

    podman has the member's variables, user and folder with the container. apptainer keeps no
    containers: the shell gets another one of the same image with the same folders.
    """
    if not is_podman(launch["runtime"]):
        one: LaunchLine = {**launch, "command": shell["command"]}
        beat = environment[_MARK]
        return container_command(one, rank, environment, attempt, folders, beat)
    words = [launch["runtime"], "exec", "--interactive"]
    words += ["--tty"] if "rows" in shell else []
    words += [f"--env=TERM={shell['term']}"] if "term" in shell else []
    own = {**runtime_environment(launch), _MARK: environment[_MARK]}
    return ContainerCommand([*words, container_name(attempt, rank), *shell["command"]], own, None)


def container_name(attempt: str, rank: int) -> str:
    """Return a container name that is unique while the attempt folder exists."""
    status = os.stat(attempt)
    return f"tenfold-{status.st_dev:x}-{status.st_ino:x}-{rank}"


def runtime_environment(launch: LaunchLine) -> dict[str, str]:
    """Return the variables of the runtime itself; jobs cannot set them."""
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
        # The image's own value, unless the job sets one.
        if name not in named:
            seen.pop(name, None)
    if devices:
        # Inside the container, devices are numbered from 0.
        seen["CUDA_VISIBLE_DEVICES"] = ",".join(str(number) for number in range(len(devices)))
    words = [launch["runtime"], "run", "--rm", "--pull=never"]
    words += [f"--name={container_name(view.attempt, rank)}"]
    words += [
        f"--label=tenfold.job={launch['job']}",
        f"--label=tenfold.attempt={launch['attempt']}",
    ]
    words += ["--network=host", "--ipc=host", *_init()]
    # In the cgroup of the attempt, so its limits apply and nothing is left behind.
    words += ["--cgroups=disabled", "--log-driver=passthrough"]
    # SELinux would hide the folders; the image's entry point would run another command.
    words += ["--security-opt=label=disable", "--entrypoint="]
    words += [f"--workdir={view.work}", f"--env-file={_field(_env_file(view.attempt, rank, seen))}"]
    words += [f"--mount={_bind(source, target)}" for source, target in view.shared]
    return words + [f"--device=nvidia.com/gpu={device}" for device in devices]


def _as_user(user: UserLine | None) -> list[str]:
    """Return the options to run as a team's user without privileges."""
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


def _mount_points(base: str, count: int) -> list[str]:
    """Return empty folders that only root can change."""
    folders = [f"{base}/{number}" for number in range(count)]
    for folder in folders:
        if not os.path.isdir(folder):
            private_folder(base)
            private_folder(folder)
    return folders


def _bind(source: str, target: str) -> str:
    return f"type=bind,{_field(f'source={source}')},{_field(f'target={target}')}"


def _field(text: str) -> str:
    """Return a CSV field, as podman parses some of its options."""
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
    """Return the GPUs that exist: those of virtual nodes may not."""
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
