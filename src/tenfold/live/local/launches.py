"""A launch as the spawner reads it, and which launches are turned away before it is asked."""

import re

from tenfold.clock.wall import now_ms
from tenfold.live.acceptance import is_trial
from tenfold.live.executor import Launch
from tenfold.live.local.images import RUNTIMES, devices_unknown, find_runtime, is_podman
from tenfold.live.local.places import leaves_team
from tenfold.live.local.team_users import NoUserLeft, TeamUsers
from tenfold.live.local.wire import LaunchLine, UserLine
from tenfold.model.reason import Reason

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
        return "", Reason("no-command", "the job names no command")
    if not launch.members:
        return "", Reason("no-members", "the gang has no members")
    words = [*work.command, work.folder, work.image, *(word for pair in work.env for word in pair)]
    if any("\0" in word for word in words) or any("=" in name or not name for name, _ in work.env):
        return "", Reason("unusable-word", "a NUL in a word, or `=` in the name of a variable")
    saves = work.saves.folder if work.saves else ""
    for folder in (work.folder, saves):
        if folder and leaves_team(folder):
            sentence = f"the folder `{folder}` leads out of the team's folder"
            return "", Reason("folder-outside-team", sentence)
    if not work.image:
        return "", None
    if work.image.startswith("-"):
        return "", Reason("unusable-image", f"`{work.image}` is an option, not an image")
    runtime = find_runtime(path)
    if runtime:
        return runtime, _unusable(launch, runtime)
    sentence = f"image `{work.image}` needs {' or '.join(RUNTIMES)}, and this node has neither"
    return "", Reason("no-container-runtime", sentence)


def _unusable(launch: Launch, runtime: str) -> Reason | None:
    """Return why an image cannot be run by what is here."""
    work = launch.work
    name = runtime.rpartition("/")[2]
    if not is_podman(runtime):
        if "://" in work.image:
            sentence = f"`{work.image}` is elsewhere, and none is fetched: {name} needs a file here"
            return Reason("image-elsewhere", sentence)
        return None
    if not IMAGE_NAME.fullmatch(work.image) or work.image.partition(":")[0] in TRANSPORTS:
        sentence = f"`{work.image}` is not the name of an image that {name} has on this machine"
        return Reason("unusable-image", sentence)
    saves = work.saves.folder if work.saves else ""
    words = [work.folder, saves, *(word for pair in work.env for word in pair)]
    if any("\n" in word or "\r" in word for word in words):
        sentence = f"a variable of several lines cannot be passed into an image by {name}"
        return Reason("unusable-word", sentence)
    if any(devices_unknown(member.gpus) for member in launch.members):
        sentence = (
            f"{name} does not know the GPUs of this node:"
            " `nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml` tells it"
        )
        return Reason("gpus-not-described", sentence)
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
        sentence = f"the user of team `{launch.team}` cannot be written down: {error.strerror}"
        return None, Reason("cannot-write", sentence)
    except NoUserLeft:
        sentence = f"no user is left for team `{launch.team}`: see `tenfold up --team-uids`"
        return None, Reason("no-team-user", sentence)


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
