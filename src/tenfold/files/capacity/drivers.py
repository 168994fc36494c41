"""Read driver files: what each group knows about future demand, data and money."""

from collections.abc import Sequence
from pathlib import Path

from tenfold.files.capacity.tables import FileTables
from tenfold.model.capacity.drivers import KIND_GROUPS, Driver, DriverKind
from tenfold.model.errors import InputError
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.spec import FleetSpec

REQUIRED: dict[DriverKind, tuple[str, ...]] = {
    "training": ("model", "tokens"),
    "gpus": (),
    "service": ("model", "input_tokens", "output_tokens", "ttft_s", "tpot_s"),
    "dataset": ("tier",),
    "budget": (),
}
"""Keys that a kind of driver must state."""
OPTIONAL: dict[DriverKind, tuple[str, ...]] = {
    "training": ("gpus", "demand"),
    "gpus": ("demand",),
    "service": ("demand",),
    "dataset": ("passes_per_month",),
    "budget": (),
}
KEYS = tuple(
    dict.fromkeys(key for keys in (*REQUIRED.values(), *OPTIONAL.values()) for key in keys)
)


def read_drivers(
    paths: Sequence[Path], catalogue: Catalogue, fleet: FleetSpec
) -> tuple[Driver, ...]:
    """Return the drivers of all files, or raise with the errors of the first bad one."""
    found: dict[str, tuple[Driver, Path]] = {}
    for path in paths:
        tables = FileTables(path, ("driver",), "driver file")
        rows = tables.many("driver", Driver)
        tables.check_names("driver", {at: row.name for at, row in rows.items()})
        for at, row in rows.items():
            _check(tables, at, row, catalogue, fleet)
        tables.finish()
        for row in rows.values():
            if row.name in found:
                other = found[row.name][1]
                raise InputError(
                    "duplicate-name",
                    f"driver `{row.name}` is also in `{other}`",
                    "give each driver its own name",
                    file=str(path),
                )
            found[row.name] = (row, path)
    return tuple(driver for driver, _ in found.values())


def _check(
    tables: FileTables, at: int, row: Driver, catalogue: Catalogue, fleet: FleetSpec
) -> None:
    place = ("driver", at)
    for key in ("begins", "ends"):
        tables.check_day((*place, key), getattr(row, key))
    if row.group not in KIND_GROUPS[row.kind]:
        groups = " or ".join(f"`{name}`" for name in KIND_GROUPS[row.kind])
        message = f"driver `{row.name}` is of kind `{row.kind}`, but group `{row.group}`"
        tables.wrong((*place, "group"), message, f"set `group` to {groups}")
    for key in KEYS:
        stated = getattr(row, key) not in (None, "")
        if key in REQUIRED[row.kind] and not stated:
            message = f"driver `{row.name}` of kind `{row.kind}` has no `{key}`"
            tables.wrong(place, message, f"add `{key}`", "missing-key")
        if stated and key not in (*REQUIRED[row.kind], *OPTIONAL[row.kind]):
            message = f"`{key}` does nothing for a driver of kind `{row.kind}`"
            tables.wrong((*place, key), message, "leave it out", "unknown-key")
    if abs(sum(row.amount.chances) - 1) > 1e-6:
        total = sum(row.amount.chances)
        message = f"the chances of driver `{row.name}` add up to {total:g}"
        tables.wrong((*place, "amount"), message, "make them add up to 1")
    low, base, high = row.amount.values
    if not low <= base <= high:
        message = f"driver `{row.name}`: low, base and high do not increase"
        tables.wrong((*place, "amount"), message, "state low <= base <= high")
    if row.model and catalogue.models.find(row.model) is None:
        hint = catalogue.models.hint(row.model)
        tables.wrong((*place, "model"), f"unknown model `{row.model}`", hint, "unknown-model")
    tiers = [str(tier.id) for tier in fleet.tiers]
    if row.tier and row.tier not in tiers:
        known = ", ".join(f"`{name}`" for name in tiers) or "none"
        message = f"no tier `{row.tier}` in the fleet file"
        tables.wrong((*place, "tier"), message, f"declared tiers: {known}", "unknown-tier")
