"""The bill of a window: charges of jobs, idle capacity and overhead, which add up exactly."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from tenfold.model.facts.intensity import MICROS, Intensity
from tenfold.model.fleet.facility import IDLE_POWER_SHARE
from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.ids import NodeId
from tenfold.model.job.job import WHOLE, Job
from tenfold.model.units import HOUR, HOURS_PER_MONTH, usd_micros
from tenfold.physics.operations.ledger import GPU_HOUR, charges, divided
from tenfold.study.cost.prices import PriceBook, Rate
from tenfold.study.cost.usage import Held, Usage

TB = 10**12
Dimension = Literal["team", "job", "class", "accelerator", "owner"]
DIMENSIONS: tuple[Dimension, ...] = ("team", "job", "class", "accelerator", "owner")
LineKind = Literal["charge", "idle", "overhead"]
Cell = tuple[LineKind, str, str]
"""What an amount is for: a job on a pool, an idle pool, or an item of overhead."""


class CostRow(Struct, frozen=True, kw_only=True):
    """What one team, job, class, accelerator or owner used. Dollars are micro-dollars."""

    key: str
    gpu_hours: float
    usd_micros: int
    idle_usd_micros: int
    """Its share of the idle capacity, by what it was charged; not part of `usd_micros`."""
    kwh: float
    co2e_kg: float | None


class Overhead(Struct, frozen=True, kw_only=True):
    """What is paid whoever uses it."""

    item: str
    usd_micros: int
    kwh: float = 0.0


class CostReport(Struct, frozen=True, kw_only=True):
    """charges + idle + overhead = total, in whole micro-dollars."""

    hours: float
    total_usd_micros: int
    charged_usd_micros: int
    idle_usd_micros: int
    overhead_usd_micros: int
    gpu_hours: float
    """Of capacity that was up or down, used or not."""
    gpu_hours_allocated: float
    kwh: float | None
    """At the building's meter; None where no fleet file says what nodes draw."""
    co2e_kg: float | None
    rows: dict[Dimension, tuple[CostRow, ...]]
    idle: tuple[Overhead, ...]
    overhead: tuple[Overhead, ...]
    notes: tuple[str, ...]


class _Ledger(Struct, frozen=True, kw_only=True):
    """Amounts by cell, and what they are made of."""

    units: dict[Cell, int]
    usd_micros: dict[Cell, int]
    rates: dict[Cell, Rate]
    jobs: dict[str, Job]


def cost_report(
    usage: Usage, book: PriceBook, spec: FleetSpec | None, intensity: Intensity | None = None
) -> CostReport:
    """Return the bill of a window."""
    rates = {one.node.id: book.of(one.node) for one in usage.present}
    held = [one for one in usage.held if one.node in rates]
    ledger = _ledger(usage, held, rates)
    energy = _energy(usage, held, rates, intensity)
    charged = {cell: amount for cell, amount in ledger.usd_micros.items() if cell[0] == "charge"}
    idle = _lines(ledger, "idle")
    overhead = (
        *_lines(ledger, "overhead"),
        *_energy_lines(usage, rates, energy),
        *_other(spec, usage),
    )
    idle_micros = sum(one.usd_micros for one in idle)
    rows: dict[Dimension, tuple[CostRow, ...]] = {
        dimension: _rows(_KEYS[dimension], ledger, charged, idle_micros, energy)
        for dimension in DIMENSIONS
    }
    watts = any(rate.watts_per_gpu for rate in rates.values())
    charged_micros = sum(charged.values())
    overhead_micros = sum(one.usd_micros for one in overhead)
    units = sum(ledger.units.values())
    return CostReport(
        hours=usage.hours,
        total_usd_micros=charged_micros + idle_micros + overhead_micros,
        charged_usd_micros=charged_micros,
        idle_usd_micros=idle_micros,
        overhead_usd_micros=overhead_micros,
        gpu_hours=units / GPU_HOUR,
        gpu_hours_allocated=sum(ledger.units[cell] for cell in charged) / GPU_HOUR,
        kwh=energy.kwh if watts else None,
        co2e_kg=energy.co2e_kg if watts else None,
        rows=rows,
        idle=idle,
        overhead=overhead,
        notes=tuple(book.notes),
    )


