"""What holds for every sharing: fair, full, deterministic, and the same however it came about."""

from hypothesis import given, settings
from hypothesis import strategies as st

from contention_builders import NIC, gang, layers
from tenfold.model.ids import JobId
from tenfold.model.job.traffic import Traffic
from tenfold.physics.contention import Flow, max_min
from tenfold.sim.contention.solver import ContentionSolver

NEAR = 1e-9
RESOURCES = 6
amounts = st.floats(0.01, 1_000.0)


@st.composite
def flows_on(draw: st.DrawFn, resources: int = RESOURCES) -> Flow:
    uses = draw(st.lists(st.integers(0, resources - 1), min_size=1, max_size=4, unique=True))
    units = draw(st.lists(st.floats(0.1, 64.0), min_size=len(uses), max_size=len(uses)))
    return Flow(draw(amounts | st.just(float("inf"))), tuple(uses), tuple(units))


many_flows = st.lists(flows_on(), min_size=1, max_size=40)
capacities = st.lists(amounts, min_size=RESOURCES, max_size=RESOURCES).map(
    lambda values: dict(enumerate(values))
)


def loads(flows: list[Flow], rates: list[float]) -> dict[int, float]:
    total = dict.fromkeys(range(RESOURCES), 0.0)
    for flow, rate in zip(flows, rates, strict=True):
        for resource, units in zip(flow.uses, flow.units, strict=True):
            total[resource] += rate * units
    return total


@given(many_flows, capacities)
def test_no_resource_carries_more_than_it_has_and_no_flow_gets_more_than_it_wants(flows, capacity):
    rates = max_min(flows, capacity)
    total = loads(flows, rates)
    assert all(total[one] <= capacity[one] * (1 + NEAR) for one in capacity)
    assert all(0 < rate <= flow.rate_max for flow, rate in zip(flows, rates, strict=True))


@given(many_flows, capacities)
def test_a_flow_below_its_wish_has_a_full_resource_where_none_is_faster(flows, capacity):
    """The bottleneck condition: exactly the max-min fair rates have it."""
    rates = max_min(flows, capacity)
    total = loads(flows, rates)
    for flow, rate in zip(flows, rates, strict=True):
        if rate < flow.rate_max:
            assert any(
                total[one] >= capacity[one] * (1 - NEAR)
                and all(
                    other <= rate * (1 + NEAR)
                    for peer, other in zip(flows, rates, strict=True)
                    if one in peer.uses
                )
                for one in flow.uses
            )


@given(many_flows, capacities, st.randoms(use_true_random=False))
def test_the_order_of_flows_does_not_matter(flows, capacity, random):
    places = list(range(len(flows)))
    random.shuffle(places)
    rates = max_min(flows, capacity)
    shuffled = max_min([flows[place] for place in places], capacity)
    for place, rate in zip(places, shuffled, strict=True):
        assert abs(rates[place] - rate) <= NEAR * rate


@given(amounts, amounts, amounts)
def test_two_flows_on_one_resource_have_a_closed_form(first, second, capacity):
    low, high = min(first, second), max(first, second)
    expected_low = min(low, capacity / 2)
    expected_high = min(high, capacity - expected_low)
    rates = max_min([Flow(low, (0,), (1.0,)), Flow(high, (0,), (1.0,))], {0: capacity})
    assert abs(rates[0] - expected_low) <= NEAR * capacity
    assert abs(rates[1] - expected_high) <= NEAR * capacity


@given(st.lists(flows_on(1), min_size=1, max_size=20), flows_on(1), amounts)
def test_one_more_flow_on_a_resource_raises_nobody(flows, newcomer, capacity):
    before = max_min(flows, {0: capacity})
    after = max_min([*flows, newcomer], {0: capacity})[:-1]
    assert all(new <= old * (1 + NEAR) for new, old in zip(after, before, strict=True))


@given(many_flows, capacities)
def test_resources_with_room_for_all_wishes_may_be_left_out(flows, capacity):
    wanted = loads(flows, [flow.rate_max for flow in flows])
    short = {one: has for one, has in capacity.items() if wanted[one] > has}
    for all_named, named in zip(max_min(flows, capacity), max_min(flows, short), strict=True):
        assert abs(all_named - named) <= NEAR * all_named


