"""Which node and which device a placement takes, in cases small enough to work out by hand."""

import pytest

from placement_builders import fleet, node, room
from tenfold.decide.place.score.node_arrays import NodeArrays, NodeRequest, node_request
from tenfold.decide.place.score.shape_mix import WINDOW, ShapeMix, epoch_of
from tenfold.fleet.capacity import Capacity
from tenfold.fleet.fleet import Fleet
from tenfold.model.events import NodeCordoned
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import EndedJob, Job, Slot, shape_of
from tenfold.model.policy.policy import PLACEMENTS, Placement
from tenfold.model.units import Millis


def test_best_fit_leaves_the_fewest_cpus_and_gpus():
    capacity = room("best-fit", node("big", 8, cpus=96), node("small", 4, cpus=32))
    assert capacity.claim(shape_of(1, cpus=8)) == (Slot(NodeId("small"), 1),)


def test_best_fit_puts_a_share_on_the_device_with_the_most_left():
    capacity = room("best-fit", node("n", 2))
    first = capacity.claim(shape_of(0.5))
    second = capacity.claim(shape_of(0.25))
    assert first == (Slot(NodeId("n"), 0, 500, 0),)
    assert second == (Slot(NodeId("n"), 0, 250, 1),)


@pytest.mark.parametrize("placement", ["tenfold", "fgd"])
def test_a_share_joins_another_where_whole_gpus_are_in_demand(placement: Placement):
    capacity = room(placement, node("n", 2))
    capacity.know([shape_of(1), shape_of(0.5)])
    first = capacity.claim(shape_of(0.5))
    assert first is not None
    second = capacity.claim(shape_of(0.25))
    assert second == (Slot(NodeId("n"), 0, 250, first[0].device),)


@pytest.mark.parametrize("placement", ["tenfold", "fgd"])
def test_a_job_for_any_type_keeps_off_the_type_that_others_insist_on(placement: Placement):
    capacity = room(
        placement,
        node("wanted", 8, cpus=64, accelerator="A"),
        node("other", 8, cpus=64, accelerator="B"),
    )
    capacity.know([shape_of(1, accelerators=("A",), cpus=4)] * 3 + [shape_of(1, cpus=4)])
    assert capacity.claim(shape_of(1, cpus=4)) == (Slot(NodeId("other"), 1),)


def test_a_job_without_gpus_keeps_off_nodes_whose_gpus_would_be_stranded():
    capacity = room("tenfold", node("gpu", 8, cpus=64), node("cpu", 0, cpus=64))
    assert capacity.claim(shape_of(0, cpus=60)) == (Slot(NodeId("cpu")),)


def test_memory_binds_though_gpus_are_free():
    capacity = room("tenfold", node("n", 8, memory_gib=64))
    assert capacity.claim(shape_of(1, memory_gib=48)) is not None
    assert capacity.claim(shape_of(1, memory_gib=48)) is None
    assert capacity.could_hold(shape_of(1, memory_gib=48))


def test_cpus_are_not_asked_of_nodes_that_do_not_count_them():
    capacity = room("best-fit", node("counted", 8, cpus=4), node("uncounted", 8))
    assert capacity.claim(shape_of(1, cpus=100)) == (Slot(NodeId("uncounted"), 1),)


@pytest.mark.parametrize("placement", ["best-fit", "fgd"])
def test_published_rules_take_equal_nodes_in_the_order_of_the_fleet(placement: Placement):
    capacity = room(placement, node("b", 8, cpus=64), node("a", 8, cpus=64))
    assert capacity.claim(shape_of(8, cpus=8)) == (Slot(NodeId("b"), 8),)


