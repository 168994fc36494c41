"""Gangs that stand together, racks that keep to their power, nodes that are kept."""

from msgspec.structs import replace

from tenfold.fleet.capacity import Capacity, Slots
from tenfold.fleet.topology.node_index import TopologyNodeIndex
from tenfold.fleet.topology.topology import Nearest, TopologyCapacity
from tenfold.model.fleet.constraints import Level, PlacementConstraints, TopologyMode
from tenfold.model.fleet.node import Node
from tenfold.model.ids import NodeId
from tenfold.model.job.job import Shape, Slot, shape_of
from tenfold.testing.builders import fleet, in_domains, nodes


def gang(members: int, how: TopologyMode, within: Level = "rack", gpus: int = 8) -> Shape:
    where = PlacementConstraints(within=within, how=how)
    return shape_of(members * gpus, gpus_per_node=gpus, where=where)


def room(members: list[Node]) -> TopologyCapacity:
    return TopologyCapacity.of(fleet(members))


def fill(capacity: Capacity, *numbers: int, gpus: int = 8) -> None:
    for number in numbers:
        capacity.take((Slot(NodeId(f"n{number}"), gpus),), shape_of(gpus))


def numbers(slots: Slots | None) -> list[int]:
    assert slots is not None
    return sorted(int(slot.node[1:]) for slot in slots)


def racks_of(count: int, size: int = 4) -> list[Node]:
    return in_domains(nodes(count), {"rack": size, "leaf": 2 * size, "pod": 4 * size})


def test_a_required_gang_takes_the_tightest_rack_that_holds_it():
    capacity = room(racks_of(12))
    fill(capacity, 4, 8, 9)
    assert numbers(capacity.claim(gang(3, "required"))) == [5, 6, 7]
    assert numbers(capacity.claim(gang(2, "required"))) == [10, 11]


def test_a_required_gang_waits_although_scattered_nodes_would_do():
    capacity = room(racks_of(8))
    fill(capacity, 0, 4)
    assert capacity.claim(gang(4, "required")) is None
    assert capacity.could_hold(gang(4, "required"))
    assert Capacity.of(fleet(racks_of(8))).claim(gang(4, "required")) is not None


def test_a_gang_larger_than_every_rack_never_fits_where_one_rack_is_required():
    capacity = room(racks_of(8))
    assert not capacity.could_hold(gang(5, "required"))
    assert capacity.could_hold(gang(5, "preferred"))
    assert capacity.could_hold(gang(5, "required", "leaf"))


def test_inside_a_rack_the_fullest_nodes_that_hold_a_member_are_taken():
    capacity = room(racks_of(4))
    fill(capacity, 1, 3, gpus=4)
    assert numbers(capacity.claim(gang(2, "required", gpus=4))) == [1, 3]


def test_a_smaller_last_member_stands_in_the_same_rack():
    capacity = room(racks_of(8))
    fill(capacity, 0, 1)
    fill(capacity, 2, 3, gpus=8)
    fill(capacity, 4, gpus=4)
    where = PlacementConstraints(within="rack", how="required")
    slots = capacity.claim(shape_of(20, gpus_per_node=8, where=where))
    assert slots == (Slot(NodeId("n5"), 8), Slot(NodeId("n6"), 8), Slot(NodeId("n4"), 4))


def test_a_preferred_rack_gives_way_to_a_leaf_and_there_to_few_racks():
    capacity = room(racks_of(16))
    fill(capacity, 0, 4, 8, 12)
    assert numbers(capacity.claim(gang(4, "preferred"))) == [1, 2, 3, 5]


def test_a_preferred_rack_gives_way_to_as_few_racks_as_will_do():
    capacity = room(in_domains(nodes(12), {"rack": 4}))
    fill(capacity, 0, 1, 2, 4, 8)
    assert numbers(capacity.claim(gang(4, "preferred"))) == [3, 5, 6, 7]


def test_without_a_wish_a_gang_shares_a_leaf_where_it_can():
    capacity = room(in_domains(nodes(8), {"leaf": 4}))
    fill(capacity, 0, 1)
    assert numbers(capacity.claim(shape_of(32))) == [4, 5, 6, 7]
    assert numbers(capacity.claim(shape_of(16))) == [2, 3]


