"""Comparisons with a baseline, one kind of measurement at a time."""

import numpy as np
import pytest

from tenfold.decide.detect.regression import judge, judge_steps
from tenfold.decide.detect.transfers import BANDWIDTH, DELAY
from tenfold.decide.detect.verdict import AlarmRule
from tenfold.model.baseline import (
    Kernel,
    Kernels,
    Part,
    Steps,
    Transfer,
    Transfers,
    downsample_values,
    is_communication,
    kind_of,
)

RULE = AlarmRule()


def steps(seed: int, count: int = 60, **seconds: float) -> Steps:
    """Steps whose parts take so many seconds, give or take two in a hundred."""
    dice = np.random.default_rng(seed)
    parts: dict[Part, tuple[float, ...]] = {
        part: tuple((mean * dice.lognormal(0, 0.02, count)).tolist())
        for part, mean in seconds.items()
    }  # pyright: ignore
    whole = tuple(sum(values) for values in zip(*parts.values(), strict=True))
    return Steps(count=count, step_s=whole, parts_s=parts)


def transfers(slow_small: float = 1.0, slow_large: float = 1.0, noise: float = 0.0) -> Transfers:
    """A test from 1 KiB to 1 GiB on links of 400 GB/s with 20 us of delay."""
    dice = np.random.default_rng(1)
    rows: list[Transfer] = []
    for power in range(10, 31):
        for in_place in (False, True):
            size = 2**power
            time_us = 20.0 * slow_small + size / 400e9 * 1e6 * slow_large
            time_us *= 1 + noise * float(dice.uniform(-1, 1))
            bus = size / time_us / 1e3
            rows.append(
                Transfer(size_bytes=size, in_place=in_place, time_us=time_us, bus_gb_per_s=bus)
            )
    return Transfers(operation="all_reduce", transfers=tuple(rows))


