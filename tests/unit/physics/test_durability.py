"""The closed form against known results and against a Monte Carlo simulation of the same chain."""

import math
import random

import pytest

from tenfold.physics.durability import (
    HOURS_PER_YEAR,
    Redundancy,
    durability,
    mean_years_to_loss,
    rebuild_hours,
)


def simulated_years_to_loss(redundancy: Redundancy, runs: int, seed: int) -> tuple[float, float]:
    """Return the mean and its standard error of the time to loss, shard by shard."""
    chance = random.Random(seed)
    times = [_one_life(redundancy, chance) for _ in range(runs)]
    mean = sum(times) / runs
    variance = sum((time - mean) ** 2 for time in times) / (runs - 1)
    return mean, math.sqrt(variance / runs)


def _one_life(redundancy: Redundancy, chance: random.Random) -> float:
    now = 0.0
    changes = [chance.expovariate(redundancy.annual_failure_rate) for _ in range(redundancy.shards)]
    up = [True] * redundancy.shards
    while True:
        shard = min(range(redundancy.shards), key=changes.__getitem__)
        now = changes[shard]
        up[shard] = not up[shard]
        missing = up.count(False)
        if missing > redundancy.parity_shards:
            return now
        if up[shard]:
            changes[shard] = now + chance.expovariate(redundancy.annual_failure_rate)
            continue
        changes[shard] = now + chance.expovariate(HOURS_PER_YEAR / redundancy.rebuild_hours)
        unreadable = [
            chance.random() < redundancy.unreadable_share for _ in range(redundancy.data_shards)
        ]
        if missing == redundancy.parity_shards and any(unreadable):
            return now


@pytest.mark.parametrize(
    ("layout", "latent"),
    [((1, 0), 0.0), ((1, 1), 0.0), ((1, 2), 0.5), ((4, 2), 0.0), ((4, 2), 0.4), ((8, 3), 0.0)],
)
def test_the_closed_form_agrees_with_a_monte_carlo(layout: tuple[int, int], latent: float):
    """Rates are high, so that losses are frequent enough to be counted."""
    redundancy = Redundancy(
        data_shards=layout[0],
        parity_shards=layout[1],
        annual_failure_rate=1.5,
        rebuild_hours=HOURS_PER_YEAR / 12,
        latent_errors_per_year=latent,
        scrub_days=90,
    )
    mean, error = simulated_years_to_loss(redundancy, 3000, seed=7)
    assert abs(mean_years_to_loss(redundancy) - mean) < 4 * error


def test_a_mirror_has_the_textbook_mean_time_to_loss():
    mirror = Redundancy(data_shards=1, parity_shards=1, annual_failure_rate=0.01, rebuild_hours=24)
    rate, repair = 0.01, HOURS_PER_YEAR / 24
    expected = (3 * rate + repair) / (2 * rate * rate)
    assert mean_years_to_loss(mirror) == pytest.approx(expected)


def test_more_parity_and_quicker_rebuilds_lose_less():
    losses = [
        durability(
            Redundancy(
                data_shards=4, parity_shards=parity, annual_failure_rate=0.014, rebuild_hours=hours
            ),
            1e9,
            100,
        ).object_loss_per_year
        for parity, hours in ((0, 24), (1, 24), (1, 6), (2, 24), (2, 6), (3, 24))
    ]
    assert losses == sorted(losses, reverse=True)


def test_objects_on_the_same_backends_are_lost_together():
    layout = Redundancy(data_shards=4, parity_shards=2, annual_failure_rate=0.5, rebuild_hours=500)
    few, many = durability(layout, 1e9, 6), durability(layout, 1e9, 60)
    assert few.placements == 1
    assert few.any_loss_per_year == pytest.approx(few.object_loss_per_year)
    assert many.object_loss_per_year == few.object_loss_per_year
    assert many.any_loss_per_year > few.any_loss_per_year


def test_scrubs_bound_what_unreadable_shards_cost():
    def loss(scrub_days: float) -> float:
        return durability(
            Redundancy(
                data_shards=8,
                parity_shards=2,
                annual_failure_rate=0.02,
                rebuild_hours=24,
                latent_errors_per_year=0.1,
                scrub_days=scrub_days,
            ),
            1,
            10,
        ).object_loss_per_year

    assert loss(0) < loss(7) < loss(30) < loss(365)


def test_a_backend_that_never_fails_loses_nothing():
    never = Redundancy(data_shards=4, parity_shards=2, annual_failure_rate=0, rebuild_hours=1)
    assert durability(never, 1e6, 6).object_loss_per_year == 0
    assert durability(never, 1e6, 6).nines == math.inf


def test_a_rebuild_takes_the_bytes_over_the_rate():
    assert rebuild_hours(3.6, 100) == pytest.approx(10)
    assert rebuild_hours(3.6, 100, detect_hours=1) == pytest.approx(11)
