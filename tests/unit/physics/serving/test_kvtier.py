"""Hit ratio of a shared cache tier against exact caches."""

from collections import OrderedDict

import numpy as np
import pytest
from numpy.typing import NDArray

from tenfold.physics.serving.kvtier import (
    break_even_bytes_per_s,
    che_capacity_blocks,
    che_hit_ratio,
    footprint_blocks,
    hit_ratio,
    reuse_profile,
    shared_bytes_per_s,
    ttft_with_tier_s,
    zipf_popularity,
)

ROOMS = (30, 300, 1500)


def conversations(seed: int, turns: int = 4000) -> NDArray[np.int64]:
    """Conversations that grow: every turn reads all blocks before it and adds two."""
    rng = np.random.default_rng(seed)
    lengths = np.ones(120, dtype=int)
    trace: list[int] = []
    for talk in rng.zipf(1.4, turns) % len(lengths):
        trace += [int(talk) * 1000 + block for block in range(min(lengths[talk], 40))]
        lengths[talk] = 1 if lengths[talk] > 40 else lengths[talk] + 2
    return np.array(trace)


def exact(ids: NDArray[np.int64], room: int) -> float:
    cache: OrderedDict[int, None] = OrderedDict()
    hits = 0
    for block in ids.tolist():
        hits += block in cache
        cache[block] = None
        cache.move_to_end(block)
        if len(cache) > room:
            cache.popitem(last=False)
    return hits / len(ids)


@pytest.mark.parametrize("room", ROOMS)
def test_hit_ratio_agrees_with_an_exact_cache_on_independent_accesses(room: int):
    ids = np.random.default_rng(1).zipf(1.3, 20_000) % 5000
    found = hit_ratio(reuse_profile(ids), np.array([float(room)]))[0]
    assert found == pytest.approx(exact(ids, room), abs=0.01)


@pytest.mark.parametrize("room", ROOMS)
def test_hit_ratio_agrees_with_an_exact_cache_on_conversations(room: int):
    ids = conversations(2)
    found = hit_ratio(reuse_profile(ids), np.array([float(room)]))[0]
    assert found == pytest.approx(exact(ids, room), abs=0.03)


def test_more_room_never_hits_less_and_first_uses_always_miss():
    profile = reuse_profile(conversations(3))
    found = hit_ratio(profile, np.array([1.0, 10.0, 100.0, 1e3, 1e4, 1e6]))
    assert (np.diff(found) >= 0).all()
    assert found[-1] == pytest.approx(1 - profile.blocks / profile.accesses)


def test_a_window_as_long_as_the_trace_holds_every_block():
    profile = reuse_profile(conversations(4))
    window = np.array([float(profile.accesses)])
    assert footprint_blocks(profile, window)[0] == pytest.approx(profile.blocks)


def test_the_closed_form_agrees_with_an_exact_cache():
    popularity = zipf_popularity(2000, 0.9)
    ids = np.random.default_rng(5).choice(2000, 40_000, p=popularity)
    warm = exact(ids, 200)
    assert che_hit_ratio(popularity, np.array([200.0]))[0] == pytest.approx(warm, abs=0.02)


def test_blocks_that_never_return_push_others_out():
    popularity, room = zipf_popularity(2000, 0.9), np.array([200.0])
    assert che_hit_ratio(popularity, room, 0.5) < 0.5 * che_hit_ratio(popularity, room)


def test_a_fast_tier_shortens_prompts_and_a_slow_one_is_left_aside():
    def ttft(rate: float) -> float:
        sizes = (8000.0, 0.6, 20_000.0, 160e3, rate)
        return float(ttft_with_tier_s(*(np.array([size]) for size in sizes))[0])

    assert ttft(100e9) == pytest.approx(0.4 * 0.4 + 0.6 * 8000 * 160e3 / 100e9)
    assert ttft(1e6) == pytest.approx(0.4)


@pytest.mark.parametrize("unique", [0.0, 0.4])
def test_the_size_for_a_hit_ratio_gives_that_hit_ratio(unique: float):
    popularity = zipf_popularity(2000, 0.9)
    wanted = np.array([0.1, 0.3, 0.5])
    blocks = che_capacity_blocks(popularity, wanted, unique)
    assert che_hit_ratio(popularity, blocks, unique) == pytest.approx(wanted, rel=1e-6)
    assert (np.diff(blocks) > 0).all()


def test_no_size_hits_what_never_returns():
    popularity = zipf_popularity(10, 1.0)
    assert che_capacity_blocks(popularity, np.array([0.6]), 0.4)[0] == np.inf


def test_at_break_even_fetching_and_computing_take_the_same():
    tokens, rate, size = np.array([8000.0]), np.array([20_000.0]), np.array([160e3])
    even = break_even_bytes_per_s(rate, size)
    assert tokens * size / even == pytest.approx(tokens / rate)


def test_a_fetch_gets_what_others_leave_and_no_more_than_its_link():
    def got(tier: float, link: float, wanted: float) -> float:
        return float(shared_bytes_per_s(*(np.array([one]) for one in (tier, link, wanted)))[0])

    assert got(100.0, 40.0, 0.0) == 40.0
    assert got(100.0, 40.0, 80.0) == 20.0
    assert got(100.0, 40.0, 300.0) == 0.0
