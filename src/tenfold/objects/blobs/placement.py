"""Weighted rendezvous hashing of shards over backends, spread over failure domains.

Each backend draws a number from its name and the blob's id, scaled by its weight; the highest win.
So adding a backend changes only the blobs that it wins: its share of the weight, and no more.
"""

import math
from collections import Counter
from collections.abc import Collection, Sequence
from functools import lru_cache
from hashlib import blake2b

import msgspec

_MASK = (1 << 64) - 1


class Site(msgspec.Struct, frozen=True):
    """A backend as placement sees it: its name, its failure domain and its share of the data."""

    name: str
    domain: str
    weight: float = 1.0


def choose(blob: str, count: int, sites: Sequence[Site], per_domain_max: int) -> list[str]:
    """Return the backends of a blob's shards, in order; fewer if the domains do not suffice.

    Shards spread over as many domains as there are; no domain gets more than `per_domain_max`.
    """
    ranked = _ranked(blob, sites)
    domains = len({site.domain for site in sites})
    if not domains:
        return []
    for limit in range(min(-(-count // domains), per_domain_max), per_domain_max + 1):
        chosen = _take(ranked, count, limit)
        if len(chosen) == count:
            return chosen
    return _take(ranked, count, per_domain_max)


def substitutes(
    blob: str, sites: Sequence[Site], used: Collection[str], per_domain_max: int
) -> list[str]:
    """Return backends that may take one more shard of a blob, best first."""
    held = Counter(site.domain for site in sites if site.name in used)
    return [
        site.name
        for site in _ranked(blob, sites)
        if site.name not in used and held[site.domain] < per_domain_max
    ]


def _ranked(blob: str, sites: Sequence[Site]) -> list[Site]:
    seed = int(blob[:16], 16)
    return sorted(sites, key=lambda site: (-_score(seed, site), site.name))


def _score(seed: int, site: Site) -> float:
    if site.weight <= 0:
        return -math.inf
    draw = (_mix(seed ^ _name_seed(site.name)) >> 11) + 1
    return -site.weight / math.log(draw / ((1 << 53) + 1))


def _mix(value: int) -> int:
    """Return splitmix64 of a value."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


@lru_cache(maxsize=4096)
def _name_seed(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")


def _take(ranked: Sequence[Site], count: int, per_domain_max: int) -> list[str]:
    held: Counter[str] = Counter()
    chosen: list[str] = []
    for site in ranked:
        if len(chosen) == count:
            break
        if site.weight > 0 and held[site.domain] < per_domain_max:
            held[site.domain] += 1
            chosen.append(site.name)
    return chosen
