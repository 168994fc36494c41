"""Many connections that send prepared requests and read their answers, with little work for each.

A request is signed once and sent many times: what is measured is the server.
"""

import re
import selectors
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

RECEIVE_BYTES = 1 << 20
SEND_BYTES = 1 << 20
STALL_S = 120.0
_LENGTH = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: (\d+)\r\n")
_SCRATCH = bytearray(RECEIVE_BYTES)


@dataclass
class Load:
    """What happened to the requests of a run."""

    requests: int = 0
    errors: int = 0
    received_bytes: int = 0
    sent_bytes: int = 0
    seconds: float = 0.0
    first_error: str = ""


@dataclass
class _Client:
    connection: socket.socket
    request: memoryview = field(default_factory=lambda: memoryview(b""))
    sent: int = 0
    head: bytes = b""
    left: int = -1


def drive(
    address: tuple[str, int], requests: Sequence[bytes], connections: int, count: int
) -> Load:
    """Send `count` requests over so many connections, each after the answer to the one before."""
    load = Load()
    selector = selectors.DefaultSelector()
    todo = iter(requests[index % len(requests)] for index in range(count))
    started = time.perf_counter()
    for _ in range(min(connections, count)):
        client = _Client(socket.create_connection(address, timeout=60))
        client.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.connection.setblocking(False)
        selector.register(client.connection, selectors.EVENT_WRITE, client)
        client.request = memoryview(next(todo))
    while selector.get_map():
        ready = selector.select(STALL_S)
        if not ready:
            load.errors += len(selector.get_map())
            load.first_error = load.first_error or "no byte moved for two minutes"
            break
        for key, events in ready:
            client: _Client = key.data
            if events & selectors.EVENT_WRITE:
                _send(selector, client, load)
            elif _receive(client, load):
                following = next(todo, None)
                if following is None or client.left == -2:
                    selector.unregister(client.connection)
                    client.connection.close()
                else:
                    client.request, client.sent = memoryview(following), 0
                    client.head, client.left = b"", -1
                    _send(selector, client, load)
    load.seconds = time.perf_counter() - started
    for key in list(selector.get_map().values()):
        key.data.connection.close()
    selector.close()
    return load


def _send(selector: selectors.BaseSelector, client: _Client, load: Load) -> None:
    wanted = selectors.EVENT_READ
    try:
        while client.sent < len(client.request):
            piece = client.request[client.sent : client.sent + SEND_BYTES]
            sent = client.connection.send(piece)
            client.sent += sent
            load.sent_bytes += sent
    except BlockingIOError:
        wanted = selectors.EVENT_WRITE
    except OSError as error:
        load.first_error = load.first_error or str(error)
    selector.modify(client.connection, wanted, client)


def _receive(client: _Client, load: Load) -> bool:
    """Take what arrived; True at the end of an answer, with `left` -2 if there can be no other."""
    try:
        count = client.connection.recv_into(_SCRATCH)
    except BlockingIOError:
        return False
    except OSError as error:
        return _failed(client, load, str(error))
    if count == 0:
        return _failed(client, load, "the server closed the connection")
    load.received_bytes += count
    if client.left >= 0:
        client.left -= count
    else:
        client.head += bytes(_SCRATCH[:count])
        end = client.head.find(b"\r\n\r\n")
        if end < 0:
            return False
        found = _LENGTH.search(client.head[: end + 2])
        client.left = (int(found[1]) if found else 0) - (len(client.head) - end - 4)
        if not client.head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 206")):
            load.errors += 1
            load.first_error = load.first_error or client.head[:300].decode("latin-1")
    if client.left > 0:
        return False
    load.requests += 1
    return True


def _failed(client: _Client, load: Load, why: str) -> bool:
    load.errors += 1
    load.first_error = load.first_error or why
    client.left = -2
    return True
