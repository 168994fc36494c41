"""Talk to a running HAProxy: the runtime API of its workers, and what its counters say."""

import asyncio
import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ANSWER_S = 5.0
BACKEND = "BACKEND"


class ControlError(Exception):
    """HAProxy did not answer, or refused a command."""


class Counters(NamedTuple):
    """One line of `show stat`: counters of a server or a backend, and what is in it now."""

    current: int = 0
    """Requests in it now."""
    total: int = 0
    """Requests that it was given."""
    bytes_in: int = 0
    failed_connections: int = 0
    failed_answers: int = 0
    server_errors: int = 0
    """Answers with a status of 500 to 599."""
    retried: int = 0

    def minus(self, other: "Counters") -> "Counters":
        """Return the difference of two readings."""
        return Counters(*(own - before for own, before in zip(self, other, strict=True)))


Stats = dict[tuple[str, str], Counters]
"""By backend and server; the backend itself goes by `BACKEND`."""


async def ask(socket: Path, command: str) -> str:
    """Return the answer of a worker or of the master to one command."""
    try:
        async with asyncio.timeout(ANSWER_S):
            reader, writer = await asyncio.open_unix_connection(socket, limit=64 << 20)
            try:
                writer.write(f"{command}\n".encode())
                writer.write_eof()
                return (await reader.read()).decode(errors="replace")
            finally:
                writer.close()
    except (OSError, TimeoutError) as error:
        raise ControlError(f"`{command.split(maxsplit=1)[0]}`: {type(error).__name__}") from None


async def order(socket: Path, command: str, accepted: Iterable[str] = ()) -> None:
    """Send a command that changes something; raise if it was refused.

    HAProxy has no codes: an answer that is empty or begins with an accepted word is a success.
    """
    said = (await ask(socket, command)).strip()
    if said and not any(word in said for word in accepted):
        raise ControlError(f"`{command}`: {said[:200]}")


def read_stats(text: str) -> Stats:
    """Return the counters in the answer to `show stat`."""
    found: Stats = {}
    for row in csv.DictReader(io.StringIO(text.removeprefix("# ").strip())):
        name = row.get("pxname") or ""
        found[name, row.get("svname") or ""] = Counters(
            current=_number(row.get("scur")),
            total=_number(row.get("stot")),
            bytes_in=_number(row.get("bin")),
            failed_connections=_number(row.get("econ")),
            failed_answers=_number(row.get("eresp")),
            server_errors=_number(row.get("hrsp_5xx")),
            retried=_number(row.get("wretr")) + _number(row.get("wredis")),
        )
    return found


def worker_pids(text: str) -> list[int]:
    """Return the workers in the answer to `show proc`, those that still drain among them."""
    pids: list[int] = []
    for line in text.splitlines():
        words = line.split()
        if len(words) > 1 and words[1] == "worker" and words[0].isdecimal():
            pids.append(int(words[0]))
    return pids


def pid_of(text: str) -> int:
    """Return the worker that answered `show info`."""
    for line in text.splitlines():
        if line.startswith("Pid: "):
            return int(line.removeprefix("Pid: "))
    raise ControlError("`show info` has no pid")


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0
