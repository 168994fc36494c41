"""Run a member inside an image, with whichever of podman or apptainer this machine has.

Either runs in the foreground as a child of the supervisor, so that signals, exit codes and the
end of everything are those of any member. Values of variables travel in the environment and
names alone in the arguments: others on the machine can read arguments.
"""

import os
from collections.abc import Mapping, Sequence

RUNTIMES = ("podman", "apptainer")


def find_runtime(path: str) -> str:
    """Return the path of the first runtime that PATH holds; empty where it holds none."""
    for name in RUNTIMES:
        for folder in path.split(":"):
            file = f"{folder}/{name}"
            if folder and os.path.isfile(file) and os.access(file, os.X_OK):
                return file
    return ""


def image_command(
    runtime: str,
    image: str,
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    folder: str,
    shared: Sequence[str],
) -> list[str]:
    """Return the arguments that run `command` in the image, seeing the `shared` folders."""
    devices = environment.get("CUDA_VISIBLE_DEVICES", "")
    if runtime.rpartition("/")[2] == "podman":
        return _podman(runtime, image, command, environment, folder, shared, devices)
    return _apptainer(runtime, image, command, folder, shared, devices)


def _podman(  # noqa: PLR0913, PLR0917 - one flag after another
    runtime: str,
    image: str,
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: str,
    shared: Sequence[str],
    devices: str,
) -> list[str]:
    words = [runtime, "run", "--rm", "--init", "--network=host", "--ipc=host"]
    # In the cgroup of the attempt, so that its limits hold and nothing is left behind.
    words += ["--cgroups=disabled", f"--workdir={folder}"]
    words += [f"--volume={path}:{path}" for path in shared]
    # PATH and HOME are the image's own.
    words += [f"--env={name}" for name in environment if name not in ("PATH", "HOME")]
    words += [f"--device=nvidia.com/gpu={device}" for device in devices.split(",") if device]
    return [*words, image, *command]


def _apptainer(
    runtime: str,
    image: str,
    command: Sequence[str],
    folder: str,
    shared: Sequence[str],
    devices: str,
) -> list[str]:
    words = [runtime, "exec", "--no-home", f"--pwd={folder}"]
    words += [f"--bind={path}" for path in shared]
    if devices:
        words.append("--nv")
    return [*words, image, *command]
