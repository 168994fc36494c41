"""The state directory of `tenfold up`: one control plane at a time, always with the same nodes.

Two control planes in one directory would both start jobs. Nodes that the journal knows but the
fleet no longer declares would still receive jobs, so a directory belongs to one fleet.
"""

import fcntl
import os
import struct
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from tenfold.client.endpoint import STATE_DIR
from tenfold.model.errors import InputError, Refused
from tenfold.model.fleet.node import Node

LOCK = "up.lock"
_FLOCK = "hhqqi"
"""`struct flock` of Linux: type, whence, start, length, PID."""
NODES = "nodes.json"
FIRST_JOB = "first-job.toml"
FIRST_JOB_TEXT = """# A first job to try: tenfold job submit FILE --follow
name = "hello"
command = ["sh", "-c", "echo hello from $(hostname); echo attempt $TENFOLD_ATTEMPT"]
"""
StateDirOption = Annotated[
    Path | None,
    Parameter(
        name=("--state-dir", "--home"),
        help=f"State directory (default: ${STATE_DIR}, or `tenfold` in your data directory)",
    ),
]
"""`--home` is the old name."""


@contextmanager
def lock_state_dir(state_dir: Path) -> Generator[None, None, None]:
    """Lock the state directory; raise if another control plane holds it.

    The lock belongs to this process: neither jobs nor supervisors inherit it.
    """
    try:
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(state_dir / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InputError(
            "home-unusable",
            f"cannot use the state directory `{state_dir}`: {error.strerror or error}",
            f"choose another with --state-dir or {STATE_DIR}",
            file=str(state_dir),
        ) from None
    try:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise _in_use(state_dir, file) from None
        os.ftruncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(file)


def lock_holder(state_dir: Path) -> int | None:
    """Return the PID of the control plane in a state directory; None if there is none.

    The kernel knows who holds the lock, so this is never a process that only got its PID. It is 0
    if that process is in another PID namespace.
    """
    try:
        file = os.open(state_dir / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        request = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(file, fcntl.F_GETLK, request))
    finally:
        os.close(file)
    return None if kind == fcntl.F_UNLCK else int(pid)


def stopped_text(jobs_alive: int | None) -> str:
    """Return what to print once a control plane has stopped."""
    if jobs_alive == 1:
        return "stopped; 1 job is still running, and `tenfold up` picks it up again"
    if jobs_alive:
        return f"stopped; {jobs_alive:,} jobs are still running, and `tenfold up` picks them up"
    if jobs_alive == 0:
        return "stopped; no jobs were running"
    return "stopped; running jobs continue, and `tenfold up` picks them up again"


def previous_nodes(state_dir: Path) -> list[str]:
    """Return the nodes of the previous start in this directory; none at the first start."""
    try:
        return msgspec.json.decode((state_dir / NODES).read_bytes(), type=list[str])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []


def check_nodes(state_dir: Path, nodes: Sequence[Node]) -> None:
    """Raise if a node of the previous start is missing."""
    now = dict.fromkeys(str(node.id) for node in nodes)
    gone = [name for name in previous_nodes(state_dir) if name not in now]
    if gone:
        more = f" and {len(gone) - 1:,} more" if len(gone) > 1 else ""
        raise Refused(
            "fleet-differs",
            f"node `{gone[0]}`{more} of the previous start in `{state_dir}` is not in this fleet",
            "start with the same fleet, or use another state directory (--state-dir)",
        )


def save_nodes(state_dir: Path, nodes: Sequence[Node]) -> None:
    """Record the nodes of this start, for the next one."""
    half = state_dir / f".{NODES}"
    half.write_bytes(msgspec.json.encode([str(node.id) for node in nodes]))
    half.replace(state_dir / NODES)


def first_job(state_dir: Path) -> Path:
    """Return the example job file; it is written once, and the user may edit it."""
    path = state_dir / FIRST_JOB
    if not path.exists():
        path.write_text(FIRST_JOB_TEXT)
    return path


def _in_use(state_dir: Path, file: int) -> Refused:
    pid = os.pread(file, 20, 0).decode(errors="replace").strip() or "unknown"
    return Refused(
        "home-taken",
        f"a control plane is already running in `{state_dir}`, with PID {pid}",
        f"use it, stop it (`tenfold down --state-dir {state_dir}`; jobs keep running), or choose "
        "another --state-dir",
    )
