"""Pipeline schedules in closed form against an event simulation of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenfold.physics.training.pipeline import pass_s

Work = tuple[str, int, int]
"""Forward or backward, virtual stage, micro-batch."""


def makespan(
    orders: list[list[Work]], seconds: dict[str, list[float]], stages: int
) -> tuple[float, float]:
    """Run each rank's work in its order, as soon as its input is there; sends are free.

    Returns when the last rank ends, and how long the busiest one worked.
    """
    ranks, done = len(orders), dict[Work, float]()
    clock, place, busy = [0.0] * ranks, [0] * ranks, [0.0] * ranks
    while any(place[rank] < len(orders[rank]) for rank in range(ranks)):
        before = sum(place)
        for rank in range(ranks):
            while place[rank] < len(orders[rank]):
                kind, stage, number = work = orders[rank][place[rank]]
                needs = _needs(work, stages)
                if needs is not None and needs not in done:
                    break
                took = seconds[kind][stage]
                clock[rank] = max(clock[rank], done.get(needs, 0.0) if needs else 0.0) + took
                done[kind, stage, number] = clock[rank]
                busy[rank] += took
                place[rank] += 1
        assert sum(place) > before, "the order of the schedule deadlocks"
    return max(clock), max(busy)


def _needs(work: Work, stages: int) -> Work | None:
    kind, stage, number = work
    if kind == "forward":
        return ("forward", stage - 1, number) if stage else None
    return ("backward", stage + 1, number) if stage < stages - 1 else ("forward", stage, number)


def one_forward_one_backward(stages: int, micro_batches: int) -> list[list[Work]]:
    """Each stage warms up with as many forwards as stages follow it, then alternates."""
    orders: list[list[Work]] = []
    for stage in range(stages):
        warm = min(stages - stage - 1, micro_batches)
        forward = [("forward", stage, number) for number in range(micro_batches)]
        backward = [("backward", stage, number) for number in range(micro_batches)]
        orders.append(_alternate(forward, backward, warm))
    return orders


def interleaved(ranks: int, virtual: int, micro_batches: int) -> list[list[Work]]:
    """Megatron's order: groups of `ranks` micro-batches visit one chunk after the other."""
    total, group = micro_batches * virtual, ranks * virtual
    orders: list[list[Work]] = []
    for rank in range(ranks):
        forward: list[Work] = []
        backward: list[Work] = []
        for place in range(total):
            chunk = place % group // ranks
            number = place // group * ranks + place % ranks
            forward.append(("forward", chunk * ranks + rank, number))
            backward.append(("backward", (virtual - 1 - chunk) * ranks + rank, number))
        warm = min(2 * (ranks - rank - 1) + (virtual - 1) * ranks, total)
        orders.append(_alternate(forward, backward, warm))
    return orders


def _alternate(forward: list[Work], backward: list[Work], warm: int) -> list[Work]:
    order = forward[:warm]
    for ahead, behind in zip(forward[warm:], backward, strict=False):
        order += [ahead, behind]
    return order + backward[len(forward) - warm :]


@given(st.integers(1, 10), st.integers(1, 40), st.floats(0.1, 5), st.floats(0.5, 3))
def test_one_forward_one_backward_idles_for_the_known_share(
    stages: int, micro_batches: int, forward: float, ratio: float
):
    """R20: (p-1)/(m+p-1) of the pass, whatever forward and backward take."""
    seconds = {"forward": [forward] * stages, "backward": [forward * ratio] * stages}
    end, busy = makespan(one_forward_one_backward(stages, micro_batches), seconds, stages)
    each = forward * (1 + ratio)
    told_busy, told_bubble = pass_s(micro_batches, 1.0, each, each * stages)
    assert end == pytest.approx(told_busy + told_bubble)
    assert busy == pytest.approx(told_busy)
    assert 1 - busy / end == pytest.approx((stages - 1) / (micro_batches + stages - 1))


@given(st.integers(2, 6), st.integers(2, 4), st.integers(1, 5), st.floats(0.5, 3))
def test_interleaving_divides_the_bubble_by_its_virtual_stages(
    ranks: int, virtual: int, groups: int, ratio: float
):
    micro_batches = ranks * groups
    stages = ranks * virtual
    chunk = {"forward": [1.0 / virtual] * stages, "backward": [ratio / virtual] * stages}
    end, busy = makespan(interleaved(ranks, virtual, micro_batches), chunk, stages)
    told_busy, told_bubble = pass_s(micro_batches, float(virtual), 1 + ratio, (1 + ratio) * ranks)
    assert busy == pytest.approx(told_busy)
    assert end == pytest.approx(told_busy + told_bubble)
    plain = pass_s(micro_batches, 1.0, 1 + ratio, (1 + ratio) * ranks)[1]
    assert end - busy == pytest.approx(plain / virtual)


@given(st.integers(2, 8), st.integers(8, 32), st.floats(1, 1.6))
def test_a_heavy_last_stage_sets_the_pace(stages: int, micro_batches: int, heavier: float):
    """Logits and loss sit on the last stage; others wait for it."""
    forward = [1.0] * (stages - 1) + [heavier]
    seconds = {"forward": forward, "backward": [2 * one for one in forward]}
    end, _ = makespan(one_forward_one_backward(stages, micro_batches), seconds, stages)
    path = 3 * sum(forward)
    assert end == pytest.approx(sum(pass_s(micro_batches, 1.0, 3 * heavier, path)))


@given(st.lists(st.floats(0.5, 2), min_size=2, max_size=8), st.integers(8, 32))
def test_uneven_stages_take_no_longer_than_the_closed_form(
    forward: list[float], micro_batches: int
):
    """A slow stage elsewhere than last hides part of its fill, so the closed form is cautious."""
    seconds = {"forward": forward, "backward": [2 * one for one in forward]}
    stages = len(forward)
    end, busy = makespan(one_forward_one_backward(stages, micro_batches), seconds, stages)
    told = sum(pass_s(micro_batches, 1.0, 3 * max(forward), 3 * sum(forward)))
    assert busy <= end
    assert 0.75 * told <= end <= told * (1 + 1e-9)
