"""Shells of an attempt: how its supervisor finds those who ask for one."""

import select
import socket
from pathlib import Path

from tenfold.live.local.member.members import Streams
from tenfold.live.local.member.shells import PREFIX, Shells
from tenfold.live.local.spawner.wire import ShellLine


def never(_: ShellLine, __: Streams) -> int:
    raise AssertionError("nobody sent a request")


def test_a_socket_that_is_seen_before_it_listens_is_connected_to_at_its_own_signal(tmp_path: Path):
    shells = Shells(str(tmp_path), select.poll(), never, None)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / f"{PREFIX}1"))
        # The signal of another one that asks at the same moment.
        shells.accept()
        listener.listen(1)
        listener.setblocking(False)
        shells.accept()
        connection, _ = listener.accept()
        connection.close()
    shells.close()
