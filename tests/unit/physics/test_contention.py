"""Jobs that share: closed forms of two, two fabrics, a save that slows others, a hot rack."""

import pytest

from contention_builders import NIC, A, B, C, gang, layers, reader, talker
from tenfold.model.ids import JobId
from tenfold.model.job.traffic import Traffic
from tenfold.physics.contention import Flow, max_min, speed
from tenfold.physics.scaling import efficiency_at
from tenfold.physics.shared_layers import SharedLayers
from tenfold.sim.contention.solver import ContentionSolver

LEFT, RIGHT = (1, 2, 3, 4, 9, 10, 11, 12), (5, 6, 7, 8, 13, 14, 15, 16)
"""Two gangs of 8 nodes, each half under leaf 1 and half under leaf 2."""


def step_ratios(shared: SharedLayers, gangs: list[list[int]]) -> list[float]:
    """Step times over undisturbed ones, all gangs running at once."""
    solver = ContentionSolver(shared)
    ids = [JobId(f"job-{number}") for number in range(len(gangs))]
    for job_id, numbers in zip(ids, gangs, strict=True):
        solver.start(job_id, gang(*numbers), talker())
    solver.check()
    return [1 / solver.speed_of(job_id) for job_id in ids]


def test_the_modest_flow_is_served_and_the_greedy_one_takes_the_rest():
    link = {0: 10.0}
    assert max_min([Flow(2.0, (0,), (1.0,)), Flow(9.0, (0,), (1.0,))], link) == [2.0, 8.0]
    assert max_min([Flow(7.0, (0,), (1.0,)), Flow(9.0, (0,), (1.0,))], link) == [5.0, 5.0]
    assert max_min([Flow(4.0, (0,), (1.0,)), Flow(6.0, (0,), (1.0,))], link) == [4.0, 6.0]


def test_a_flow_over_two_links_leaves_what_it_cannot_use():
    """The textbook line: one flow over both links, one on each."""
    flows = [Flow(99.0, (0, 1), (1.0, 1.0)), Flow(99.0, (0,), (1.0,)), Flow(99.0, (1,), (1.0,))]
    assert max_min(flows, {0: 4.0, 1: 10.0}) == [2.0, 2.0, 8.0]


def test_units_weigh_a_gang_by_its_gpus():
    flows = [Flow(9.0, (0,), (3.0,)), Flow(9.0, (0,), (1.0,))]
    assert max_min(flows, {0: 8.0}) == [2.0, 2.0]


def test_a_resource_that_is_not_named_has_room_for_all():
    assert max_min([Flow(5.0, (7,), (1.0,))], {}) == [5.0]


def test_half_the_bandwidth_doubles_the_share_that_waits_for_it():
    assert speed([(0.25, 0.5)]) == 1 / 1.25
    assert speed([(1.0, 0.5)]) == 0.5
    assert speed([(0.2, 0.5), (0.1, 0.25)]) == pytest.approx(1 / 1.5)


def test_two_gangs_on_one_pair_of_uplinks_get_half_each():
    """Each sends 32 GPUs x 50 GB/s x 1/2 out of a leaf whose uplink carries 800 GB/s."""
    solver = ContentionSolver(layers(4.0))
    assert solver.start(A, gang(*LEFT), talker(0.2)) == {A: 1.0}
    changed = solver.start(B, gang(*RIGHT), talker(0.2))
    assert changed == {A: pytest.approx(1 / 1.2), B: pytest.approx(1 / 1.2)}
    assert solver.contended() == [
        "uplink of leaf `thin-leaf-1`",
        "uplink of leaf `thin-leaf-2`",
    ]
    assert solver.end(A) == {B: 1.0}
    assert solver.contended() == []


def test_a_modest_neighbour_is_not_slowed_and_slows_by_what_it_sends():
    """The modest one takes 16 x 10 of 800 GB/s and leaves 40 of 50 GB/s a GPU."""
    solver = ContentionSolver(layers(4.0))
    solver.start(A, gang(*LEFT), talker(0.2))
    changed = solver.start(B, gang(*RIGHT), talker(0.2, rate=10e9))
    assert changed == {B: 1.0, A: pytest.approx(1 / (1 + 0.2 * 0.25))}