def kernels(gemm: float = 1.0, nccl: float = 1.0, calls: int = 200) -> Kernels:
    def one(name: str, mean_s: float) -> Kernel:
        return Kernel(
            name=name, calls=calls, mean_s=mean_s, median_s=mean_s, deviation_s=0.05 * mean_s
        )

    return Kernels(
        kernels=(
            one("void gemm_bf16(float const*)", 2e-3 * gemm),
            one("softmax", 3e-4),
            one("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 1e-3 * nccl),
        )
    )


@pytest.mark.parametrize("part", ["compute", "communication", "data"])
def test_the_part_that_grew_is_named(part: str):
    usual = {"compute": 0.4, "communication": 0.2, "data": 0.1}
    slow = {**usual, part: usual[part] * 2}
    said = judge_steps(steps(1, **usual), steps(2, **slow), RULE)
    assert said.alarm
    assert said.slower_part == part
    assert part in said.sentence
    outcomes = {one.part: one.outcome for one in said.comparisons}
    assert outcomes["step"] == "slower"
    assert [name for name, outcome in outcomes.items() if outcome == "slower"] == ["step", part]


def test_time_in_no_part_is_the_rest():
    before, after = steps(1, compute=0.4), steps(2, compute=0.4)
    late = tuple(value + 0.2 for value in after.step_s)
    said = judge_steps(before, Steps(count=60, step_s=late, parts_s=after.parts_s), RULE)
    assert (said.alarm, said.slower_part) == (True, "rest")


def test_communication_hidden_under_compute_rings_no_alarm():
    one, other = steps(1, compute=0.4), steps(2, compute=0.4)
    quick: dict[Part, tuple[float, ...]] = {"communication": (0.1,) * 60}
    slow: dict[Part, tuple[float, ...]] = {"communication": (0.3,) * 60}
    before = Steps(count=60, step_s=one.step_s, parts_s=quick)
    said = judge_steps(before, Steps(count=60, step_s=other.step_s, parts_s=slow), RULE)
    assert not said.alarm
    assert said.slower_part is None
    assert {one.part: one.outcome for one in said.comparisons}["communication"] == "slower"


@pytest.mark.parametrize(("more_s", "outcome"), [(0.003, "same"), (0.006, "slower")])
def test_a_part_is_slower_only_where_the_step_feels_one_hundredth(more_s: float, outcome: str):
    """Saves of 5 ms double or so within steps of 0.4 s: 4 ms is what such a step feels."""

    def saving(seed: int, save_s: float) -> Steps:
        made = steps(seed, compute=0.4)
        return Steps(count=60, step_s=made.step_s, parts_s={"data": (save_s,) * 60})

    said = judge_steps(saving(1, 0.005), saving(2, 0.005 + more_s), RULE)
    assert {one.part: one.outcome for one in said.comparisons}["data"] == outcome


def test_small_changes_and_noisy_ones_ring_no_alarm():
    assert judge_steps(steps(1, compute=0.4), steps(2, compute=0.41), RULE).outcome == "same"
    dice = np.random.default_rng(5)
    before = Steps(count=9, step_s=tuple(dice.lognormal(0, 0.8, 9).tolist()))
    after = Steps(count=9, step_s=tuple((1.3 * dice.lognormal(0, 0.8, 9)).tolist()))
    assert judge_steps(before, after, RULE).outcome in ("unclear", "same")


def test_outliers_alone_ring_no_alarm():
    before, after = steps(1, compute=0.4), steps(2, compute=0.4)
    spiked = tuple(30.0 if at % 5 == 0 else value for at, value in enumerate(after.step_s))
    assert not judge_steps(before, Steps(count=60, step_s=spiked), RULE).alarm


def test_faster_is_no_alarm_and_says_what_to_do():
    said = judge_steps(steps(1, compute=0.4), steps(2, compute=0.3), RULE)
    assert (said.alarm, said.outcome) == (False, "faster")
    assert "new baseline" in said.sentence


def test_parts_of_one_run_only_are_named():
    said = judge_steps(steps(1, compute=0.4, data=0.1), steps(2, compute=0.5), RULE)
    assert said.notes == ("not compared (in only one run): data",)


def test_a_network_that_lost_bandwidth_keeps_its_delay():
    said = judge(transfers(), transfers(slow_large=2.0, noise=0.02), RULE)
    assert (said.alarm, said.slower_part) == (True, BANDWIDTH)
    assert {one.part: one.outcome for one in said.comparisons}[BANDWIDTH] == "slower"


def test_a_network_with_more_delay_is_noticed():
    said = judge(transfers(), transfers(slow_small=3.0, noise=0.02), RULE)
    assert (said.alarm, said.slower_part) == (True, DELAY)


def test_the_same_network_with_noise_rings_no_alarm():
    assert not judge(transfers(), transfers(noise=0.04), RULE).alarm
    few = Transfers(operation="", transfers=transfers().transfers[:2])
    slow = Transfers(operation="", transfers=transfers(slow_small=3.0).transfers[:2])
    assert judge(few, slow, RULE).outcome == "unclear"


def test_networks_without_a_common_size_are_not_judged():
    one = Transfers(operation="", transfers=transfers().transfers[:4])
    other = Transfers(operation="", transfers=transfers().transfers[8:])
    said = judge(one, other, RULE)
    assert (said.alarm, said.outcome) == (False, "unclear")
    assert "no size in common" in said.sentence


def test_kernels_are_compared_for_the_same_calls():
    said = judge(kernels(), kernels(nccl=2.0, calls=50), RULE)
    assert (said.alarm, said.slower_part) == (True, "communication")
    assert "ncclDevKernel" in said.sentence
    assert said.comparisons[0].before == pytest.approx(200 * (2e-3 + 3e-4 + 1e-3))
    assert not judge(kernels(), kernels(calls=731), RULE).alarm


def test_kernels_that_have_other_names_are_not_judged():
    renamed = Kernels(
        kernels=(Kernel(name="new", calls=9, mean_s=1.0, median_s=1.0, deviation_s=0.0),)
    )
    said = judge(kernels(), renamed, RULE)
    assert (said.alarm, said.outcome) == (False, "unclear")


def test_names_of_kernels_tell_their_part():
    assert is_communication("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
    assert is_communication("void ncclKernel_SendRecv")
    assert not is_communication("void at::native::reduce_kernel<512>")
    assert [kind_of(one) for one in (steps(1, data=1.0), transfers(), kernels())] == [
        "steps",
        "transfers",
        "kernels",
    ]


def test_long_runs_keep_an_even_choice_of_steps():
    kept = downsample_values(tuple(float(at) for at in range(10_000)))
    assert len(kept) == 1000
    assert kept[:3] == (0.0, 10.0, 20.0)
    assert downsample_values((1.0, 2.0)) == (1.0, 2.0)
