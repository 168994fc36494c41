"""Validate launches, and encode them for the spawner."""

import re

from tenfold.clock.wall import now_ms
from tenfold.live.acceptance import is_node_test
from tenfold.live.executor import Launch
from tenfold.live.local.attempt.places import escapes_team_folder
from tenfold.live.local.member.images import RUNTIMES, find_runtime, is_podman, lacks_device_spec
from tenfold.live.local.member.team_users import TeamUsers, UidsExhausted
from tenfold.live.local.spawner.wire import LaunchLine, UserLine
from tenfold.model.ids import TeamId
from tenfold.model.reason import Reason, TeamRef, Text

IMAGE_NAME = re.compile(
    r"[A-Za-z0-9][\w.-]*(:\d+/[\w.-]+)?(/[\w.-]+)*(:[\w.-]+)?(@sha256:[0-9a-f]{64})?"
)
TRANSPORTS = (
    *("containers-storage", "dir", "docker", "docker-archive", "docker-daemon"),
    *("oci", "oci-archive", "ostree", "sif", "tarball"),
)
"""Transport prefixes: podman would read from there, possibly more than the job may."""


def why_refused(launch: Launch, path: str) -> tuple[str, Reason | None]:
    """Return the runtime for the launch's image, and why the launch is refused, if so."""
    reason = why_unusable(launch)
    if reason is not None or not launch.run_spec.image:
        return "", reason
    runtime = find_runtime(path)
    if runtime:
        return runtime, _why_image_unusable(launch, runtime)
    fields = {"image": Text(launch.run_spec.image), "runtimes": RUNTIMES}
    return "", Reason("no-container-runtime", fields)


def why_unusable(launch: Launch) -> Reason | None:
    """Return why no executor can run a launch."""
    spec = launch.run_spec
    if not spec.command or not spec.command[0]:
        return Reason("no-command")
    if not launch.members:
        return Reason("no-members")
    saves = spec.checkpoint.folder if spec.checkpoint else ""
    words = [
        *spec.command,
        spec.folder,
        spec.submit_folder,
        saves,
        spec.image,
        *(word for pair in spec.env for word in pair),
    ]
    if any("\0" in word for word in words) or any("=" in name or not name for name, _ in spec.env):
        return Reason("unusable-word")
    for folder in (spec.folder, saves):
        if folder and escapes_team_folder(folder):
            return Reason("folder-outside-team", {"folder": Text(folder)})
    if spec.image.startswith("-"):
        return Reason("unusable-image", {"image": Text(spec.image)})
    return None


def _why_image_unusable(launch: Launch, runtime: str) -> Reason | None:
    """Return why an image cannot be run by this runtime."""
    spec = launch.run_spec
    name = runtime.rpartition("/")[2]
    if not is_podman(runtime):
        if "://" in spec.image:
            return Reason("image-elsewhere", {"image": Text(spec.image), "runtime": name})
        return None
    if not IMAGE_NAME.fullmatch(spec.image) or spec.image.partition(":")[0] in TRANSPORTS:
        return Reason("unusable-image", {"image": Text(spec.image), "runtime": name})
    saves = spec.checkpoint.folder if spec.checkpoint else ""
    words = [spec.folder, spec.submit_folder, saves, *(word for pair in spec.env for word in pair)]
    if any("\n" in word or "\r" in word for word in words):
        return Reason("unusable-word", {"runtime": name})
    if any(lacks_device_spec(member.gpus) for member in launch.members):
        return Reason("gpus-not-described", {"runtime": name})
    return None


def user_of(launch: Launch, users: TeamUsers | None) -> tuple[UserLine | None, Reason | None]:
    """Return the user of a launch, and why there is none, if so.

    Node tests run as the control plane's user: they measure the machine for it.
    """
    if users is None or is_node_test(launch.job_id):
        return None, None
    try:
        gpus = any(member.gpus for member in launch.members)
        return users.user_for(launch.team, gpus=gpus), None
    except OSError as error:
        return None, Reason("cannot-write", {"said": Text(error.strerror or str(error))})
    except UidsExhausted:
        return None, Reason("no-team-user", {"team": TeamRef(TeamId(launch.team))})


def launch_line(
    launch: Launch, inherited: dict[str, str], runtime: str, log_bytes_most: int
) -> LaunchLine:
    """Return a launch as plain values, with defaults."""
    spec = launch.run_spec
    line: LaunchLine = {
        "job": launch.job_id,
        "attempt": launch.attempt,
        "team": launch.team,
        "name": spec.name,
        "command": list(spec.command),
        "env": list(spec.env),
        "inherited": inherited,
        "folder": spec.folder,
        "image": spec.image,
        "runtime": runtime,
        "saves_folder": spec.checkpoint.folder if spec.checkpoint else "",
        "saves_every_ms": spec.checkpoint.every_ms if spec.checkpoint else None,
        "grace_ms": spec.grace_ms,
        "silent_ms_most": spec.silent_ms_most,
        "log_bytes_most": log_bytes_most,
        "members": [
            {
                "node": member.node,
                "gpus": list(member.gpus),
                "cpus_milli": member.cpus_milli,
                "memory_mib": member.memory_mib,
            }
            for member in launch.members
        ],
        "ordered_ms": now_ms(),
    }
    if launch.limit_ms is not None:
        line["limit_ms"] = launch.limit_ms
    if spec.slurm_variables:
        line["slurm_variables"] = True
    if spec.submit_folder and not spec.folder:
        line["submit_folder"] = spec.submit_folder
    return line