def test_balanced_parts_are_equal_and_few():
    capacity = room(racks_of(12))
    fill(capacity, 0, 4, 8)
    assert numbers(capacity.claim(gang(4, "balanced"))) == [1, 2, 5, 6]
    assert numbers(capacity.claim(gang(3, "balanced"))) == [9, 10, 11]


def test_a_balanced_gang_that_cannot_be_cut_equally_waits():
    capacity = room(racks_of(8))
    fill(capacity, 0, 1, 2)
    assert capacity.claim(gang(5, "balanced")) is None
    assert capacity.could_hold(gang(5, "balanced"))


def test_spread_members_stand_in_as_many_racks_as_there_are():
    capacity = room(racks_of(12))
    fill(capacity, 0, 1, 2)
    assert numbers(capacity.claim(gang(2, "spread"))) == [4, 8]
    assert numbers(capacity.claim(gang(5, "spread"))) == [3, 5, 6, 9, 10]


def test_a_domain_counts_only_nodes_with_cpus_left_for_a_member():
    capacity = room(in_domains(nodes(4, cpus=8), {"rack": 2}))
    capacity.take((Slot(NodeId("n0"), 1),), shape_of(1, cpus=6))
    where = PlacementConstraints(within="rack", how="required")
    asks = shape_of(2, gpus_per_node=1, cpus=8, where=where)
    assert numbers(capacity.claim(asks)) == [2, 3]
    assert numbers(capacity.claim(asks)) == [2, 3]
    assert capacity.claim(asks) is None


def test_a_balanced_gang_would_rather_stand_whole_in_a_later_bank():
    plain, other = nodes(4), nodes(2, name="m", accelerator="B")
    capacity = room([*in_domains(plain, {"rack": 1}), *in_domains(other, {"rack": 2})])
    assert [slot.node for slot in capacity.claim(gang(2, "balanced")) or ()] == ["m0", "m1"]


def test_nodes_without_a_name_at_a_level_share_nothing():
    capacity = room(nodes(4))
    assert not capacity.could_hold(gang(2, "required", "scale-up"))
    assert capacity.claim(gang(1, "required", "scale-up")) is not None
    assert capacity.claim(shape_of(24)) is not None


def test_only_nodes_with_the_tags_that_a_shape_needs_will_do():
    plain, safe = nodes(2), nodes(2, name="m")
    capacity = room([*plain, *(replace(node, tags=("EU", "production")) for node in safe)])
    needs = shape_of(8, where=PlacementConstraints(needs=("EU",)))
    avoids = shape_of(8, where=PlacementConstraints(avoids=("production",)))
    assert [slot.node for slot in capacity.claim(needs) or ()] == ["m0"]
    assert [slot.node for slot in capacity.claim(avoids) or ()] == ["n0"]
    assert not capacity.could_hold(shape_of(8, where=PlacementConstraints(needs=("US",))))
    assert not capacity.could_hold(shape_of(24)), "nodes with other tags are not alike"


def test_claims_may_be_held_to_one_type_of_accelerator():
    a, b = nodes(2, accelerator="A"), nodes(2, accelerator="B", name="m")
    capacity = room([*a, *b])
    assert capacity.accelerators_for(shape_of(1)) == ("A", "B")
    assert capacity.accelerators_for(shape_of(1, accelerators=("B",))) == ("B",)
    assert [slot.node for slot in capacity.claim_in(shape_of(1), "B") or ()] == ["m0"]
    assert [slot.node for slot in capacity.claim_in(shape_of(16), "B") or ()] == []
    assert capacity.claim_in(shape_of(1, accelerators=("B",)), "A") is None
    assert numbers(capacity.claim_in(shape_of(16), "A")) == [0, 1]


def powered(count: int, watts: int, per_rack: int = 4) -> list[Node]:
    """Nodes that draw 100 W idle and 100 W more for each of 8 GPUs, in racks with a limit."""
    return [
        replace(node, watts_idle=100, watts_per_gpu=100, rack_watts=watts)
        for node in in_domains(nodes(count), {"rack": per_rack})
    ]


