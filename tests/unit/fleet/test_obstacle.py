"""The counts that say why a job waits: over all nodes that the job could use."""

from msgspec.structs import replace

from tenfold.fleet.obstacle import free_capacity
from tenfold.fleet.topology.topology import TopologyCapacity
from tenfold.model.events import NodeCordoned
from tenfold.model.fleet.node import Node
from tenfold.model.ids import NodeId, SiteId
from tenfold.model.job.job import Shape, shape_of
from tenfold.model.units import Millis
from tenfold.testing.builders import fleet, nodes

NORTH = [replace(one, site=SiteId("north")) for one in nodes(2, name="a")]
SOUTH = [replace(one, site=SiteId("south")) for one in nodes(3, name="b")]


def counted(made: list[Node], shape: Shape, *cordoned: str) -> tuple[int, int, int, int]:
    made_fleet = fleet(made)
    for name in cordoned:
        made_fleet.apply(NodeCordoned(Millis(0), NodeId(name)))
    capacity = TopologyCapacity.of(made_fleet)
    room = free_capacity(capacity, shape, capacity.accelerators_for(shape))
    return room.nodes_alike, room.nodes_with_room, room.nodes_away, room.gpus_free


def test_a_job_on_one_node_may_use_nodes_of_every_kind():
    assert counted([*NORTH, *SOUTH], shape_of(8)) == (5, 5, 0, 40)
    assert counted([*NORTH, *SOUTH], shape_of(8), "a0", "b1") == (5, 3, 2, 24)


def test_a_gang_uses_nodes_of_one_kind():
    assert counted([*NORTH, *SOUTH], shape_of(24)) == (3, 3, 0, 24)


def test_a_kind_that_would_need_several_nodes_is_not_counted_for_one():
    small = [replace(one, gpus=4, accelerator="L4") for one in nodes(4, name="c")]
    assert counted([*NORTH, *small], shape_of(8)) == (2, 2, 0, 16)
    assert counted([*NORTH, *small], shape_of(4)) == (6, 6, 0, 32)
