"""A launch as the spawner reads it, and which launches are turned away before it is asked."""

from tenfold.clock.wall import now_ms
from tenfold.live.executor import Launch
from tenfold.live.local.images import RUNTIMES, find_runtime
from tenfold.live.local.places import leaves_team
from tenfold.live.local.wire import LaunchLine
from tenfold.model.reason import Reason


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
        return runtime, None
    sentence = f"image `{work.image}` needs {' or '.join(RUNTIMES)}, and this node has neither"
    return "", Reason("no-container-runtime", sentence)


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
