"""The channel between spawner and supervisor: notes go up, and the next attempt comes down.

A supervisor whose attempt ended by itself may be given another one. That saves a fork and its
copied pages, most of the cost of a short job. The lock is passed with the message: if either side
dies, an attempt with neither lock nor end is reaped.

Only the spawner closes the channel; a waiting supervisor then exits. If the supervisor left by
itself, an attempt on its way at that moment would be lost.
"""

import json
import os
import select
import signal
import socket
import sys

from tenfold.live.local.attempt.folder import AttemptFolder, ExecutorDir
from tenfold.live.local.attempt.recent_ends import RecentEnds
from tenfold.live.local.processes import monotonic_ms

NOTE, ATTEMPT_OVER = b"n", b"o"
"""First byte of a message: a note, or the end of the attempt and readiness for another."""
BYTES_MOST = 65_536
_INT_BYTES = 4
_LOCK_BYTES = socket.CMSG_LEN(_INT_BYTES)


class SpawnerChannel:
    """The supervisor's end. Without a spawner nothing is lost."""

    def __init__(self, file: int) -> None:
        self._socket = socket.socket(fileno=file)

    def note(self, text: bytes) -> bool:
        """Send a line; raises `BlockingIOError` to retry later, False if the spawner is gone."""
        return self._send(NOTE + text)

    def report_end(self, text: bytes) -> bool:
        """Report the end of the attempt; False if the supervisor should exit instead."""
        try:
            return self._send(ATTEMPT_OVER + text)
        except BlockingIOError:
            return False

    def wait_for_next(
        self, home: ExecutorDir, signals: int, recent: RecentEnds
    ) -> tuple[AttemptFolder, int] | None:
        """Wait for the next attempt and return it with its lock; None when it is time to exit."""
        poll = select.poll()
        for file in (self._socket.fileno(), signals):
            poll.register(file, select.POLLIN)
        while True:
            ready = [file for file, _ in poll.poll(recent.wait_ms(monotonic_ms()))]
            if not ready:
                recent.sync_due(monotonic_ms())
                continue
            # An attempt that arrives together with a signal is accepted, and handles the signal.
            if self._socket.fileno() in ready:
                return self._receive_attempt(home)
            numbers = os.read(signals, 256)
            if signal.SIGTERM in numbers or signal.SIGINT in numbers:
                return None

    def _receive_attempt(self, home: ExecutorDir) -> tuple[AttemptFolder, int] | None:
        # Not `recv_fds`, which drops the flag: a member must not inherit the lock.
        flag = socket.MSG_CMSG_CLOEXEC
        try:
            text, ancillary, _, _ = self._socket.recvmsg(BYTES_MOST, _LOCK_BYTES, flag)
        except OSError:
            return None
        if not text or not ancillary:
            return None
        job, number = json.loads(text)
        return home.attempt(job, number), int.from_bytes(ancillary[0][2], sys.byteorder)

    def _send(self, message: bytes) -> bool:
        try:
            return self._socket.send(message, socket.MSG_DONTWAIT) == len(message)
        except BlockingIOError:
            raise
        except OSError:
            return False


def hand_over(link: socket.socket, folder: AttemptFolder, lock: int) -> bool:
    """Pass an attempt to a waiting supervisor; False if it no longer waits."""
    text = json.dumps([folder.job, folder.number]).encode()
    try:
        return socket.send_fds(link, [text], [lock]) == len(text)
    except OSError:
        return False


def open_link() -> tuple[socket.socket, socket.socket]:
    """Return the spawner's end, which never blocks, and the supervisor's."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    return ours, theirs
