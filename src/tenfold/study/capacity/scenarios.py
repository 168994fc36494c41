"""Demand by Monte Carlo: a baseline from history or growth, with drivers on top.

Each driver has random numbers of its own, so a draw without it is otherwise the same draw: what it
adds is exactly what is missing without it. The draws are then reduced to a few scenarios of equal
probability, from the lowest total demand to the highest.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tenfold.model.capacity.drivers import Driver
from tenfold.physics.arrays import Floats
from tenfold.sim.faults.outages import generator_of
from tenfold.study.capacity.drivers import GB_PER_TB, SECONDS_PER_MONTH, DriverNeed

Z90 = 1.2815515655446004


class Baseline(Struct, frozen=True, kw_only=True):
    """Demand of one class without drivers: its median by month, and how uncertain it is."""

    name: str
    median: Floats
    log_sd: Floats
    """Standard deviation of the logarithm by month."""
    shared: str = ""
    """Baselines with the same word here rise and fall together."""


class Draws(Struct, frozen=True, kw_only=True):
    """Courses of demand: GPUs by draw, class and month, with what each driver adds."""

    classes: tuple[str, ...]
    gpus: Floats
    added: Mapping[str, Floats]
    """By driver: GPUs by draw and month."""
    budget_usd: Floats | None
    """The budget by draw and month, where a driver states one; infinite without."""
    stored_tb: Mapping[str, Floats]
    """By tier: TB by draw and month, on top of today's."""
    read_gb_per_s: Mapping[str, Floats]
    """By tier: the rate at which new data is read."""

    def without(self, driver: str) -> Floats:
        """Return the GPUs of all classes together by draw and month, without one driver."""
        total = self.gpus.sum(axis=1)
        return total - self.added[driver] if driver in self.added else total


def draw_demand(
    baselines: Sequence[Baseline], needs: Sequence[DriverNeed], draws: int, seed: int
) -> Draws:
    """Return seeded courses of demand."""
    months = len(baselines[0].median)
    names = tuple(one.name for one in baselines)
    gpus = np.zeros((draws, len(names), months))
    for at, baseline in enumerate(baselines):
        # One number for a whole course: demand that is high stays high.
        z = generator_of("baseline", seed, baseline.shared or baseline.name).standard_normal(draws)
        gpus[:, at] = baseline.median * np.exp(np.outer(z, baseline.log_sd))
    added: dict[str, Floats] = {}
    budget: Floats | None = None
    stored: dict[str, Floats] = {}
    read: dict[str, Floats] = {}
    for need in needs:
        level, happens = draw_levels(need.driver, draws, seed)
        active = np.zeros(months)
        active[need.first : need.end] = 1.0
        if need.budget_usd is not None:
            stated = np.where(happens, _at(need.budget_usd, level), np.inf)
            limit = np.where(active > 0, stated[:, None], np.inf)
            budget = limit if budget is None else np.minimum(budget, limit)
        elif need.driver.kind == "dataset":
            new = np.outer(np.where(happens, _at(need.tb_per_month, level), 0.0), active)
            kept = np.cumsum(new, axis=1)
            rate = (need.driver.passes_per_month or 0.0) * GB_PER_TB / SECONDS_PER_MONTH
            tier, none = need.driver.tier, np.zeros((draws, months))
            stored[tier] = stored.get(tier, none) + kept
            read[tier] = read.get(tier, none) + kept * rate
        else:
            extra = np.outer(np.where(happens, _at(need.gpus, level), 0.0), active)
            at = names.index(need.driver.demand) if need.driver.demand else 0
            gpus[:, at] += extra
            added[need.driver.name] = extra
    return Draws(
        classes=names,
        gpus=gpus,
        added=added,
        budget_usd=budget,
        stored_tb=stored,
        read_gb_per_s=read,
    )


def _at(values: tuple[float, float, float], level: NDArray[np.int64]) -> Floats:
    return np.array(values, dtype=np.float64)[level]


def draw_levels(
    driver: Driver, draws: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the level of a driver in each draw, and whether it happens."""
    generator = generator_of("driver", seed, driver.name)
    edges = np.cumsum(driver.amount.chances)
    drawn = np.searchsorted(edges, generator.random(draws), side="right")
    level = np.minimum(drawn, 2).astype(np.int64)
    return level, generator.random(draws) < driver.probability


class Course(Struct, frozen=True, kw_only=True):
    """A group of draws of similar total demand, and its mean."""

    name: str
    probability: float
    gpus: Floats
    """By class and month."""
    budget_usd: Floats | None
    members: tuple[int, ...]


def reduced(draws: Draws, count: int) -> list[Course]:
    """Return a few courses that stand for all draws, lowest demand first."""
    total = draws.gpus.sum(axis=(1, 2))
    order = np.argsort(total, kind="stable")
    groups = [one for one in np.array_split(order, count) if len(one)]
    named = [_words(at, len(groups)) for at in range(len(groups))]
    return [
        Course(
            name=name,
            probability=len(group) / len(total),
            gpus=draws.gpus[group].mean(axis=0),
            budget_usd=None
            if draws.budget_usd is None
            else np.median(draws.budget_usd[group], axis=0),
            members=tuple(int(one) for one in group),
        )
        for name, group in zip(named, groups, strict=True)
    ]


def _words(at: int, of: int) -> str:
    return "demand" if of == 1 else f"P{round(100 * at / of)} to P{round(100 * (at + 1) / of)}"
