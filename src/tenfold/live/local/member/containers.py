"""Clean up podman containers, and recognise container runtime failures.

A container that ends by itself is removed by podman. A killed one leaves a record and files behind,
because the process that would remove them was killed too.
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
REMOVE_TRIES = 5
LOOK_AGAIN_S = 0.01
BEGINS = {
    "Error: ": (125, 126, 127),
    "ERROR (catatonit:": (1,),
    "[FATAL tini (": (126, 127),
    "FATAL:": (255,),
}
"""Start of the last log line, and exit codes, when podman, an init or apptainer itself failed."""
_SAID_BYTES = 4_096
_SAID_CHARACTERS = 400


def container_inits(attempt: str) -> list[int]:
    """Return the first process of every container below this process that runs its command."""
    mark = attempt_mark(attempt)
    below = descendants(os.getpid())
    return [pid for pid in below if leads_pid_namespace(pid) and has_mark(pid, mark)]


def wait_for_cleanup() -> None:
    """Wait for the clean-up processes that podman leaves running briefly."""
    ends = time.monotonic() + CLEAN_S_MOST
    while reap() is not None and time.monotonic() < ends:
        time.sleep(LOOK_AGAIN_S)


def remove_containers(launch: LaunchLine, attempt: str) -> None:
    """Remove podman's records of an attempt whose processes are all dead."""
    if not launch["image"] or not is_podman(launch["runtime"]):
        return
    names = [container_name(attempt, rank) for rank in range(len(launch["members"]))]
    words = [launch["runtime"], "rm", "--force", "--ignore", "--time=0", *names]
    ends = time.monotonic() + REMOVE_S_MOST
    for _ in range(REMOVE_TRIES):
        # podman fails once if a process of the container ends while it looks.
        if _run_quietly(words, runtime_environment(launch), ends):
            return
        time.sleep(LOOK_AGAIN_S)


def _run_quietly(words: list[str], environment: dict[str, str], ends: float) -> bool:
    """Run a command until a time; return whether there is nothing more to do."""
    nothing = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    quiet = [(os.POSIX_SPAWN_DUP2, nothing, file) for file in (0, 1, 2)]
    try:
        pid = os.posix_spawn(words[0], words, environment, file_actions=quiet)
    except OSError:
        # podman was uninstalled meanwhile.
        return True
    finally:
        os.close(nothing)
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status == 0
        if time.monotonic() >= ends:
            kill(pid)
            os.waitpid(pid, 0)
            return True
        time.sleep(LOOK_AGAIN_S)


def runtime_failure(launch: LaunchLine, attempt: str, rank: int, code: int) -> ReasonLine | None:
    """Return why an image could not be run; None if the command in it failed."""
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
            f"image `{image}` is not on this machine, and Tenfold does not pull images:"
            f" run `{name} pull` as the user that runs Tenfold"
        )
    if begin.endswith(("(", "(catatonit:")):
        # The container's init reports the error without the command.
        why = said.rpartition(": ")[2]
        return f"cannot run the command `{launch['command'][0]}` in image `{image}`: {why}"
    return f"{name} cannot run image `{image}`: {said.removeprefix(begin).strip()}"


def _last_line(attempt: str, rank: int) -> str:
    text = logs.tail(logs.segments(attempt, rank), _SAID_BYTES).decode(errors="replace")
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:_SAID_CHARACTERS] if lines else ""
