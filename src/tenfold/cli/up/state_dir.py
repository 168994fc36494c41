"""The state directory of `tenfold up`: one control plane at a time, always with the same nodes.

Two control planes in one directory would both start jobs. Nodes that the journal knows but the
fleet no longer declares would still receive jobs, so a directory belongs to one fleet.
"""

import fcntl
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from tenfold.client.endpoint import LOCK, STATE_DIR, own_folder
from tenfold.model.errors import InputError, Refused
from tenfold.model.fleet.node import Node

NODES = "nodes.json"
VIRTUAL_NODE = "virtual"
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
def lock_state_dir(state_dir: Path, name: str = "") -> Generator[None, None, None]:
    """Lock the state directory, for the control plane of a name; raise if another one holds it.

    The lock belongs to this process: neither jobs nor supervisors inherit it.
    """
    try:
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        own = own_folder(state_dir, name)
        own.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(own / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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
            raise _in_use(state_dir, name, file) from None
        os.ftruncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(file)


def stopped_text(jobs_alive: int | None) -> str:
    """Return what to print once a control plane has stopped."""
    if jobs_alive == 1:
        return "stopped; 1 job is still running, and the next `tenfold up` reattaches to it"
    if jobs_alive:
        many = f"{jobs_alive:,} jobs are still running"
        return f"stopped; {many}, and the next `tenfold up` reattaches to them"
    if jobs_alive == 0:
        return "stopped; no jobs were running"
    return "stopped; running jobs continue, and the next `tenfold up` reattaches to them"


def virtual_names(number: int) -> list[str]:
    """Return the names of the nodes of `--virtual-nodes`."""
    digits = len(str(number))
    return [f"{VIRTUAL_NODE}-{place:0{digits}d}" for place in range(1, number + 1)]


def previous_nodes(state_dir: Path) -> list[str]:
    """Return the nodes of the previous start in this directory; none at the first start."""
    try:
        return msgspec.json.decode((state_dir / NODES).read_bytes(), type=list[str])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []


def check_nodes(state_dir: Path, nodes: Sequence[Node]) -> None:
    """Raise if a node of the previous start is missing."""
    now = dict.fromkeys(str(node.id) for node in nodes)
    before = previous_nodes(state_dir)
    gone = [name for name in before if name not in now]
    if gone:
        named = f"node `{gone[0]}` is"
        if len(gone) > 1:
            named = f"{len(gone):,} nodes, such as `{gone[0]}`, are"
        raise Refused(
            "fleet-differs",
            f"{named} not in this fleet, but in that of the previous start in `{state_dir}`",
            f"{_same_fleet(before)}, or use another state directory (--state-dir)",
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


def _same_fleet(before: Sequence[str]) -> str:
    """Return how to start with the nodes of the previous start, as far as their names say it."""
    if list(before) == virtual_names(len(before)):
        return f"start with `--virtual-nodes {len(before)}`, as before"
    return "start with the same fleet (`--fleet`) as before"


def _in_use(state_dir: Path, name: str, file: int) -> Refused:
    pid = os.pread(file, 20, 0).decode(errors="replace").strip() or "unknown"
    which = f"control plane `{name}`" if name else "a control plane"
    return Refused(
        "home-taken",
        f"{which} is already running in `{state_dir}`, with PID {pid}",
        f"use it, stop it (`tenfold down --state-dir {state_dir}`; jobs keep running), or choose "
        "another --state-dir; with a PostgreSQL journal, `--name` starts a second one",
    )
