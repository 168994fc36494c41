"""Replay a trace under all-flash, LRU, LRU with prefetch, and the epoch-aware cache."""

from collections.abc import Sequence

from msgspec import Struct

from tenfold.decide.tier.caches import EpochCache, LruCache
from tenfold.model.objects.tiering import Access
from tenfold.sim.storage.tier_replay import Cache, Replayed, Speed, TierReplay


class TierPrice(Struct, frozen=True):
    """A tier of the comparison: its speed for the job, and its price."""

    speed: Speed
    usd_per_tb_month: float


class PolicyResult(Struct, frozen=True, kw_only=True):
    """One policy on the trace."""

    policy: str
    usd_per_month: float
    stall_s: float
    stall_share: float
    wall_s: float
    hit_rate: float
    slow_tb: float


def compare(
    accesses: Sequence[Access], fast: TierPrice, slow: TierPrice, fast_bytes: int
) -> list[PolicyResult]:
    """Return each policy on the trace, all-flash first."""
    sizes = {access.key: access.size_bytes for access in accesses}
    stored_tb = sum(sizes.values()) / 1e12
    tiered = fast_bytes / 1e12 * fast.usd_per_tb_month + stored_tb * slow.usd_per_tb_month
    everything = sum(sizes.values())
    caches: list[tuple[str, Cache, float]] = [
        ("lru", LruCache(fast_bytes), tiered),
        ("lru-prefetch", LruCache(fast_bytes, prefetch=True), tiered),
        ("epoch-aware", EpochCache(fast_bytes), tiered),
    ]
    flash = LruCache(everything)
    for key, size_bytes in sizes.items():
        flash.has_written(key, size_bytes)
    found = [_result("all-flash", flash, stored_tb * fast.usd_per_tb_month, (fast, fast), accesses)]
    found += [_result(name, cache, usd, (fast, slow), accesses) for name, cache, usd in caches]
    return found


def _result(
    name: str,
    cache: Cache,
    usd: float,
    tiers: tuple[TierPrice, TierPrice],
    accesses: Sequence[Access],
) -> PolicyResult:
    replay = TierReplay(cache, tiers[0].speed, tiers[1].speed)
    measured: Replayed = replay.run(accesses)
    return PolicyResult(
        policy=name,
        usd_per_month=usd,
        stall_s=measured.stall_s,
        stall_share=measured.stall_s / measured.wall_s if measured.wall_s else 0.0,
        wall_s=measured.wall_s,
        hit_rate=measured.hits / measured.reads if measured.reads else 0.0,
        slow_tb=0.0 if name == "all-flash" else measured.slow_bytes / 1e12,
    )