def test_a_rack_never_draws_more_than_it_may():
    capacity = room(powered(4, 400 + 2_000))
    taken = [capacity.claim(shape_of(1)) for _ in range(21)]
    assert sum(slots is not None for slots in taken) == 20
    assert taken[-1] is None
    first = taken[0]
    assert first is not None
    capacity.give(first, shape_of(1))
    assert capacity.claim(shape_of(0.5)) is not None
    assert capacity.claim(shape_of(0.5)) is not None, "a device that is shared draws already"
    assert capacity.claim(shape_of(0.5)) is None


def test_a_gang_goes_where_racks_can_feed_all_its_members():
    capacity = room(powered(8, 400 + 2_000))
    assert not capacity.could_hold(gang(3, "required"))
    slots = capacity.claim(shape_of(32))
    assert len(numbers(slots)) == 4
    assert [number // 4 for number in numbers(slots)] == [0, 0, 1, 1]
    assert not capacity.could_hold(shape_of(40))
    assert capacity.claim(shape_of(8)) is None


def test_a_node_that_its_rack_cannot_feed_whole_never_holds_a_job_of_that_size():
    capacity = room(powered(1, 100 + 400, per_rack=1))
    assert not capacity.could_hold(shape_of(8))
    assert capacity.could_hold(shape_of(4))


def test_slots_that_a_rack_cannot_feed_are_not_free():
    capacity = room(powered(4, 400 + 1_600))
    slots = tuple(Slot(NodeId(f"n{number}"), 8) for number in range(3))
    assert capacity.has(slots[:2], shape_of(16))
    assert not capacity.has(slots, shape_of(24))


def test_a_node_kept_twice_is_offered_again_after_both_reasons_are_gone():
    capacity = room(nodes(1))
    node = NodeId("n0")
    capacity.hide(node)
    capacity.hide(node)
    capacity.unhide(node)
    assert capacity.claim(shape_of(1)) is None
    capacity.unhide(node)
    assert capacity.claim(shape_of(1)) is not None


def test_a_kept_node_that_is_lost_and_returns_stays_hidden():
    capacity = room(nodes(1))
    node = NodeId("n0")
    capacity.hide(node)
    capacity.set_open(node, False)
    capacity.set_open(node, True)
    assert capacity.claim(shape_of(1)) is None
    capacity.set_open(node, False)
    capacity.unhide(node)
    assert capacity.claim(shape_of(1)) is None
    capacity.set_open(node, True)
    assert capacity.claim(shape_of(1)) is not None


def test_what_is_given_back_on_a_kept_node_counts_once_it_is_offered():
    capacity = room(nodes(1))
    slots = capacity.claim(shape_of(8))
    assert slots is not None
    capacity.hide(NodeId("n0"))
    capacity.give(slots, shape_of(8))
    capacity.unhide(NodeId("n0"))
    assert capacity.claim(shape_of(8)) == slots


def test_domains_are_named_in_the_order_of_their_nodes():
    capacity = room(racks_of(8))
    assert list(capacity.domains("rack")) == ["rack-0", "rack-1"]
    assert capacity.domains("rack")["rack-1"] == ("n4", "n5", "n6", "n7")
    assert list(capacity.domains("scale-up")) == [f"n{number}" for number in range(8)]
    assert capacity.domain_of(NodeId("n5"), "rack") == "rack-1"
    assert capacity.domain_of(NodeId("n5"), "leaf") == "leaf-0"


def test_the_nearest_domain_is_the_one_with_most_room():
    capacity = room(racks_of(8))
    fill(capacity, 0, 1, 4)
    assert capacity.best_domain(gang(4, "required")) == Nearest("rack-1", 3, 4, 4)
    assert capacity.best_domain(gang(5, "required")) is None


def test_a_node_that_is_hidden_counts_for_no_member_not_even_one_without_gpus():
    capacity = room(racks_of(4))
    [node_index] = capacity.node_indexes.values()
    assert isinstance(node_index, TopologyNodeIndex)
    before = {gpus: list(node_index.tally("rack", gpus).counts) for gpus in (0, 1, 8)}
    capacity.set_open(NodeId("n1"), False)
    assert {gpus: node_index.tally("rack", gpus).counts for gpus in before} == {
        0: [3],
        1: [3],
        8: [3],
    }
    capacity.set_open(NodeId("n1"), True)
    assert {gpus: node_index.tally("rack", gpus).counts for gpus in before} == before
