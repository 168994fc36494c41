"""Measure the performance of a node in about two seconds, run there like a job.

It runs under the limits of the node's jobs, so a machine that provides less than it declares is
measured as it is. Every rate is the best of several tries: other load can only make a try slower. A
try is longer than the kernel's CPU quota period, so a burst does not count. It imports nothing of
Tenfold, so any Python on the node can run it; the result is its last line of output, as JSON.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from time import perf_counter

TRIES = 3
TRY_S = 0.15
"""One and a half CPU quota periods of the kernel."""
MOST_S = 60
"""A longer test is aborted: the node may have a hanging disk."""
BLOCK = bytes(range(256)) * 256
SIDE = 384
"""Matrices of this size fit in the cache of one core."""
BUFFER_BYTES = 64 * 1024 * 1024
"""Larger than the caches of one core."""
FILE_BYTES = 32 * 1024 * 1024
PIECE_BYTES = 4 * 1024 * 1024
SYNC_BYTES = 4_096
FILE = "node-test.tmp"
COMMAND = (sys.executable, "-I", os.path.abspath(__file__))
"""Command line, with the interpreter of the control plane."""

GPU_DEVICES = ("/dev/nvidia0", "/dev/kfd")

Measured = tuple[str, float, str]


def main() -> None:
    """Measure, and print the result."""
    signal.alarm(MOST_S)
    # One core per process; this program controls their number.
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    figures: list[Measured] = []
    unmeasured: list[dict[str, object]] = []
    for part in (_integer, _float, _memory, _disk):
        try:
            figures += part()
        except (OSError, ImportError, MemoryError) as error:
            name = part.__name__.removeprefix("_")
            said = {"type": "text", "text": str(error) or type(error).__name__}
            unmeasured.append({"code": "not-measured", "fields": {"figure": name, "said": said}})
    if any(os.path.exists(device) for device in GPU_DEVICES):
        unmeasured.append({"code": "gpus-not-measured"})
    rounded = [
        {"name": name, "value": float(f"{value:.4g}"), "unit": unit}
        for name, value, unit in figures
    ]
    sys.stdout.write(json.dumps({"figures": rounded, "unmeasured": unmeasured}) + "\n")
    sys.stdout.flush()


def rate(work: Callable[[], float], try_s: float = TRY_S, tries: int = TRIES) -> float:
    """Return the rate per second, the best of several tries."""
    best = 0.0
    for _ in range(tries):
        done, begun = 0.0, perf_counter()
        passed = 0.0
        while passed < try_s:
            done += work()
            passed = perf_counter() - begun
        best = max(best, done / passed)
    return best


def _integer() -> list[Measured]:
    def hashed() -> float:
        sha256(BLOCK).digest()
        return len(BLOCK) / 1e6

    return [("core-integer", rate(hashed), "MB/s")]


def _float() -> list[Measured]:
    one = rate(_multiplied())
    found: list[Measured] = [("core-float", one, "GFLOP/s")]
    cores = len(os.sched_getaffinity(0))
    if cores > 1:
        found.append(("all-cores-float", _on_all(cores), "GFLOP/s"))
    return found


def _multiplied() -> Callable[[], float]:
    import numpy as np  # noqa: PLC0415 - after the number of threads is set

    left = np.full((SIDE, SIDE), 1.000001, dtype=np.float32)
    product = np.empty_like(left)

    def multiply() -> float:
        np.matmul(left, left, out=product)
        return 2 * SIDE**3 / 1e9

    return multiply


def _on_all(cores: int) -> float:
    """Return the combined rate of all cores, one process each."""
    reader, writer = os.pipe()
    children: list[int] = []
    for _ in range(cores):
        pid = os.fork()
        if pid == 0:
            os.write(writer, f"{rate(_multiplied())}\n".encode())
            os._exit(0)
        children.append(pid)
    os.close(writer)
    for pid in children:
        os.waitpid(pid, 0)
    with os.fdopen(reader) as output:
        rates = [float(line) for line in output]
    if len(rates) != cores:
        raise OSError(f"{cores - len(rates)} of {cores} cores gave no result")
    return sum(rates)


def _memory() -> list[Measured]:
    source, target = bytearray(BUFFER_BYTES), bytearray(BUFFER_BYTES)
    into, out_of = memoryview(target), memoryview(source)

    def copied() -> float:
        into[:] = out_of
        # Every byte is read once and written once.
        return 2 * BUFFER_BYTES / 1e9

    # The first try faults in pages, so it is never the best.
    return [("memory-copy", rate(copied), "GB/s")]


def _disk() -> list[Measured]:
    piece = os.urandom(PIECE_BYTES)
    file = os.open(FILE, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        return [
            ("disk-write", max(_written(file, piece) for _ in range(2)), "MB/s"),
            ("disk-read", max(_read(file) for _ in range(2)), "MB/s"),
            ("disk-sync", _synced(file, piece), "/s"),
        ]
    finally:
        os.close(file)
        with suppress(OSError):
            os.unlink(FILE)


def _written(file: int, piece: bytes) -> float:
    begun = perf_counter()
    for at in range(0, FILE_BYTES, PIECE_BYTES):
        os.pwrite(file, piece, at)
    os.fsync(file)
    return FILE_BYTES / 1e6 / (perf_counter() - begun)


def _read(file: int) -> float:
    """Read back what was written; from the disk if the kernel drops its cached copy."""
    os.posix_fadvise(file, 0, FILE_BYTES, os.POSIX_FADV_DONTNEED)
    begun = perf_counter()
    for at in range(0, FILE_BYTES, PIECE_BYTES):
        os.pread(file, PIECE_BYTES, at)
    return FILE_BYTES / 1e6 / (perf_counter() - begun)


def _synced(file: int, piece: bytes) -> float:
    def synced() -> float:
        os.pwrite(file, piece[:SYNC_BYTES], 0)
        os.fsync(file)
        return 1.0

    return rate(synced)


if __name__ == "__main__":
    main()
