"""Ports for new replicas.

On this machine a port is tried before it is given. Elsewhere nobody can try it, so ports are given
in turn: a replica whose port is taken ends, and the next one gets another.
"""

import os
from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from socket import AF_INET, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, socket

FIRST, LAST = 20_000, 29_999
"""Below the ports that Linux gives to clients."""
AT_ONCE = 16
"""Ports offered at a time; more replicas are ordered in the next step."""
TRIES_MAX = 2_000


class Ports:
    """Free ports, each offered once before any is offered again."""

    def __init__(self, is_free: Callable[[int], bool], first: int | None = None) -> None:
        self._is_free = is_free
        # Control planes on one machine begin at different ports.
        self._next = FIRST + (os.getpid() * 97 if first is None else first) % (LAST - FIRST + 1)
        self._offered: list[int] = []

    def offer(self, used: Container[int]) -> Sequence[int]:
        """Return free ports that no replica has; those that were used are replaced."""
        self._offered = [port for port in self._offered if port not in used]
        for _ in range(TRIES_MAX):
            if len(self._offered) >= AT_ONCE:
                break
            port, self._next = self._next, FIRST + (self._next + 1 - FIRST) % (LAST - FIRST + 1)
            if port not in used and port not in self._offered and self._is_free(port):
                self._offered.append(port)
        return tuple(self._offered)


def is_free_here(port: int) -> bool:
    """Return whether nothing listens on a port of this machine."""
    with suppress(OSError), socket(AF_INET, SOCK_STREAM) as tried:
        tried.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        tried.bind(("127.0.0.1", port))
        return True
    return False


def is_free_anywhere(port: int) -> bool:
    """Take every port of another machine as free: it cannot be tried from here."""
    return port > 0