def _ledger(usage: Usage, held: Sequence[Held], rates: Mapping[NodeId, Rate]) -> _Ledger:
    units: dict[Cell, int] = {}
    by_cell: dict[Cell, Rate] = {}
    used: dict[NodeId, int] = {}
    jobs: dict[str, Job] = {}
    for one in held:
        rate = rates[one.node]
        cell: Cell = ("charge", one.job.id, rate.pool)
        amount = one.milli * (one.end_ms - one.start_ms)
        units[cell] = units.get(cell, 0) + amount
        used[one.node] = used.get(one.node, 0) + amount
        by_cell[cell], jobs[one.job.id] = rate, one.job
    for one in usage.present:
        rate = rates[one.node.id]
        whole = one.node.gpus * WHOLE * max(0, one.end_ms - one.start_ms)
        free = max(0, whole - used.get(one.node.id, 0))
        # A job may still hold GPUs while its node is already down: that time is charged to it.
        down = min(free, one.node.gpus * WHOLE * one.down_ms)
        unused: dict[Cell, int] = {
            ("idle", "", rate.pool): free - down,
            ("overhead", "nodes down", rate.pool): down,
        }
        for cell, amount in unused.items():
            if amount:
                units[cell] = units.get(cell, 0) + amount
                by_cell[cell] = rate
    prices = {cell: int(rate.usd_micros_per_gpu_hour) for cell, rate in by_cell.items()}
    return _Ledger(units=units, usd_micros=charges(units, prices), rates=by_cell, jobs=jobs)


def _lines(ledger: _Ledger, kind: LineKind) -> tuple[Overhead, ...]:
    return tuple(
        Overhead(item=f"{cell[1]}, {cell[2]}" if cell[1] else cell[2], usd_micros=amount)
        for cell, amount in ledger.usd_micros.items()
        if cell[0] == kind
    )


class _Energy(Struct, frozen=True, kw_only=True):
    """Energy in all, and of each job on each pool; idle power is in the whole alone."""

    kwh: float
    co2e_kg: float
    by_job: dict[tuple[str, str], tuple[float, float]]
    by_pool: dict[str, float]


def _energy(
    usage: Usage, held: Sequence[Held], rates: Mapping[NodeId, Rate], intensity: Intensity | None
) -> _Energy:
    """Integrate power over time: a held GPU draws its share of a busy node, an idle one 12%."""
    by_job: dict[tuple[str, str], tuple[float, float]] = {}
    by_pool: dict[str, float] = {}
    total = carbon = 0.0
    used: dict[NodeId, int] = {}
    for one in held:
        rate = rates[one.node]
        span = one.end_ms - one.start_ms
        kw = rate.watts_per_gpu * one.milli / WHOLE / 1_000
        kwh = kw * span / HOUR
        kg = kw * _grams(rate, one.start_ms, one.end_ms, intensity) / HOUR / 1_000
        key = (one.job.id, rate.pool)
        known = by_job.get(key, (0.0, 0.0))
        by_job[key] = (known[0] + kwh, known[1] + kg)
        by_pool[rate.pool] = by_pool.get(rate.pool, 0.0) + kwh
        used[one.node] = used.get(one.node, 0) + one.milli * span
        total, carbon = total + kwh, carbon + kg
    for one in usage.present:
        rate = rates[one.node.id]
        span = one.end_ms - one.start_ms - one.down_ms
        idle = max(0, one.node.gpus * WHOLE * span - used.get(one.node.id, 0))
        kwh = rate.watts_per_gpu * IDLE_POWER_SHARE * idle / WHOLE / 1_000 / HOUR
        mean = _grams(rate, one.start_ms, one.end_ms, intensity) / max(1, one.end_ms - one.start_ms)
        by_pool[rate.pool] = by_pool.get(rate.pool, 0.0) + kwh
        total, carbon = total + kwh, carbon + kwh * mean / 1_000
    return _Energy(kwh=total, co2e_kg=carbon, by_job=by_job, by_pool=by_pool)


