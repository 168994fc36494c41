"""Read blocks over so many connections at a pace, and print how many came a second.

    read_blocks.py ADDRESS PORT BLOCK_BYTES READERS BLOCKS_PER_S SECONDS

A pace of 0 is as fast as they come. A reader that fell behind does not wait until it is level.
"""

import socket
import sys
import threading
from time import monotonic, sleep

CONNECT_S = 1.0


def read_whole(connection: socket.socket, size: int) -> bool:
    left = size
    while left:
        got = connection.recv(min(left, 1 << 18))
        if not got:
            return False
        left -= len(got)
    return True


def main(address: str, port: int, size: int, readers: int, pace: float, seconds: float) -> None:
    begin = monotonic() + CONNECT_S
    end = begin + seconds
    counts = [0] * readers

    def read(number: int) -> None:
        with socket.create_connection((address, port)) as connection:
            connection.settimeout(30)
            shift = number / readers / pace if pace else 0.0
            sleep(max(0.0, begin + shift - monotonic()))
            own = monotonic()
            while monotonic() < end:
                connection.sendall(b"x")
                if not read_whole(connection, size) or monotonic() > end:
                    return
                counts[number] += 1
                if pace:
                    sleep(max(0.0, min(own + counts[number] / pace, end) - monotonic()))

    threads = [threading.Thread(target=read, args=(number,)) for number in range(readers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sum(counts) / seconds)


if __name__ == "__main__":
    main(
        sys.argv[1],
        int(sys.argv[2]),
        int(sys.argv[3]),
        int(sys.argv[4]),
        float(sys.argv[5]),
        float(sys.argv[6]),
    )
