"""What podman keeps of a container beside its processes, and what it says when it cannot run one.

A container that ends by itself removes itself. One that was killed leaves a record and its files
behind, because whoever would have removed them was killed with it.
"""

import os
import time

from tenfold.live.local.attempt import logs
from tenfold.live.local.attempt.environment import attempt_mark
from tenfold.live.local.member.images import container_name, is_podman, runtime_environment
from tenfold.live.local.processes import (
    descendants,
    has_mark,
    kill,
    leads_pid_namespace,
    reap,
)
from tenfold.live.local.spawner.wire import LaunchLine, ReasonLine

CLEAN_S_MOST = 5.0
REMOVE_S_MOST = 30.0
LOOK_AGAIN_S = 0.01
BEGINS = {
    "Error: ": (125, 126, 127),
    "ERROR (catatonit:": (1,),
    "[FATAL tini (": (126, 127),
    "FATAL:": (255,),
}
"""How the last line begins, and the code, where podman, an init or apptainer failed itself."""
_SAID_BYTES = 4_096
_SAID_CHARACTERS = 400


def container_inits(attempt: str) -> list[int]:
    """Return the first process of every container below this process that runs its command."""
    mark = attempt_mark(attempt)
    below = descendants(os.getpid())
    return [pid for pid in below if leads_pid_namespace(pid) and has_mark(pid, mark)]


def wait_for_cleanup() -> None:
    """Wait for what podman leaves running for a moment after the command: it tidies up."""
    ends = time.monotonic() + CLEAN_S_MOST
    while reap() is not None and time.monotonic() < ends:
        time.sleep(LOOK_AGAIN_S)


def remove_containers(launch: LaunchLine, attempt: str) -> None:
    """Remove what podman has of an attempt none of whose processes lives any more."""
    if not launch["image"] or not is_podman(launch["runtime"]):
        return
    names = [container_name(attempt, rank) for rank in range(len(launch["members"]))]
    words = [launch["runtime"], "rm", "--force", "--ignore", "--time=0", *names]
    nothing = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    quiet = [(os.POSIX_SPAWN_DUP2, nothing, file) for file in (0, 1, 2)]
    try:
        pid = os.posix_spawn(words[0], words, runtime_environment(launch), file_actions=quiet)
    except OSError:
        # Uninstalled meanwhile: nothing can be removed by it.
        return
    finally:
        os.close(nothing)
    ends = time.monotonic() + REMOVE_S_MOST
    while os.waitpid(pid, os.WNOHANG)[0] == 0:
        if time.monotonic() >= ends:
            kill(pid)
            os.waitpid(pid, 0)
            return
        time.sleep(LOOK_AGAIN_S)


def runtime_failure(launch: LaunchLine, attempt: str, rank: int, code: int) -> ReasonLine | None:
    """Return why an image did not run at all; None where a command in it ended with the code."""
    if not launch["image"]:
        return None
    said = _last_line(attempt, rank)
    for begin, codes in BEGINS.items():
        if said.startswith(begin) and code in codes:
            return {"code": "image-not-run", "sentence": _sentence(launch, said, begin)}
    return None


def _sentence(launch: LaunchLine, said: str, begin: str) -> str:
    name, image = launch["runtime"].rpartition("/")[2], launch["image"]
    if "image not known" in said:
        return (
            f"the image `{image}` is not on this machine, and none is fetched:"
            f" `{name} pull` it, as the user that runs Tenfold"
        )
    if begin.endswith(("(", "(catatonit:")):
        # The init of the container says so without saying what.
        why = said.rpartition(": ")[2]
        return f"the command `{launch['command'][0]}` cannot be run in the image `{image}`: {why}"
    return f"{name} cannot run the image `{image}`: {said.removeprefix(begin).strip()}"


def _last_line(attempt: str, rank: int) -> str:
    text = logs.tail(logs.segments(attempt, rank), _SAID_BYTES).decode(errors="replace")
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:_SAID_CHARACTERS] if lines else ""