def _grams(rate: Rate, start_ms: int, end_ms: int, intensity: Intensity | None) -> float:
    """Return grams per kWh times milliseconds: by the hour where a curve is given."""
    if intensity is not None:
        return intensity.co2_g_per_kwh.area(start_ms, end_ms) / MICROS
    return (rate.co2_g_per_kwh or 0.0) * (end_ms - start_ms)


def _energy_lines(
    usage: Usage, rates: Mapping[NodeId, Rate], energy: _Energy
) -> tuple[Overhead, ...]:
    """Return the energy of owned pools; rents include it."""
    owned = {
        rate.pool: rate
        for rate in (rates[one.node.id] for one in usage.present)
        if rate.kind == "owned" and rate.usd_per_kwh
    }
    return tuple(
        Overhead(
            item=f"energy, {pool}",
            usd_micros=usd_micros(energy.by_pool.get(pool, 0.0) * rate.usd_per_kwh),
            kwh=energy.by_pool.get(pool, 0.0),
        )
        for pool, rate in owned.items()
    )


def _other(spec: FleetSpec | None, usage: Usage) -> tuple[Overhead, ...]:
    """Return storage tiers, and pools without GPUs, for the length of the window."""
    if spec is None:
        return ()
    tiers = [
        Overhead(
            item=f"storage, {tier.id}",
            usd_micros=round(
                tier.usd_micros_per_tb_month * tier.capacity / TB * usage.hours / HOURS_PER_MONTH
            ),
        )
        for tier in spec.tiers
    ]
    cpus = [
        Overhead(
            item=f"nodes without GPUs, {pool.id}",
            usd_micros=round(pool.price.usd_micros_per_hour * pool.nodes * usage.hours),
        )
        for pool in spec.pools
        if not pool.gpus and pool.price is not None
    ]
    return (*tiers, *cpus)


def _rows(
    key_of: Callable[[Job, Rate], str],
    ledger: _Ledger,
    charged: Mapping[Cell, int],
    idle_micros: int,
    energy: _Energy,
) -> tuple[CostRow, ...]:
    """Return the rows of one dimension, the most expensive first."""
    units: dict[str, int] = {}
    micros: dict[str, int] = {}
    kwh: dict[str, float] = {}
    kg: dict[str, float] = {}
    for cell, amount in charged.items():
        key = key_of(ledger.jobs[cell[1]], ledger.rates[cell])
        units[key] = units.get(key, 0) + ledger.units[cell]
        micros[key] = micros.get(key, 0) + amount
        used = energy.by_job.get((cell[1], cell[2]), (0.0, 0.0))
        kwh[key] = kwh.get(key, 0.0) + used[0]
        kg[key] = kg.get(key, 0.0) + used[1]
    # Free pools have no charge to share by: GPU time stands in for it.
    shares = divided(idle_micros, micros if any(micros.values()) else units)
    rows = [
        CostRow(
            key=key,
            gpu_hours=units[key] / GPU_HOUR,
            usd_micros=micros[key],
            idle_usd_micros=shares[key],
            kwh=kwh[key],
            co2e_kg=kg[key],
        )
        for key in micros
    ]
    return tuple(sorted(rows, key=lambda row: (-row.usd_micros, -row.gpu_hours, row.key)))


def class_of(job: Job) -> str:
    """Return the class of a job: what kind of work it is."""
    return "batch" if job.terms is None else job.terms.kind


_KEYS: dict[Dimension, Callable[[Job, Rate], str]] = {
    "team": lambda job, _: job.team or "(no team)",
    "job": lambda job, _: job.id,
    "class": lambda job, _: class_of(job),
    "accelerator": lambda _, rate: rate.accelerator,
    "owner": lambda _, rate: rate.owner or "(own)",
}