def test_a_gang_under_one_leaf_neither_slows_nor_is_slowed():
    solver = ContentionSolver(layers(4.0))
    solver.start(A, gang(1, 9, 17, 25), talker())
    solver.start(B, gang(2, 10, 18, 26), talker())
    assert solver.start(C, gang(3, 4, 5, 6, 7, 8), talker()) == {C: 1.0}


def test_gangs_on_other_leaves_are_left_alone():
    solver = ContentionSolver(layers(4.0))
    solver.start(A, gang(*LEFT), talker())
    solver.start(B, gang(*RIGHT), talker())
    far = JobId("far"), JobId("further")
    halves = (17, 18, 19, 20, 25, 26, 27, 28), (21, 22, 23, 24, 29, 30, 31, 32)
    assert list(solver.start(far[0], gang(*halves[0]), talker())) == [far[0]]
    assert sorted(solver.start(far[1], gang(*halves[1]), talker())) == sorted(far)
    assert list(solver.end(A)) == [B]


def test_a_gang_across_pods_is_held_by_the_narrow_core():
    """Two pods of 16 nodes; the core carries a quarter of the 6,400 GB/s that enter a pod."""
    alone = ContentionSolver(layers(1.0, core=4.0, leaves_per_pod=2))
    within, across = tuple(range(1, 17)), tuple(range(1, 33))
    assert alone.start(A, gang(*within), talker()) == {A: 1.0}
    alone.end(A)
    # Half of 128 GPUs x 50 GB/s want to leave a pod, twice what may.
    assert alone.start(B, gang(*across), talker(0.2)) == {B: pytest.approx(1 / 1.2)}
    assert all("pod" in name for name in alone.contended())


def test_a_dragonfly_binds_at_its_groups_and_not_inside_them():
    group = ContentionSolver(layers(4.0, leaves_per_pod=2, kind="dragonfly"))
    assert group.start(A, gang(*range(1, 17)), talker()) == {A: 1.0}
    assert group.start(B, gang(*range(1, 33)), talker())[B] < 1


def test_the_same_jobs_on_a_1_to_1_and_a_4_to_1_fabric():
    """Eight gangs of four nodes, packed under leaves or spread over all four of them."""
    packed = [list(range(first, first + 4)) for first in range(1, 33, 4)]
    spread = [list(range(first, 33, 8)) for first in range(1, 9)]
    assert step_ratios(layers(1.0), packed) == [1.0] * 8
    assert step_ratios(layers(1.0), spread) == [1.0] * 8
    assert step_ratios(layers(4.0), packed) == [1.0] * 8
    # Three quarters of the traffic leave a leaf, and a quarter may: a third is granted.
    assert step_ratios(layers(4.0), spread) == pytest.approx([1 + 0.2 * 2] * 8)


@pytest.mark.parametrize(
    ("nodes", "ratio"), [(8, 1.0), (16, 1.2), (32, 1.4), (64, 1.5), (128, 1.55)]
)
def test_a_cheap_fabric_that_is_good_when_small_binds_as_it_grows(nodes: int, ratio: float):
    """One gang on the whole fleet: the larger it is, the less of its traffic stays in a leaf."""
    whole = [list(range(1, nodes + 1))]
    assert step_ratios(layers(4.0, nodes=nodes), whole) == [pytest.approx(ratio)]
    assert step_ratios(layers(1.0, nodes=nodes), whole) == [1.0]


def test_nobody_wants_more_than_its_own_port_carries():
    solver = ContentionSolver(layers(1.0))
    assert solver.start(A, gang(*range(1, 33)), talker(rate=10 * NIC)) == {A: 1.0}


def test_two_readers_share_a_tier_by_their_gpus():
    """64 and 128 GPUs want 1 GB/s each of 100 GB/s."""
    solver = ContentionSolver(layers(read=100e9))
    assert solver.start(A, gang(*range(1, 9)), reader()) == {A: 1.0}
    changed = solver.start(B, gang(*range(9, 25)), reader())
    assert changed == {A: pytest.approx(100 / 192), B: pytest.approx(100 / 192)}
    assert solver.end(B) == {A: 1.0}


