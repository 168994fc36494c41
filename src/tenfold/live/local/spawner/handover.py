"""Between a spawner and a supervisor: notes go up, and the next attempt comes down with its lock.

A supervisor whose attempt ended by itself may be given another one. That saves a fork and all
that a fresh fork touches, which is most of what a short job costs. The lock travels with the
message: whoever dies on the way, somebody who sees neither lock nor end buries the attempt.

Only the spawner ends this: it closes its end, and a supervisor that waits then leaves. Were the
supervisor to leave by itself, an attempt that is on its way just then would be lost.
"""

import json
import os
import select
import signal
import socket
import sys

from tenfold.live.local.attempt.folder import AttemptFolder, ExecutorDir

NOTE, ATTEMPT_OVER = b"n", b"o"
"""What a message begins with: a note, or the end of the attempt and readiness for another."""
BYTES_MOST = 65_536
_INT_BYTES = 4
_LOCK_BYTES = socket.CMSG_LEN(_INT_BYTES)


class SpawnerChannel:
    """The supervisor's end. Without a spawner it says so, and nothing is lost."""

    def __init__(self, file: int) -> None:
        self._socket = socket.socket(fileno=file)

    def note(self, text: bytes) -> bool:
        """Pass on a line; raises `BlockingIOError` to try later, False where nobody listens."""
        return self._send(NOTE + text)

    def report_end(self, text: bytes) -> bool:
        """Tell the end of the attempt; False where the supervisor should leave instead."""
        try:
            return self._send(ATTEMPT_OVER + text)
        except BlockingIOError:
            return False

    def wait_for_next(self, home: ExecutorDir, signals: int) -> tuple[AttemptFolder, int] | None:
        """Wait for the next attempt and return it with its lock; None when it is time to leave."""
        poll = select.poll()
        for file in (self._socket.fileno(), signals):
            poll.register(file, select.POLLIN)
        while True:
            ready = [file for file, _ in poll.poll()]
            # An attempt that came together with a signal is taken, and hears of the signal.
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
    """Give an attempt to a supervisor that waits; False where it does not wait any more."""
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
