"""The routing state has a version that grows with every change, and over restarts."""

from tenfold.model.service.routing import RoutingState, Service
from tenfold.server.background.services.ports import FIRST, LAST, Ports
from tenfold.server.background.services.routing_board import RoutingBoard


def test_a_version_grows_only_with_a_change():
    now_ms = [1_000]
    board = RoutingBoard(lambda: now_ms[0])
    assert board.newer(-1) is None
    assert board.publish(RoutingState()) == 1_000
    now_ms[0] = 2_000
    assert board.publish(RoutingState()) == 1_000
    changed = RoutingState(services=(Service(name="chat"),))
    assert board.publish(changed) == 2_000
    assert board.publish(RoutingState()) == 2_001, "two changes in one moment"
    assert board.newer(2_001) is None
    assert b'"version":2001' in (board.newer(2_000) or b"")


def test_a_later_control_plane_has_higher_versions():
    before, after = RoutingBoard(lambda: 1_000), RoutingBoard(lambda: 5_000)
    assert after.publish(RoutingState()) > before.publish(RoutingState())


def test_a_control_plane_that_no_longer_leads_shows_nothing():
    board = RoutingBoard(lambda: 1_000)
    board.publish(RoutingState())
    board.withdraw()
    assert (board.newer(-1), board.version) == (None, 0)


def test_ports_are_offered_once_each_and_go_round():
    ports = Ports(lambda port: port % 2 == 0, first=LAST - FIRST - 1)
    offered = ports.offer(())
    assert offered[0] == LAST - 1
    assert offered[1] == FIRST
    assert len(set(offered)) == len(offered)
    again = ports.offer(set(offered[:2]))
    assert not set(offered[:2]) & set(again)
    assert ports.offer(()) == again