FABRICS = {
    "1:1": layers(1.0, leaves_per_pod=2, rack_kw=35.0),
    "4:1": layers(4.0, rack_kw=35.0, read=300e9, write=100e9),
    "2:1, core 2:1": layers(2.0, core=2.0, leaves_per_pod=2, rack_kw=35.0, read=40e9),
    "dragonfly": layers(3.0, leaves_per_pod=2, kind="dragonfly", read=200e9, write=300e9),
}
some_traffic = st.builds(
    Traffic,
    network_bytes_per_s_per_gpu=st.sampled_from([0.0, 5e9, 40e9, NIC]),
    network_share=st.floats(0.0, 0.6),
    read_bytes_per_s_per_gpu=st.sampled_from([0.0, 0.3e9, 2e9]),
    read_share=st.floats(0.0, 1.0),
    tier=st.sampled_from(["", "hot"]),
    power_w_per_gpu=st.none() | st.floats(100.0, 2_000.0),
)
some_gang = st.lists(st.integers(1, 32), min_size=1, max_size=12, unique=True)
steps = st.lists(
    st.tuples(some_gang, st.sampled_from([0.5, 1, 4, 8]), some_traffic, st.integers(0, 10**6)),
    min_size=1,
    max_size=25,
)


@settings(max_examples=60)
@given(st.sampled_from(list(FABRICS)), steps)
def test_what_came_about_step_by_step_is_what_a_fresh_start_gives(fabric, taken):
    """Starts, ends and saves in any order; what is reported is all that changed."""
    solver = ContentionSolver(FABRICS[fabric])
    seen: dict[JobId, float] = {}
    writes: dict[JobId, float] = {}
    for number, (nodes, gpus, traffic, die) in enumerate(taken):
        job_id = JobId(f"job-{number}")
        seen |= solver.start(job_id, gang(*nodes, gpus=gpus), traffic)
        writes |= solver.writes_changed
        other = list(seen)[die % len(seen)]
        if die % 3 == 0:
            seen |= solver.end(other)
            writes |= solver.writes_changed
            del seen[other]
            writes.pop(other, None)
        elif die % 3 == 1:
            seen |= solver.burst(other, "hot", on=not writes.get(other))
            writes |= solver.writes_changed
        solver.check()
        assert all(0 < now <= 1 for now in seen.values())
        assert seen == {one: solver.speed_of(one) for one in seen}
        for one in seen:
            assert writes.get(one, 0.0) == solver.write_bytes_per_s(one)


@settings(max_examples=60)
@given(st.lists(some_gang, min_size=1, max_size=4), st.floats(0.0, 1.0), st.randoms())
def test_a_non_blocking_fabric_knows_no_bad_placement(wanted, share, random):
    """Gangs take whole nodes, wherever those are: all run as if alone."""
    free = list(range(1, 33))
    random.shuffle(free)
    for shared in (layers(1.0), layers(1.0, leaves_per_pod=2)):
        solver = ContentionSolver(shared)
        left = list(free)
        for number, nodes in enumerate(wanted):
            taken, left = left[: len(nodes)], left[len(nodes) :]
            if taken:
                draw = Traffic(network_bytes_per_s_per_gpu=NIC, network_share=share)
                job_id = JobId(f"job-{number}")
                assert solver.start(job_id, gang(*taken), draw) == {job_id: 1.0}
        assert solver.contended() == []


@settings(max_examples=60)
@given(st.sampled_from(list(FABRICS)), steps)
def test_when_all_have_ended_nothing_is_left(fabric, taken):
    solver = ContentionSolver(FABRICS[fabric])
    for number, (nodes, gpus, traffic, _) in enumerate(taken):
        solver.start(JobId(f"job-{number}"), gang(*nodes, gpus=gpus), traffic)
        solver.burst(JobId(f"job-{number}"), "hot", on=True)
    for number in reversed(range(len(taken))):
        solver.end(JobId(f"job-{number}"))
    assert solver.contended() == []
    last = JobId("last")
    assert solver.start(last, gang(1), taken[0][2]) == {last: solver.speed_of(last)}
    solver.check()
