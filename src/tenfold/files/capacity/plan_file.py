"""Read a plan file: the horizon, classes of demand, and what may be bought and rented."""

from pathlib import Path

from msgspec import Struct

from tenfold.files.capacity.tables import FileTables
from tenfold.model.capacity.plan_file import (
    BuyTable,
    ClassTable,
    GateTable,
    Horizon,
    PlanFile,
    RentTable,
)
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.spec import FleetSpec

PLAN_SINGLE: dict[str, type[Struct]] = {"plan": Horizon}
PLAN_MANY: dict[str, type[Struct]] = {
    "demand": ClassTable,
    "buy": BuyTable,
    "rent": RentTable,
    "gate": GateTable,
}


def read_plan_file(path: Path, catalogue: Catalogue, fleet: FleetSpec) -> PlanFile:
    """Return a plan file, or raise `InvalidFile` with all its errors."""
    tables = FileTables(path, (*PLAN_SINGLE, *PLAN_MANY), "plan file")
    horizon = tables.one("plan", Horizon) or Horizon()
    tables.check_day(("plan", "start"), horizon.start)
    demand = tables.many("demand", ClassTable)
    buy = tables.many("buy", BuyTable)
    rent = tables.many("rent", RentTable)
    gates = tables.many("gate", GateTable)
    tables.check_names("demand", {at: row.name for at, row in demand.items()})
    tables.check_names("buy", {at: row.pool for at, row in buy.items()})
    pools = {f"pool {number}": str(pool.id) for number, pool in enumerate(fleet.pools)}
    tables.check_names("rent", {at: row.name for at, row in rent.items()})
    for at, row in rent.items():
        _check_part(tables, ("rent", at, "accelerator"), row.accelerator, catalogue)
        _check_rent(tables, at, row, list(pools.values()))
    for at, row in demand.items():
        _check_part(tables, ("demand", at, "accelerator"), row.accelerator, catalogue)
        for name in row.rates:
            _check_part(tables, ("demand", at, "rates", name), name, catalogue)
    for at, row in buy.items():
        if row.pool not in pools.values():
            known = ", ".join(f"`{name}`" for name in pools.values())
            message = f"no pool `{row.pool}` in the fleet file"
            tables.wrong(("buy", at, "pool"), message, f"declared pools: {known}", "unknown-pool")
    for at, row in gates.items():
        tables.check_day(("gate", at, "ready_by"), row.ready_by)
    tables.finish()
    return PlanFile(
        plan=horizon,
        demand=tuple(demand.values()),
        buy=tuple(buy.values()),
        rent=tuple(rent.values()),
        gates=tuple(gates.values()),
    )


def _check_rent(tables: FileTables, at: int, row: RentTable, pools: list[str]) -> None:
    prices = (
        row.usd_on_demand_per_gpu_hour,
        row.usd_spot_per_gpu_hour,
        row.usd_reserved_per_gpu_hour,
    )
    if not any(prices):
        hint = "state `usd_on_demand_per_gpu_hour`, `usd_spot_per_gpu_hour` or both"
        message = f"offer `{row.name}` has no price"
        tables.wrong(("rent", at), message, hint, "missing-key")
    if row.name in pools:
        message = f"offer `{row.name}` has the name of a pool"
        tables.wrong(("rent", at, "name"), message, "give it another name", "duplicate-name")


def _check_part(
    tables: FileTables, path: tuple[str | int, ...], name: str, catalogue: Catalogue
) -> None:
    if catalogue.accelerators.find(name) is None:
        hint = catalogue.accelerators.hint(name)
        tables.wrong(path, f"unknown accelerator `{name}`", hint, "unknown-accelerator")
