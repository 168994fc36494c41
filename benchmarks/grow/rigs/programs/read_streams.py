"""Read one file past the cache by so many streams at a pace; print the blocks a second.

    read_streams.py FILE BLOCK_BYTES STREAMS BLOCKS_PER_S SECONDS PROCS_FILE

Moves itself into the control group of PROCS_FILE first. A pace of 0 is as fast as they come.
"""

import mmap
import os
import sys
import threading
from pathlib import Path
from time import monotonic, sleep

BEGIN_S = 1.0
STRIDE = 13


def main(file: str, size: int, streams: int, pace: float, seconds: float) -> None:
    descriptor = os.open(file, os.O_RDONLY | os.O_DIRECT)
    blocks = os.fstat(descriptor).st_size // size
    begin = monotonic() + BEGIN_S
    end = begin + seconds
    counts = [0] * streams

    def read(number: int) -> None:
        buffer = mmap.mmap(-1, size)
        place = number * 7_919 % blocks
        shift = number / streams / pace if pace else 0.0
        sleep(max(0.0, begin + shift - monotonic()))
        own = monotonic()
        while monotonic() < end:
            os.preadv(descriptor, [buffer], place * size)
            if monotonic() > end:
                return
            place = (place + STRIDE) % blocks
            counts[number] += 1
            if pace:
                sleep(max(0.0, min(own + counts[number] / pace, end) - monotonic()))

    threads = [threading.Thread(target=read, args=(number,)) for number in range(streams)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sum(counts) / seconds)


if __name__ == "__main__":
    Path(sys.argv[6]).write_text(str(os.getpid()))
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5]))
