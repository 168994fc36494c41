"""Write, move, heal and delete objects again and again, killed one step later each time.

Run as a program with a folder and a seed file. Each attempt is a child that counts the calls which
change the disk and kills itself with SIGKILL before one of them; an acknowledged write is in the
log `acknowledged` before the child goes on. It ends when an attempt reaches its end.
"""

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

TIERS = {
    "hot": {"layout": "replicas = 2", "backends": {"a": "a", "b": "b"}},
    "warm": {"layout": 'erasure = "2+1"', "backends": {"w0": "w0", "w1": "w1", "w2": "w2"}},
}
ATTEMPTS_MAX = 400
_STEP = 1
"""Calls between the kills of two attempts."""


def main(folder: Path) -> None:
    """Make attempts until one is not killed."""
    from objects_builders import Namespace  # noqa: PLC0415

    Namespace(folder, TIERS).catalog.close()
    for attempt in range(1, ATTEMPTS_MAX):
        child = os.fork()
        if not child:
            _attempt(folder, attempt)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0, f"attempt {attempt} failed"
            print(attempt)
            return
    raise AssertionError("no attempt reached its end")


def _attempt(folder: Path, attempt: int) -> None:
    from objects_builders import Namespace  # noqa: PLC0415
    from tenfold.objects.tiers.mover import delete_due  # noqa: PLC0415

    status = 1
    try:
        namespace = Namespace(folder, TIERS)
        # What earlier attempts left to delete would make every attempt longer than the one before.
        asyncio.run(delete_due(namespace.store, namespace.moves, namespace.clock_ms))
        _kill_at(attempt * _STEP)
        asyncio.run(_work(namespace, attempt))
        status = 0
    finally:
        os._exit(status)


async def _work(namespace: Any, attempt: int) -> None:
    from objects_builders import noise  # noqa: PLC0415
    from tenfold.objects.tiers.mover import delete_due  # noqa: PLC0415

    key, data = f"k{attempt}", noise(5000 + attempt, attempt)
    await namespace.put(key, data, "hot")
    with open(namespace.folder / "acknowledged", "ab") as log:
        log.write(f"{attempt}\n".encode())
    mover = namespace.mover()
    for live in namespace.moves.live():
        if live.key == key:
            await mover.move_blob(live, "warm")
    for live in namespace.moves.live():
        if live.key == key:
            await mover.move_shards(live, {1: "w1"})
    await delete_due(namespace.store, namespace.moves, namespace.clock_ms)


def _kill_at(step: int) -> None:
    """Count calls that change the disk, and end with SIGKILL before the given one."""
    left = [step]

    def counted(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(*args: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **options)

        return call

    for name in ("fsync", "write", "rename", "unlink", "open"):
        setattr(os, name, counted(name))
    # Commits of the catalogue happen inside SQLite: kill before and after them too.
    from tenfold.objects.catalog import writer  # noqa: PLC0415

    commit = writer.Writer._commit  # pyright: ignore[reportPrivateUsage]

    def counted_commit(self: Any, batch: Any) -> Any:
        for _ in range(2):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        done: list[sqlite3.Connection] = commit(self, batch)  # pyright: ignore[reportAssignmentType]
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    writer.Writer._commit = counted_commit  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