def test_our_rule_takes_equal_nodes_whatever_their_order_in_the_file():
    alike = [node(name, 8, cpus=64) for name in "abcdefgh"]
    forward, backward = room("tenfold", *alike), room("tenfold", *reversed(alike))
    shapes = [shape_of(8, cpus=8)] * 8
    assert [forward.claim(one) for one in shapes] == [backward.claim(one) for one in shapes]


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_a_hidden_node_is_not_chosen_until_it_is_offered_again(placement: Placement):
    made = fleet(node("n", 8, cpus=64), node("m", 8, cpus=64))
    capacity = room(placement, *made.nodes.values())
    shape = shape_of(0.5, cpus=1)
    assert capacity.claim(shape) == (Slot(NodeId("n"), 0, 500, 0),)
    capacity.set_open(NodeId("n"), False)
    assert capacity.claim(shape) == (Slot(NodeId("m"), 0, 500, 0),)
    made.apply(NodeCordoned(Millis(0), NodeId("m")))
    capacity.set_open(NodeId("m"), False)
    assert capacity.claim(shape) is None
    capacity.set_open(NodeId("n"), True)
    assert capacity.claim(shape) is not None


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_a_gang_of_several_nodes_gets_all_of_them_or_none(placement: Placement):
    capacity = room(placement, *(node(f"n{number}", 4, cpus=16) for number in range(3)))
    gang = shape_of(8, cpus=24)
    assert capacity.claim(gang) == (Slot(NodeId("n0"), 4), Slot(NodeId("n1"), 4))
    assert capacity.claim(gang) is None
    assert capacity.claim(shape_of(4, cpus=16)) == (Slot(NodeId("n2"), 4),)


@pytest.mark.parametrize("placement", ["tenfold", "best-fit"])
def test_whole_gpus_alone_are_placed_by_the_bitsets(placement: Placement):
    made = fleet(*(node(f"n{number}", 8, cpus=64) for number in range(5)))
    scored, plain = room(placement, *made.nodes.values()), Capacity.of(made)
    for gpus in (3, 5, 8, 1, 16, 2, 4, 1):
        assert scored.claim(shape_of(gpus)) == plain.claim(shape_of(gpus))


def test_whole_gpus_are_scored_too_once_a_share_is_held():
    """Bitsets take the first bank that fits; a score sees that the other is in less demand."""
    nodes = (node("wanted", 8, accelerator="A"), node("other", 8, accelerator="B"))
    mix = [shape_of(1, accelerators=("A",))] * 9
    capacity = room("tenfold", *nodes)
    capacity.know(mix)
    assert capacity.claim(shape_of(1)) == (Slot(NodeId("wanted"), 1),)
    share = shape_of(0.5, accelerators=("B",))
    held = capacity.claim(share)
    assert held is not None
    assert capacity.claim(shape_of(1)) == (Slot(NodeId("other"), 1),)
    capacity.give(held, share)
    assert capacity.claim(shape_of(1)) == (Slot(NodeId("wanted"), 1),)


def test_a_row_lays_out_shared_devices_then_taken_ones_then_free_ones():
    capacity = room("tenfold", node("n", 4))
    capacity.take((Slot(NodeId("n"), 0, 300, 1),), shape_of(0.3))
    capacity.take((Slot(NodeId("n"), 2),), shape_of(2))
    rows = NodeArrays(capacity.node_indexes, capacity.place)
    assert rows.left.tolist() == [[0, 700, 0, 1000]]


def test_a_member_of_a_gang_asks_for_its_part():
    assert node_request(shape_of(12, gpus_per_node=4, cpus=30), 8) == NodeRequest(
        10_000, 0, 4, 1_000, ()
    )
    assert node_request(shape_of(16, cpus=30), 8) == NodeRequest(15_000, 0, 8, 1_000, ())
    assert node_request(shape_of(0.4), 8) == NodeRequest(0, 0, 1, 400, ())
    assert node_request(shape_of(0, cpus=2), 8) == NodeRequest(2_000, 0, 0, 0, ())


def test_the_mix_of_finished_jobs_is_that_of_the_last_epoch():
    made, warm = Fleet(), ShapeMix()
    for seq in range(WINDOW * 2 + 700):
        shape = shape_of(1 + seq % 3)
        one = Job(id=JobId(f"job-{seq}"), shape=shape, submitted_ms=Millis(0), seq=seq)
        made.history.append(EndedJob(one, Millis(1), Millis(1), "completed"))
        made.ended += 1
        if seq % 97 == 0 or seq > WINDOW * 2:
            warm.from_history(made)
            fresh = ShapeMix()
            fresh.from_history(made)
            assert fresh.mix == warm.mix
            counted = min(WINDOW, epoch_of(made.ended))
            assert sum(count for _, count in warm.mix.values()) == counted
    assert not warm.from_history(made), "nothing has finished since"
