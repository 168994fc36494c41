"""The control plane of a live fleet under stores, executors and clocks that fail."""

import pytest

from benchmarks.live_soak import soak_one


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_no_fault_loses_a_job_or_starts_it_twice(first: int):
    for seed in range(first, first + 20):
        try:
            soak_one(seed)
        except (AssertionError, KeyError) as why:
            again = f"./dev soak live --seed {seed} --seeds 1"
            pytest.fail(f"{why}; again: {again}")


def test_the_same_seed_is_the_same_world():
    first, second = soak_one(7), soak_one(7)
    assert (first.steps, first.kills, first.now_ms) == (second.steps, second.kills, second.now_ms)
