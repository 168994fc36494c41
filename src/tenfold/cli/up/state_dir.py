"""The state folder as `tenfold up` finds it: one control plane at a time, and the same nodes.

Two in one folder would both start jobs. Nodes that the journal knows and nobody declares any
more would still be given work, so a folder stays with its fleet.
"""

import fcntl
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tenfold.model.errors import InputError, Refused
from tenfold.model.fleet.node import Node

LOCK = "up.lock"
NODES = "nodes.json"
FIRST_JOB = "first-job.toml"
FIRST_JOB_TEXT = """# A first job to try: tenfold job submit FILE --follow
name = "hello"
command = ["sh", "-c", "echo hello from $(hostname); echo attempt $TENFOLD_ATTEMPT"]
"""


@contextmanager
def held(home: Path) -> Generator[None, None, None]:
    """Hold the state folder; raise where another control plane does.

    The lock is the process's own: neither jobs nor supervisors inherit it.
    """
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(home / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InputError(
            "home-unusable",
            f"the state folder `{home}` cannot be used: {error.strerror or error}",
            "name another with --home or TENFOLD_HOME",
            file=str(home),
        ) from None
    try:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise _taken(home, file) from None
        os.ftruncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(file)


def known_nodes(home: Path) -> list[str]:
    """Return the nodes that this folder was started with before; none at the first start."""
    try:
        return msgspec.json.decode((home / NODES).read_bytes(), type=list[str])
    except (OSError, msgspec.DecodeError):
        return []


def check_nodes(home: Path, nodes: Sequence[Node]) -> None:
    """Raise where a node is missing that was there before."""
    now = dict.fromkeys(str(node.id) for node in nodes)
    gone = [name for name in known_nodes(home) if name not in now]
    if gone:
        more = f" and {len(gone) - 1:,} more" if len(gone) > 1 else ""
        raise Refused(
            "fleet-differs",
            f"`{home}` was started with node `{gone[0]}`{more}, which is not declared now",
            "start it as before, or keep another fleet in another folder (--home)",
        )


def keep_nodes(home: Path, nodes: Sequence[Node]) -> None:
    """Note the nodes of this start, for the next one."""
    half = home / f".{NODES}"
    half.write_bytes(msgspec.json.encode([str(node.id) for node in nodes]))
    half.replace(home / NODES)


def first_job(home: Path) -> Path:
    """Return the file of a job to try; it is written once, and may be changed."""
    path = home / FIRST_JOB
    if not path.exists():
        path.write_text(FIRST_JOB_TEXT)
    return path


def _taken(home: Path, file: int) -> Refused:
    pid = os.pread(file, 20, 0).decode(errors="replace").strip() or "unknown"
    return Refused(
        "home-taken",
        f"a control plane runs in `{home}` already, as process {pid}",
        f"use it, stop it (`kill {pid}`; jobs go on), or name another folder with --home",
    )
