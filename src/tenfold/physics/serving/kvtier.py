"""Hit ratio of a shared KV-cache tier against its capacity: from a trace of prefix blocks, or in
closed form.

Prefix blocks are only useful with all blocks before them. Under least-recently-used order that
comes for free (a parent is touched whenever its child is), so block reuse alone gives the ratio
of tokens.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenfold.physics.arrays import Floats

_CHE_TURNS = 100
_WINDOW_MAX = 1e15


@dataclass(frozen=True, slots=True)
class ReuseProfile:
    """Sorted reuse times of a trace: all that the hit ratio of a least-recently-used tier depends
    on.
    """

    reuse_times: NDArray[np.int64]
    """Accesses between two uses of one block, sorted; first uses are not in it."""
    edge_times: NDArray[np.int64]
    """Time to the first and from the last use of each block, sorted: the trace's two open ends."""
    accesses: int
    blocks: int


def reuse_profile(block_ids: NDArray[np.int64]) -> ReuseProfile:
    """Summarise a trace of block accesses in order of time (requests flattened, prefix first)."""
    count = len(block_ids)
    order = np.argsort(block_ids, kind="stable")
    ids, times = block_ids[order], order + 1
    first = np.ones(count, dtype=bool)
    first[1:] = ids[1:] != ids[:-1]
    last = np.roll(first, -1)
    gaps = np.diff(times, prepend=0)[~first]
    edges = np.concatenate([times[first], count + 1 - times[last]])
    return ReuseProfile(np.sort(gaps), np.sort(edges), count, int(first.sum()))


def footprint_blocks(profile: ReuseProfile, window: Floats) -> Floats:
    """Return the mean number of distinct blocks in a window of `window` accesses (Xiang et al.,
    HOTL).
    """
    missing = _excess(profile.reuse_times, window) + _excess(profile.edge_times, window)
    return profile.blocks - missing / (profile.accesses - window + 1.0)


def hit_ratio(profile: ReuseProfile, capacity_blocks: Floats) -> Floats:
    """Return the share of accesses a tier of `capacity_blocks` serves, first uses counted as
    misses.
    """
    low = np.zeros_like(capacity_blocks)
    high = np.full_like(capacity_blocks, float(profile.accesses))
    for _ in range(64):
        middle = (low + high) / 2.0
        small = footprint_blocks(profile, middle) < capacity_blocks
        low, high = np.where(small, middle, low), np.where(small, high, middle)
    # A block reused within the window that fills the tier is still there.
    return np.searchsorted(profile.reuse_times, low, side="right") / profile.accesses


def zipf_popularity(blocks: int, exponent: float) -> Floats:
    """Return access shares of `blocks` blocks under Zipf's law."""
    weights = np.arange(1, blocks + 1, dtype=np.float64) ** -exponent
    return weights / weights.sum()


def che_hit_ratio(popularity: Floats, capacity_blocks: Floats, unique_share: float = 0.0) -> Floats:
    """Return the hit ratio of independent accesses with known popularity (Che's approximation).

    `unique_share` of the accesses are to blocks that never return (the tail of every prompt);
    they miss, and they evict others.
    """
    low = np.zeros_like(capacity_blocks)
    high = np.full_like(capacity_blocks, _WINDOW_MAX)
    for _ in range(_CHE_TURNS):
        middle = np.sqrt(np.maximum(low, 1e-3) * high)
        small = _held(popularity, middle, unique_share) < capacity_blocks
        low, high = np.where(small, middle, low), np.where(small, high, middle)
    return _hit(popularity, low, unique_share)


def che_capacity_blocks(popularity: Floats, hit_share: Floats, unique_share: float = 0.0) -> Floats:
    """Return the blocks that a tier must hold for a hit ratio; infinite where none is enough."""
    low = np.zeros_like(hit_share)
    high = np.full_like(hit_share, _WINDOW_MAX)
    for _ in range(_CHE_TURNS):
        middle = np.sqrt(np.maximum(low, 1e-3) * high)
        small = _hit(popularity, middle, unique_share) < hit_share
        low, high = np.where(small, middle, low), np.where(small, high, middle)
    reached = hit_share < 1.0 - unique_share
    return np.where(reached, _held(popularity, high, unique_share), np.inf)


def _held(popularity: Floats, window: Floats, unique_share: float) -> Floats:
    """Return distinct blocks among `window` accesses."""
    shared = window * (1.0 - unique_share)
    return -np.expm1(-np.outer(shared, popularity)).sum(axis=1) + unique_share * window


def _hit(popularity: Floats, window: Floats, unique_share: float) -> Floats:
    """Return the share of accesses whose block was last used within `window` accesses."""
    shared = 1.0 - unique_share
    return shared * (-np.expm1(-np.outer(window * shared, popularity)) * popularity).sum(axis=1)


def ttft_with_tier_s(
    prompt_tokens: Floats,
    hit_share: Floats,
    prefill_tokens_per_s: Floats,
    kv_bytes_per_token: Floats,
    tier_bytes_per_s: Floats,
) -> Floats:
    """Return the prompt time when hits are fetched and the rest computed; a slow tier is not used
    at all.
    """
    fetch_s = hit_share * prompt_tokens * kv_bytes_per_token / tier_bytes_per_s
    compute_s = prompt_tokens / prefill_tokens_per_s
    return np.minimum(compute_s, (1.0 - hit_share) * compute_s + fetch_s)


def break_even_bytes_per_s(prefill_tokens_per_s: Floats, kv_bytes_per_token: Floats) -> Floats:
    """Return the rate below which recomputing a token is faster than fetching it."""
    return prefill_tokens_per_s * kv_bytes_per_token


def shared_bytes_per_s(
    tier_bytes_per_s: Floats, link_bytes_per_s: Floats, wanted_bytes_per_s: Floats
) -> Floats:
    """Return the rate of one fetch from a tier under load, limited by its own link.

    Fetches share the tier evenly, so the mean fetch gets the remaining rate.
    """
    left = np.maximum(tier_bytes_per_s - wanted_bytes_per_s, 0.0)
    return np.minimum(left, link_bytes_per_s)


def _excess(sorted_times: NDArray[np.int64], window: Floats) -> Floats:
    # Sum of (time - window) over all times beyond the window, by one cumulative sum.
    total = np.concatenate([[0], np.cumsum(sorted_times)])
    at = np.searchsorted(sorted_times, window, side="right")
    return (total[-1] - total[at]) - (len(sorted_times) - at) * window
