"""How likely stored objects are lost in a year, and how long a rebuild takes, by layout.

The shards of an object fail independently at a constant rate and are rebuilt at a constant rate:
a birth-death chain over the number of missing shards, solved in closed form. When the last
redundancy is gone, a shard that turns out to be unreadable is a loss as well; scrubs bound that.
Failures that strike several domains at once are not in it: no layout within one site covers them.
"""

import math

from msgspec import Struct

HOURS_PER_YEAR = 8766.0


class Redundancy(Struct, frozen=True, kw_only=True):
    """A layout and what its shards are stored on."""

    data_shards: int
    parity_shards: int
    annual_failure_rate: float
    """Expected failures of one backend in a year."""
    rebuild_hours: float
    latent_errors_per_year: float = 0.0
    """Expected shards per object and backend that become unreadable without notice, in a year."""
    scrub_days: float = 0.0

    @property
    def shards(self) -> int:
        """Return the shards of an object."""
        return self.data_shards + self.parity_shards

    @property
    def overhead(self) -> float:
        """Return stored bytes per byte of data."""
        return self.shards / self.data_shards

    @property
    def unreadable_share(self) -> float:
        """Return the chance that a shard is unreadable at a given time: found at the next scrub."""
        return 1 - math.exp(-self.latent_errors_per_year * self.scrub_days / 2 / 365.25)


class Durability(Struct, frozen=True, kw_only=True):
    """What a layout is worth."""

    object_loss_per_year: float
    """Chance that a given object is lost within a year."""
    any_loss_per_year: float
    """Chance that at least one of the objects is lost within a year."""
    nines: float
    mean_years_to_loss: float
    placements: float
    """Distinct sets of backends that hold the objects."""


def durability(redundancy: Redundancy, objects: float, backends: int) -> Durability:
    """Return the durability of objects that are placed over backends."""
    years = mean_years_to_loss(redundancy)
    one = -math.expm1(-1 / years) if years > 0 else 1.0
    placements = min(objects, float(math.comb(backends, redundancy.shards)))
    # Objects on one set of backends are lost together, at most.
    every = -math.expm1(placements * math.log1p(-one)) if one < 1 else 1.0
    return Durability(
        object_loss_per_year=one,
        any_loss_per_year=every,
        nines=-math.log10(one) if one > 0 else math.inf,
        mean_years_to_loss=years,
        placements=placements,
    )


def mean_years_to_loss(redundancy: Redundancy) -> float:
    """Return the mean time until an object is lost, starting with all shards."""
    parity = redundancy.parity_shards
    fails = [
        (redundancy.shards - missing) * redundancy.annual_failure_rate
        for missing in range(parity + 1)
    ]
    if fails[0] <= 0:
        return math.inf
    # Missing shards are rebuilt at the same time: they are on different backends.
    rebuilds = [missing * rebuilds_per_year(redundancy) for missing in range(parity + 1)]
    up = [1 / fails[0]]
    for missing in range(1, parity + 1):
        up.append(1 / fails[missing] + rebuilds[missing] / fails[missing] * up[-1])
    if not parity:
        return up[0]
    # The step to the last state without redundancy is a loss if a shard it needs is unreadable.
    hit = 1 - (1 - redundancy.unreadable_share) ** redundancy.data_shards
    stay = 1 / (fails[parity] + rebuilds[parity])
    back = rebuilds[parity] * stay
    last = (stay + back * up[parity - 1]) / (1 - back * (1 - hit))
    return sum(up[:parity]) + (1 - hit) * last


def rebuilds_per_year(redundancy: Redundancy) -> float:
    """Return the rate at which one missing shard is rebuilt."""
    return HOURS_PER_YEAR / redundancy.rebuild_hours if redundancy.rebuild_hours > 0 else math.inf


def rebuild_hours(stored_tb: float, rebuild_mb_per_s: float, detect_hours: float = 0.0) -> float:
    """Return how long it takes to notice a failed backend and write its shards again."""
    return detect_hours + stored_tb * 1e6 / rebuild_mb_per_s / 3600


def rebuild_read_tb(redundancy: Redundancy, stored_tb: float) -> float:
    """Return what a rebuild of a backend reads from the others."""
    return stored_tb * redundancy.data_shards
