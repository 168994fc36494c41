"""Give freed memory back to the operating system, and look for garbage where there may be some.

The C library keeps what is freed: each thread has an arena of its own, up to eight per core, and
requests run in many threads. After some minutes of large requests the process held 60 MiB that
nothing used. Two arenas are enough here, since Python threads allocate one after another.
"""

import ctypes
import gc
import logging
import os
from time import perf_counter

from tenfold.server.background.background import BackgroundTask

EVERY_S = 30.0
"""Between two trims. One takes milliseconds, and other threads run meanwhile."""
SLOW_S = 1.0
ARENAS = 2
LARGE_BYTES = 128 << 10
"""Larger blocks are mapped one by one and unmapped when freed. Unless this is set, the C library
raises it to the largest block so far, and bodies of requests then leave holes in the heap."""
END_S = 5.0
GC_OBJECTS = 10_000
"""New objects between two searches for garbage. Requests and jobs make many, and hardly a cycle."""
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
_LOG = logging.getLogger("tenfold.server")


def limit_heap() -> bool:
    """Limit what the C library keeps; call this before threads start.

    False if it is not glibc, which alone has these settings. Those in the environment win.
    """
    library = _glibc()
    if library is None:
        return False
    if "MALLOC_ARENA_MAX" not in os.environ:
        library.mallopt(_M_ARENA_MAX, ARENAS)
    if "MALLOC_MMAP_THRESHOLD_" not in os.environ:
        library.mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
    return True


def spare_the_collector() -> None:
    """Leave what exists now out of every search for garbage; call this once everything is loaded.

    It lives as long as the process. Without this, an array of a thousand jobs had all of it
    searched, again and again: a fifth of the CPU time that the control plane spent on short jobs.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_OBJECTS, *gc.get_threshold()[1:])


class HeapTrimmer(BackgroundTask):
    """Trims the heap while it runs."""

    def __init__(self) -> None:
        super().__init__("trimming", END_S)
        self._library = _glibc()

    def once(self) -> None:
        """Return free pages to the operating system, also those between blocks in use."""
        if self._library is not None:
            self._library.malloc_trim(0)

    def work(self) -> None:
        """Trim again and again."""
        while self._library is not None and not self.stopping.wait(EVERY_S):
            start_s = perf_counter()
            self.once()
            if (took_s := perf_counter() - start_s) > SLOW_S:
                _LOG.warning("returning free memory took %.1f s", took_s)


def _glibc() -> ctypes.CDLL | None:
    library = ctypes.CDLL(None)
    names = ("gnu_get_libc_version", "mallopt", "malloc_trim")
    return library if all(hasattr(library, name) for name in names) else None
