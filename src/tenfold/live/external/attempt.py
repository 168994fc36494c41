"""One unsettled attempt of an external executor: its files, and what they say about its end."""

import os
from contextlib import suppress

from msgspec import Struct

from tenfold.clock.wall import now_ms
from tenfold.live.external.engine import EndCause, JobPhase
from tenfold.live.external.script import CLAIM, FIRST, NAME, OWNER, TAKEN
from tenfold.live.local.attempt.ending import end_line
from tenfold.live.local.attempt.folder import AttemptFolder, private_folder, write
from tenfold.live.local.attempt.heartbeat import Heartbeats, touch_heartbeat
from tenfold.live.local.attempt.logs import open_log
from tenfold.live.local.attempt.open_folder import open_folder
from tenfold.live.local.attempt.places import JobFolders
from tenfold.live.local.member.user import reading_as
from tenfold.live.local.spawner.wire import EndLine, LaunchLine, ReasonLine

HANDLE = "handle"
RESULT_BYTES_MOST = 4_096
SIGNAL_BASE, SIGNAL_LAST = 128, 192
SIGKILL = 9


class StopOrder(Struct, kw_only=True):
    """A stop of an attempt, by the controller or by this executor."""

    kill_at_ms: int
    how: str = "stopped"
    reason: ReasonLine | None = None
    terminated: bool = False
    """Whether SIGTERM was sent."""
    killed_ms: int = 0
    """When SIGKILL was sent last."""


class Active(Struct, kw_only=True):
    """An attempt that has not ended."""

    folder: AttemptFolder
    launch: LaunchLine
    handle: str = ""
    """The engine's name for it; empty until it is known."""
    is_maybe_submitted: bool = False
    """Whether the engine may have it although its handle is unknown."""
    phase: JobPhase = "waiting"
    started_ms: int | None = None
    stop: StopOrder | None = None
    heartbeats: Heartbeats | None = None
    unclear_ms: int = 0
    """When it was first seen to be over without a result."""
    retry_at_ms: int = 0
    """When to submit it again, after the engine lost it before it began."""

    @property
    def key(self) -> tuple[str, int]:
        """Its job and number."""
        return self.folder.job, self.folder.number

    @property
    def members(self) -> int:
        """The number of its members."""
        return len(self.launch["members"])


def prepare(folder: AttemptFolder, launch: LaunchLine) -> None:
    """Make what the members of an attempt write into."""
    claim, user = f"{folder.path}/{CLAIM}", launch.get("user")
    os.makedirs(claim, 0o700, exist_ok=True)
    for rank in range(len(launch["members"])):
        touch_heartbeat(folder.path, rank, user)
    if user is not None:
        os.chown(claim, user["uid"], user["gid"])
        os.chown(folder.path, -1, user["gid"])
        # It may add files, and remove none of those that are not its own.
        os.chmod(folder.path, 0o1770)


def prepare_folders(folders: JobFolders) -> None:
    """Create the folders of a job in its team's folder, as the user that it runs as."""
    if folders.user is None:
        os.close(folders.prepare())
        return
    if not os.path.isdir(folders.team):
        private_folder(folders.team)
        os.chown(folders.team, folders.user["uid"], folders.user["gid"])
    with reading_as(folders.user):
        for folder in filter(None, (folders.checkpoints, folders.workdir)):
            os.close(open_folder(folder, folders.team))


def write_script(folder: AttemptFolder, script: str, launch: LaunchLine) -> None:
    """Write what each member runs."""
    path, user = f"{folder.path}/{NAME}", launch.get("user")
    write(path, script)
    if user is not None:
        os.chown(path, -1, user["gid"])
        os.chmod(path, 0o640)


def write_handle(folder: AttemptFolder, handle: str) -> None:
    """Record the engine's name of an attempt."""
    write(f"{folder.path}/.{HANDLE}", handle, durable=True)
    os.rename(f"{folder.path}/.{HANDLE}", f"{folder.path}/{HANDLE}")


def read_handle(folder: AttemptFolder) -> str:
    """Return the engine's name of an attempt; empty if it was not recorded."""
    return _text(f"{folder.path}/{HANDLE}")


def is_claimed(folder: AttemptFolder) -> bool:
    """Return whether a job of the engine began to run the attempt."""
    return os.path.isdir(f"{folder.path}/{CLAIM}/{TAKEN}")


def owner_of(folder: AttemptFolder) -> str:
    """Return the handle of the job that runs the attempt, if it said so."""
    return _text(f"{folder.path}/{CLAIM}/{OWNER}")


