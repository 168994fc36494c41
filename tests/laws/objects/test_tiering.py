"""Laws of tiering decisions: nothing outside of the policy, and no worse than LRU on epochs."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.decide.tier.caches import EpochCache, LruCache
from tenfold.decide.tier.recommend import recommend
from tenfold.decide.tier.retention import expired
from tenfold.model.objects.tiering import Access, ObjectUse, StageRule, TieringPolicy, TierRoom
from tenfold.model.objects.tiers import TIER_NAMES
from tenfold.sim.storage.tier_replay import Cache, Replayed, Speed, TierReplay

HOUR = 3_600_000
NOW = 100 * 24 * HOUR
STAGES = ("raw", "prepared", "hot-set", "checkpoint", "embedding", "retention")

names = st.sampled_from(TIER_NAMES)
rules = st.builds(
    StageRule,
    stage=st.sampled_from(STAGES),
    tiers=st.sets(names, min_size=1).map(lambda found: tuple(sorted(found))),
    idle_hours=st.floats(0, 100),
    busy_reads_per_day=st.floats(0, 20),
    keep_latest=st.integers(0, 5),
    delete_after_days=st.floats(0, 60),
)
uses = st.lists(
    st.builds(
        ObjectUse,
        key=st.text("abc", min_size=1, max_size=3),
        size_bytes=st.integers(0, 10**10),
        tier=names,
        stage=st.sampled_from(STAGES),
        created_ms=st.integers(0, NOW),
        last_access_ms=st.integers(0, NOW),
        reads_per_day=st.floats(0, 20),
        pinned=st.booleans(),
        needed_at_ms=st.none() | st.integers(NOW - HOUR, NOW + 5 * HOUR),
    ),
    max_size=12,
)
policies = st.builds(
    TieringPolicy,
    rules=st.lists(rules, max_size=4, unique_by=lambda rule: rule.stage).map(tuple),
    mode=st.sampled_from(["observe", "recommend", "auto"]),
    move_bytes_max=st.integers(0, 3 * 10**10),
)
rooms = st.lists(
    st.builds(
        TierRoom,
        name=names,
        free_bytes=st.integers(0, 2 * 10**10),
        usd_per_tb_month=st.floats(0.1, 10),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda room: room.name,
)


@settings(max_examples=300)
@given(uses, policies, rooms)
def test_nothing_outside_of_the_policy_is_recommended(objects, policy, tiers):
    moves = recommend(objects, policy, tiers, NOW)
    if policy.mode == "observe":
        assert moves == []
    assert sum(move.size_bytes for move in moves) <= policy.move_bytes_max
    free = {room.name: room.free_bytes for room in tiers}
    for move in moves:
        free[move.to_tier] -= move.size_bytes
        assert free[move.to_tier] >= 0
        mine = [one for one in objects if (one.key, one.tier) == (move.key, move.from_tier)]
        assert any(_is_allowed(one, move, policy) for one in mine)


def _is_allowed(use, move, policy) -> bool:
    rule = policy.rule(use.stage)
    if rule is None or move.to_tier not in rule.tiers:
        return False
    if TIER_NAMES.index(move.to_tier) < TIER_NAMES.index(move.from_tier):
        return True
    idle = NOW - use.last_access_ms >= rule.idle_hours * HOUR
    return not use.pinned and (idle or use.tier not in rule.tiers)


@settings(max_examples=200)
@given(uses, rules)
def test_the_latest_and_the_pinned_are_never_deleted(objects, rule):
    series = list({use.key: use for use in objects}.values())
    gone = expired(series, rule, NOW)
    mine = sorted(
        (use for use in series if use.stage == rule.stage),
        key=lambda use: (use.created_ms, use.key),
    )
    latest = [use.key for use in mine[len(mine) - rule.keep_latest :]] if rule.keep_latest else []
    by_key = {use.key: use for use in series}
    for key in gone:
        assert key not in latest
        assert not by_key[key].pinned
        assert by_key[key].stage == rule.stage
        assert NOW - by_key[key].created_ms >= rule.delete_after_days * 24 * HOUR
    assert gone == [] or rule.delete_after_days > 0


def epochs(objects: int, count: int, seed: int, *, shuffled: bool) -> list[Access]:
    order = random.Random(seed)
    keys = [f"k{number}" for number in range(objects)]
    accesses: list[Access] = []
    for epoch in range(count):
        if shuffled:
            order.shuffle(keys)
        accesses += [Access(key, 100, "read", epoch, 0.01) for key in keys]
    return accesses


def replay(cache: Cache, accesses: list[Access], slow_bytes_per_s: float) -> Replayed:
    return TierReplay(cache, Speed(1e6, 0), Speed(slow_bytes_per_s, 0.001)).run(accesses)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(5, 60),
    st.integers(1, 60),
    st.integers(0, 99),
    st.booleans(),
    st.sampled_from([3e3, 1e4, 1e5]),
)
def test_the_epoch_cache_waits_no_longer_than_lru(objects, kept, seed, shuffled, slow):
    accesses = epochs(objects, 4, seed, shuffled=shuffled)
    ours = replay(EpochCache(kept * 100), accesses, slow)
    lru = replay(LruCache(kept * 100), accesses, slow)
    assert ours.stall_s <= lru.stall_s + 1e-9
    assert ours.slow_bytes <= lru.slow_bytes + 100 * kept


def test_an_unplanned_scan_displaces_nothing():
    cache = EpochCache(1000)
    cache.begin_epoch([(f"k{number}", 100) for number in range(10)])
    while cache.next_fetch():
        pass
    for number in range(50):
        cache.has_read(f"scan{number}", 100)
    assert all(cache.holds(f"k{number}") for number in range(10))


def test_repeated_scans_hit_what_fits_where_lru_hits_nothing():
    accesses = epochs(100, 5, 1, shuffled=False)
    quick = 1e9
    assert replay(LruCache(5_000), accesses, quick).hits == 0
    cache = EpochCache(5_000)
    cache.next_fetch = lambda: None
    assert replay(cache, accesses, quick).hits == 4 * 50
