"""Feeding readers from a tier: crowding, stalls, and how many a tier carries."""

import numpy as np
import pytest

from tenfold.physics.arrays import Floats
from tenfold.physics.operations.datafeed import (
    Feed,
    Reading,
    Tier,
    feed,
    readers_max,
    tier_bytes_per_s,
)


def one(value: float) -> Floats:
    return np.array([float(value)])


TIER = Tier(one(100e9), one(1e9), one(400), one(0.5))


def read(readers: float, prefetch: float = 1.0, tier: Tier = TIER, others: float = 0.0) -> Feed:
    """Every reader takes 0.3 GB in a step of one second, over four streams."""
    reading = Reading(one(readers), one(4), one(readers * 0.3e9), one(1), one(prefetch))
    return feed(tier, reading, other_bytes_per_s=others)


def test_a_tier_fills_up_and_then_crowds():
    found = [tier_bytes_per_s(TIER, one(streams))[0] for streams in (1, 100, 400, 1600)]
    assert found == pytest.approx([1e9, 100e9, 100e9, 50e9])


def test_a_tier_of_10_gb_per_s_gives_3_under_1024_concurrent_readers():
    crowded = Tier(one(10e9), one(2e9), one(93), one(0.5))
    assert tier_bytes_per_s(crowded, one(1024))[0] == pytest.approx(3e9, rel=0.02)


def test_a_tier_feeds_exactly_the_readers_it_promises():
    limit = readers_max(TIER, one(0.3e9), one(4))[0]
    assert read(limit).stall_share[0] == pytest.approx(0, abs=1e-9)
    assert read(limit + 1).stall_share[0] > 0
    assert read(1.5 * limit).bound[0] == 1


def test_a_reader_that_wants_more_than_its_streams_give_is_never_fed():
    assert readers_max(TIER, one(5e9), one(4))[0] == 0


def test_stalls_grow_with_readers_and_stay_a_share():
    found = [read(readers).stall_share[0] for readers in (100, 400, 1024, 10_000)]
    assert found == sorted(found)
    assert found[0] == 0
    assert found[-1] < 1


def test_what_is_not_prefetched_is_waited_for_even_on_a_fast_tier():
    assert read(10, prefetch=0.0).stall_share[0] > 0
    assert read(10, prefetch=1.0).stall_share[0] == 0


def test_others_on_the_tier_take_their_part():
    alone, shared = read(200), read(200, others=60e9)
    assert shared.supply_bytes_per_s[0] == pytest.approx(alone.supply_bytes_per_s[0] - 60e9)
    assert shared.stall_share[0] > alone.stall_share[0]
