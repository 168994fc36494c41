"""Memory that was freed between blocks in use goes back to the operating system."""

import platform
import subprocess
import sys

import pytest

from tenfold.server.background.heap_trimming import HeapTrimmer

PROGRAM = """
from pathlib import Path
from threading import Barrier, Thread
from tenfold.server.background.heap_trimming import HeapTrimmer, limit_heap

def rss_mib():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / (1 << 20)

limit_heap()
kept, together = [], Barrier(8)

def fill():
    together.wait()
    blocks = [b'x' * 60_000 for _ in range(200)]
    kept.extend(blocks[::20])
    together.wait()

threads = [Thread(target=fill) for _ in range(8)]
for one in threads: one.start()
for one in threads: one.join()
held = rss_mib()
HeapTrimmer().once()
print(held - rss_mib())
"""


# Not by calling it: that would slow every large block of all tests of this process.
@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="only glibc keeps memory that was freed"
)
def test_free_memory_between_blocks_in_use_is_returned():
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True
    )
    returned_mib = float(told.stdout)
    # 8 threads freed 190 blocks of 60 kB each: 87 MiB, and the heap keeps the end of it.
    assert returned_mib > 60


def test_a_trimmer_stops_when_it_is_asked_to(caplog: pytest.LogCaptureFixture):
    task = HeapTrimmer()
    task.start()
    task.stop()
    assert caplog.text == ""


COLLECTOR = """
import gc
from tenfold.server.background.heap_trimming import GC_OBJECTS, spare_the_collector
before = gc.get_threshold()
spare_the_collector()
assert gc.get_freeze_count() > 1_000
assert gc.get_threshold() == (GC_OBJECTS, *before[1:])
"""


def test_what_exists_at_the_start_is_never_searched_for_garbage():
    subprocess.run([sys.executable, "-c", COLLECTOR], check=True)
