"""The plan file: the horizon, classes of demand, and what may be bought and rented.

The fleet file describes the hardware and the grow file its limits, lead times and growth. A plan
file adds what only a purchase needs. Everything is optional; what is assumed is printed.
"""

from typing import Annotated

from msgspec import Meta, Struct, field

from tenfold.model.growth.growth import GrowTable, Many, Name, Rate, Share, Usd

HORIZON_MONTHS = 36
MonthCount = Annotated[int, Meta(ge=1, le=120)]
UsdHour = Annotated[float, Meta(gt=0, le=1e6)]
Part = Annotated[float, Meta(ge=0, le=1)]


class Horizon(GrowTable, frozen=True, kw_only=True):
    """`[plan]`: how far ahead, how many scenarios, and how risk is weighed."""

    start: str = ""
    """The day the plan starts if the grow file has no `[pace]`, such as `2026-12-01`."""
    months: MonthCount = HORIZON_MONTHS
    order_every_months: Annotated[int, Meta(ge=1, le=12)] = 3
    """Months between two rounds of orders."""
    scenarios: Annotated[int, Meta(ge=1, le=20)] = 5
    draws: Annotated[int, Meta(ge=20, le=20_000)] = 1_000
    seed: Annotated[int, Meta(ge=0, le=2**31)] = 0
    growth_spread: Annotated[float, Meta(ge=0, le=2)] = 0.2
    """Relative spread of the growth rate of `[pace]`: one standard deviation."""
    cvar_weight: Part = 0.0
    cvar_tail: Share = 0.2


class ClassTable(GrowTable, frozen=True, kw_only=True):
    """`[[demand]]`: a class of work, the GPUs it needs today, and where it may run."""

    name: Name
    accelerator: Name
    gpus: Annotated[float, Meta(ge=0, le=1e8)] | None = None
    """GPUs in use or waited for today; None: all GPUs of its accelerator in the fleet."""
    rates: dict[str, Rate] = field(default_factory=dict[str, Rate])
    """Other accelerators that it may run on, and how many of its own one of them replaces."""
    series: str = ""
    """The series of the history that it follows; empty: the one of its own name."""
    spot_share: Part = 0.0
    residency: str = ""
    """The residency that its sites and regions must have; empty: any."""
    delay_usd_per_gpu_hour: UsdHour | None = None


class BuyTable(GrowTable, frozen=True, kw_only=True):
    """`[[buy]]`: nodes of a pool that may be bought, if not at the price of the pool."""

    pool: Name
    capex_usd_per_node: Usd | None = None
    lifetime_years: Annotated[float, Meta(gt=0, le=30)] = 4.0
    running_usd_per_node_month: Usd = 0.0
    nodes_most: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None


class RentTable(GrowTable, frozen=True, kw_only=True):
    """`[[rent]]`: GPUs that can be rented; without any, the medians of the facts are assumed."""

    name: Name
    accelerator: Name
    provider: str = ""
    region: str = ""
    instance_type: str = ""
    gpus_per_instance: Annotated[int, Meta(ge=1, le=1_024)] = 8
    residency: tuple[str, ...] = ()
    usd_on_demand_per_gpu_hour: UsdHour | None = None
    usd_spot_per_gpu_hour: UsdHour | None = None
    spot_goodput: Share = 0.85
    usd_reserved_per_gpu_hour: UsdHour | None = None
    reserved_months: MonthCount = 12
    gpus_most: Many | None = None


class GateTable(GrowTable, frozen=True, kw_only=True):
    """`[[gate]]`: what operations must have ready before the fleet has more than some nodes."""

    item: Name
    nodes_most: Many
    """Nodes up to which the fleet can be run without it."""
    ready_by: str = ""
    """The day from which it is ready; empty: no date, so the gate stays closed."""


class PlanFile(Struct, frozen=True, kw_only=True):
    """Everything that a plan file states."""

    plan: Horizon = Horizon()
    demand: tuple[ClassTable, ...] = ()
    buy: tuple[BuyTable, ...] = ()
    rent: tuple[RentTable, ...] = ()
    gates: tuple[GateTable, ...] = ()
