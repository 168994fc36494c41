"""The connection to the spawner: made again as often as a spawner exits."""

import os
import select
import socket
from contextlib import closing
from pathlib import Path

import pytest

from patience import HANG_S
from tenfold.live.local.attempt.folder import ExecutorDir
from tenfold.live.local.spawner.link import TRIES, SpawnerLink
from tenfold.live.local.spawner.wire import PROTOCOL, NoteLine, line
from tenfold.model.errors import Unreachable


class FakeSpawners:
    """Spawners that exit right after their first line, so many of them, and then one that stays."""

    def __init__(self, exiting: int) -> None:
        self._left = exiting
        self.stays: socket.socket | None = None

    def dial(self) -> tuple[socket.socket, NoteLine]:
        """Connect to the next one; it is gone before the link reads anything."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        if self._left:
            self._left -= 1
            theirs.close()
        else:
            self.stays = theirs
        return ours, {"saw": "hello", "at_ms": 0, "protocol": PROTOCOL, "pid": os.getpid()}


@pytest.fixture(name="home")
def a_home(tmp_path: Path) -> ExecutorDir:
    made = ExecutorDir(str(tmp_path))
    made.prepare()
    return made


@pytest.mark.parametrize("exiting", [1, 2, TRIES - 1])
def test_spawners_that_exit_at_once_are_followed_until_one_stays(
    home: ExecutorDir, exiting: int, monkeypatch: pytest.MonkeyPatch
):
    spawners = FakeSpawners(exiting)
    monkeypatch.setattr(SpawnerLink, "_open_connection", spawners.dial)
    with closing(SpawnerLink(home)) as link:
        assert link.receive() == []
        assert spawners.stays is not None, "nothing would wake a caller without a connection"
        note: NoteLine = {"saw": "started", "at_ms": 1, "job": "a", "attempt": 1}
        spawners.stays.sendall(line(note))
        assert select.select([link], [], [], HANG_S)[0]
        assert link.receive() == [note]


def test_an_order_to_leave_is_for_the_spawner_that_is_connected(
    home: ExecutorDir, monkeypatch: pytest.MonkeyPatch
):
    spawners = FakeSpawners(1)
    monkeypatch.setattr(SpawnerLink, "_open_connection", spawners.dial)
    with closing(SpawnerLink(home)) as link:
        link.connect()
        link.send({"order": 0, "do": "leave"})
        link.send({"order": 0, "do": "lose-node", "node": "a"})
        link.receive()
        assert spawners.stays is not None
        sent = spawners.stays.recv(65_536)
        assert b"lose-node" in sent
        assert b"leave" not in sent


def test_spawners_that_all_exit_are_reported(home: ExecutorDir, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(SpawnerLink, "_open_connection", lambda _link: None)
    monkeypatch.setattr(SpawnerLink, "_start_spawner", lambda _link: False)
    with closing(SpawnerLink(home)) as link, pytest.raises(Unreachable):
        link.receive()
