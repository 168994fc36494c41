"""Import `tenfold` once, then run each command that is asked for in a fork.

Runs under any Python that has Tenfold installed, and imports nothing else of ours. A connection
brings the three standard streams, then the arguments, folder and environment as JSON; the answer
is one byte, the exit status. The server ends when its standard input closes.
"""

import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import sys

PREFIX_BYTES = 8


def warm_up() -> None:
    """Import every module that imports here; extras that are missing stay missing."""
    import tenfold  # noqa: PLC0415

    for module in pkgutil.walk_packages(tenfold.__path__, "tenfold."):
        if not module.name.startswith(("tenfold.__main__", "tenfold.journal.migrations")):
            try:
                importlib.import_module(module.name)
            except ImportError:
                continue
    gc.collect()
    gc.freeze()


def serve(path: str) -> None:
    """Fork for every connection until standard input closes."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen(64)
        # Nobody waits for the forks that answer.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            ready, _, _ = select.select([listening, sys.stdin], [], [])
            if sys.stdin in ready:
                return
            link, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                answer(link)
            link.close()


def answer(link: socket.socket) -> None:
    """Run one command in a fork of this fork, and send its exit status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, streams, _, _ = socket.recv_fds(link, PREFIX_BYTES, 3)
    body = b""
    while len(body) < int.from_bytes(head, "big"):
        body += link.recv(1 << 16)
    runner = os.fork()
    if runner == 0:
        link.close()
        become(json.loads(body), streams)
    _, status = os.waitpid(runner, 0)
    code = os.waitstatus_to_exitcode(status)
    link.sendall(bytes([code if code >= 0 else 128 - code]))
    os._exit(0)


def become(asked: dict, streams: list[int]) -> None:
    """Be the command: its streams, folder, environment and arguments, then its exit."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv = ["tenfold", *asked["words"]]
    sys.stdin = os.fdopen(0, "r")
    sys.stdout = os.fdopen(1, "w")
    sys.stderr = os.fdopen(2, "w", buffering=1)
    status = 70
    try:
        importlib.import_module("tenfold.cli.main").run()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                status = status or 1
        os._exit(status)


if __name__ == "__main__":
    warm_up()
    serve(sys.argv[1])