def test_a_save_slows_the_readers_of_its_tier_and_is_over_when_it_ends():
    """A written byte costs two read ones: 64 readers and 16 x 2 for writers share 72 GB/s."""
    solver = ContentionSolver(layers(read=72e9, write=36e9))
    solver.start(A, gang(*range(1, 9)), reader())
    solver.start(B, gang(9, 10), talker())
    solver.start(C, gang(11, 12), Traffic())
    changed = solver.burst(B, "hot", on=True)
    assert changed == {A: pytest.approx(0.75)}
    assert solver.writes_changed == {B: pytest.approx(16 * 0.75e9)}
    solver.check()
    assert solver.burst(B, "hot", on=False) == {A: 1.0}
    assert solver.writes_changed == {B: 0.0}
    assert solver.write_bytes_per_s(B) == 0.0
    solver.check()


def test_a_second_save_halves_the_first_and_says_so():
    solver = ContentionSolver(layers(write=50e9))
    solver.start(A, gang(1), Traffic())
    solver.start(B, gang(2), Traffic())
    solver.burst(A, "hot", on=True)
    assert solver.write_bytes_per_s(A) == pytest.approx(50e9)
    assert solver.burst(B, "hot", on=True) == {}
    assert solver.writes_changed == {A: pytest.approx(25e9), B: pytest.approx(25e9)}
    solver.end(B)
    assert solver.writes_changed[A] == pytest.approx(50e9)


def test_a_save_ends_with_its_job():
    solver = ContentionSolver(layers(read=72e9, write=36e9))
    solver.start(A, gang(*range(1, 9)), reader())
    solver.start(B, gang(9, 10), Traffic())
    solver.burst(B, "hot", on=True)
    assert solver.end(B) == {A: 1.0}
    solver.check()


def test_a_rack_above_its_limit_slows_its_jobs_in_proportion():
    """Four nodes of 10 kW in a rack of 30 kW."""
    solver = ContentionSolver(layers(1.0, rack_kw=30.0))
    assert solver.start(A, gang(1, 2, 3), Traffic()) == {A: 1.0}
    changed = solver.start(B, gang(4, 5), Traffic())
    assert changed == {A: 0.75, B: 0.75}
    assert solver.contended() == ["power of rack `h100-rack-1`"]
    assert solver.end(A) == {B: 1.0}


def test_a_job_that_draws_little_leaves_room_in_the_rack():
    solver = ContentionSolver(layers(1.0, rack_kw=30.0))
    solver.start(A, gang(1, 2, 3), Traffic(power_w_per_gpu=1_000.0))
    assert solver.start(B, gang(4), Traffic(power_w_per_gpu=700.0)) == {B: 1.0}


def test_slow_kinds_add_up():
    """A third of the network, and three quarters of the power."""
    solver = ContentionSolver(layers(4.0, rack_kw=30.0))
    changed = solver.start(A, gang(*range(1, 33)), talker(0.2))
    assert changed == {A: pytest.approx(1 / (1 + 0.2 * 2 + 1 / 3))}


def test_a_share_of_a_gpu_and_a_job_without_gpus_may_read():
    solver = ContentionSolver(layers(read=1e9))
    assert solver.start(A, gang(1, gpus=0.5), reader(1e9)) == {A: 1.0}
    assert solver.start(B, gang(2, gpus=0), reader(1e9))[B] == pytest.approx(2 / 3)
    solver.check()


def test_efficiency_runs_straight_over_doublings_and_stays_at_the_ends():
    points = ((8, 1.0), (32, 0.8))
    assert [efficiency_at(points, gpus) for gpus in (1, 8, 32, 99)] == [1.0, 1.0, 0.8, 0.8]
    assert efficiency_at(points, 16) == pytest.approx(0.9)
    assert efficiency_at((), 512) == 1.0
