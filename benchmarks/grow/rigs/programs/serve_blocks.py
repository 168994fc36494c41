"""Serve blocks of bytes: one for every byte received, each after so many checksums of it.

serve_blocks.py ADDRESS PORT BLOCK_BYTES CHECKSUMS
"""

import socket
import sys
import threading
import zlib


def serve(connection: socket.socket, block: bytes, checksums: int) -> None:
    try:
        while connection.recv(1):
            for _ in range(checksums):
                zlib.crc32(block)
            connection.sendall(block)
    except OSError:
        pass


def main(address: str, port: int, size: int, checksums: int) -> None:
    block = bytes(size)
    listening = socket.create_server((address, port), backlog=512)
    while True:
        connection, _ = listening.accept()
        threading.Thread(target=serve, args=(connection, block, checksums), daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))
