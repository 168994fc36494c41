"""A launch as the spawner reads it, and which launches are turned away before it is asked."""

import re

from tenfold.clock.wall import now_ms
from tenfold.live.acceptance import is_trial
from tenfold.live.executor import Launch
from tenfold.live.local.attempt.places import leaves_team
from tenfold.live.local.member.images import RUNTIMES, devices_unknown, find_runtime, is_podman
from tenfold.live.local.member.team_users import NoUserLeft, TeamUsers
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
"""Before a colon they name a place to fetch from, and podman may read more there than the job."""


def refusal(launch: Launch, path: str) -> tuple[str, Reason | None]:
    """Return what runs the launch's image, and why the launch cannot be carried out, if so."""
    work = launch.work
    if not work.command or not work.command[0]:
        return "", Reason("no-command")
    if not launch.members:
        return "", Reason("no-members")
    words = [*work.command, work.folder, work.image, *(word for pair in work.env for word in pair)]
    if any("\0" in word for word in words) or any("=" in name or not name for name, _ in work.env):
        return "", Reason("unusable-word")
    saves = work.saves.folder if work.saves else ""
    for folder in (work.folder, saves):
        if folder and leaves_team(folder):
            return "", Reason("folder-outside-team", {"folder": Text(folder)})
    if not work.image:
        return "", None
    if work.image.startswith("-"):
        return "", Reason("unusable-image", {"image": Text(work.image)})
    runtime = find_runtime(path)
    if runtime:
        return runtime, _unusable(launch, runtime)
    fields = {"image": Text(work.image), "runtimes": RUNTIMES}
    return "", Reason("no-container-runtime", fields)


def _unusable(launch: Launch, runtime: str) -> Reason | None:
    """Return why an image cannot be run by what is here."""
    work = launch.work
    name = runtime.rpartition("/")[2]
    if not is_podman(runtime):
        if "://" in work.image:
            return Reason("image-elsewhere", {"image": Text(work.image), "runtime": name})
        return None
    if not IMAGE_NAME.fullmatch(work.image) or work.image.partition(":")[0] in TRANSPORTS:
        return Reason("unusable-image", {"image": Text(work.image), "runtime": name})
    saves = work.saves.folder if work.saves else ""
    words = [work.folder, saves, *(word for pair in work.env for word in pair)]
    if any("\n" in word or "\r" in word for word in words):
        return Reason("unusable-word", {"runtime": name})
    if any(devices_unknown(member.gpus) for member in launch.members):
        return Reason("gpus-not-described", {"runtime": name})
    return None


def user_of(launch: Launch, users: TeamUsers | None) -> tuple[UserLine | None, Reason | None]:
    """Return whom a launch runs as, and why nobody can be named, if so.

    Tests of nodes run as the control plane does: they measure the machine for it.
    """
    if users is None or is_trial(launch.job_id):
        return None, None
    try:
        gpus = any(member.gpus for member in launch.members)
        return users.of(launch.team, gpus=gpus), None
    except OSError as error:
        return None, Reason("cannot-write", {"said": Text(error.strerror or str(error))})
    except NoUserLeft:
        return None, Reason("no-team-user", {"team": TeamRef(TeamId(launch.team))})


def launch_line(
    launch: Launch, inherited: dict[str, str], runtime: str, log_bytes_most: int
) -> LaunchLine:
    """Return a launch as plain values, defaults spelled out."""
    work = launch.work
    return {
        "job": launch.job_id,
        "attempt": launch.attempt,
        "team": launch.team,
        "name": work.name,
        "command": list(work.command),
        "env": list(work.env),
        "inherited": inherited,
        "folder": work.folder,
        "image": work.image,
        "runtime": runtime,
        "saves_folder": work.saves.folder if work.saves else "",
        "saves_every_ms": work.saves.every_ms if work.saves else None,
        "grace_ms": work.grace_ms,
        "silent_ms_most": work.silent_ms_most,
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