def started_ms_of(active: Active) -> int | None:
    """Return when the last member started; None while one has not."""
    latest = 0
    for rank in range(active.members):
        try:
            status = os.stat(f"{active.folder.path}/{rank}.started")
        except OSError:
            return None
        latest = max(latest, status.st_mtime_ns // 1_000_000)
    return min(latest, now_ms())


def end_of(active: Active, cause: EndCause, engine: str, state: str) -> EndLine:
    """Return how an attempt ended of which no process is left."""
    results = [_result(active, rank) for rank in range(active.members)]
    begun_ms = active.started_ms if active.started_ms is not None else started_ms_of(active)
    broken = next((one for one in results if isinstance(one, str)), None)
    stop = active.stop
    if broken is not None and (stop is None or stop.how != "stopped"):
        return end_line("start-failed", started_ms=None, reason=_said("start-failed", broken))
    codes = [None if isinstance(one, str) else one for one in results]
    member = _first_failed(active, codes)
    code = None if member is None else codes[member]
    if cause == "node-lost":
        return _lost("node-lost", f"{engine} lost a node of it", begun_ms)
    if stop is not None:
        return _stopped(active, stop, codes, member, begun_ms)
    if cause == "cancelled" or (cause == "" and state == "cancelled"):
        said = _said("cancelled-in-engine", f"it was cancelled in {engine}")
        return end_line("stopped", started_ms=begun_ms, code=_signed(code), reason=said)
    if cause == "out-of-memory":
        said = _said("out-of-memory", f"{engine} ended it: it used more memory than it requested")
        return end_line(cause, started_ms=begun_ms, code=-SIGKILL, member=member, reason=said)
    if cause == "preempted":
        return _lost("preempted-in-engine", f"{engine} preempted it for another job", begun_ms)
    if cause == "time-limit":
        said = f"{engine} ended it at the time limit of its partition"
        return _lost("limited-in-engine", said, begun_ms)
    if None in codes:
        return _lost("result-missing", _missing(active, codes, engine, state), begun_ms)
    if member is None:
        return end_line("exited", started_ms=begun_ms, code=0)
    return end_line("exited", started_ms=begun_ms, code=_signed(code), member=member)


def _stopped(
    active: Active,
    stop: StopOrder,
    codes: list[int | None],
    member: int | None,
    begun_ms: int | None,
) -> EndLine:
    code: int | None = None
    if member is not None:
        code = _signed(codes[member])
    elif None in codes and begun_ms is not None:
        # Killed with its shell, before it could say so.
        member, code = codes.index(None), -SIGKILL
    elif None not in codes:
        code = 0
    line = end_line(stop.how, started_ms=begun_ms, code=code, member=member, reason=stop.reason)
    if stop.how == "silent" and active.heartbeats is not None and member is not None:
        line["died_ms"] = line["at_ms"]
    return line


def _first_failed(active: Active, codes: list[int | None]) -> int | None:
    first = _text(f"{active.folder.path}/{CLAIM}/{FIRST}")
    if first.isdecimal() and int(first) < len(codes) and codes[int(first)]:
        return int(first)
    return next((rank for rank, code in enumerate(codes) if code), None)


def _result(active: Active, rank: int) -> int | str | None:
    """Return the exit code of a member, why it did not start, or None."""
    text = _text(f"{active.folder.path}/{rank}.exit")
    if text.startswith("start-failed "):
        return text.removeprefix("start-failed ")
    return int(text) if text.isdecimal() and int(text) < 1 << 16 else None


def _missing(active: Active, codes: list[int | None], engine: str, state: str) -> str:
    which = f"member {codes.index(None)}" if active.members > 1 else "the job"
    said = f"{engine} says `{state}`" if state else f"{engine} does not know it any more"
    output = _last_line(f"{active.folder.path}/job.out")
    return f"{which} left no result; {said}" + (f": {output}" if output else "")


def _signed(code: int | None) -> int | None:
    """Return the exit code of a shell, with a signal as a negative number."""
    if code is not None and SIGNAL_BASE < code < SIGNAL_LAST:
        return SIGNAL_BASE - code
    return code


def _lost(why: str, sentence: str, begun_ms: int | None) -> EndLine:
    return end_line("lost", started_ms=begun_ms, reason=_said(why, sentence))


def _said(why: str, sentence: str) -> ReasonLine:
    return {"code": why, "sentence": sentence}


def _text(path: str) -> str:
    """Return the beginning of a small file. A job may have put a pipe there."""
    with suppress(OSError), open_log(path) as file:
        return file.read(RESULT_BYTES_MOST).decode(errors="replace").strip()
    return ""


def _last_line(path: str) -> str:
    lines = _text(path).splitlines()
    return lines[-1][:200] if lines else ""
