"""The layouts of price catalogues: which columns they have, and their rows as listed prices.

flat      one table of all providers, as facts are computed from:
          cloud, region, zone, instance, accelerator, accelerator_count, ondemand_usd_h, spot_usd_h
skypilot  a catalogue of one provider, prices per instance: InstanceType, AcceleratorName,
          AcceleratorCount, Price, SpotPrice, Region, AvailabilityZone
gpuhunt   CSV or JSON, prices per instance, one row for each kind: instance_name, location, price,
          gpu_count, gpu_name, gpu_memory, spot, provider
plain     your own: provider, accelerator, and usd_per_gpu_hour or usd_per_hour (of the instance);
          see `PLAIN_TEXT` and `PLAIN_NUMBERS` for the others

A catalogue of one provider is named after it: `aws.csv`, or `aws/vms.csv`.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tenfold.files.prices.rules import ListedPrice, OwnTerms, listed_prices
from tenfold.files.prices.tables import Columns, PriceTable, read_columns, table_of
from tenfold.model.errors import InputError
from tenfold.model.facts.catalogue import FactTable
from tenfold.model.fleet.facility import PriceKind
from tenfold.model.fleet.hardware import Accelerator
from tenfold.model.market.offer import TRUST

LayoutName = Literal["flat", "skypilot", "gpuhunt", "plain"]

FLAT_TEXT = ("cloud", "region", "zone", "instance", "accelerator")
FLAT_NUMBERS = ("accelerator_count", "ondemand_usd_h", "spot_usd_h")
SKYPILOT_TEXT = ("InstanceType", "AcceleratorName", "Region")
SKYPILOT_NUMBERS = ("AcceleratorCount", "Price")
GPUHUNT_TEXT = ("instance_name", "location", "gpu_name", "spot")
GPUHUNT_NUMBERS = ("price", "gpu_count", "gpu_memory")
PLAIN_TEXT = ("provider", "accelerator", "region", "zone", "instance", "kind", "country", "trust")
PLAIN_NUMBERS = (
    "gpus",
    "usd_per_gpu_hour",
    "usd_per_hour",
    "egress_usd_per_gb",
    "startup_s",
    "availability",
)
PLAIN_LEAST = ("provider", "accelerator")
NEEDED: Mapping[LayoutName, tuple[str, ...]] = {
    "flat": (*FLAT_TEXT, *FLAT_NUMBERS),
    "skypilot": (*SKYPILOT_TEXT, *SKYPILOT_NUMBERS),
    "gpuhunt": (*GPUHUNT_TEXT, *GPUHUNT_NUMBERS),
    "plain": PLAIN_LEAST,
}
OPTIONAL: Mapping[LayoutName, tuple[str, ...]] = {
    "flat": (),
    "skypilot": ("AvailabilityZone", "SpotPrice"),
    "gpuhunt": ("provider",),
    "plain": tuple(one for one in (*PLAIN_TEXT, *PLAIN_NUMBERS) if one not in PLAIN_LEAST),
}
KINDS: tuple[PriceKind, ...] = ("on-demand", "spot", "reserved", "owned")
FILES_OF_ANY_PROVIDER = ("vms", "catalog", "catalogue", "instances", "prices", "offers")
"""File names that do not say which provider a catalogue is of; their folder does."""


class ListedCatalogue(Struct, frozen=True, kw_only=True):
    """The prices that a catalogue lists, as they stand in it."""

    file: str
    layout: LayoutName
    prices: list[ListedPrice]


def read_listed_prices(
    path: Path, accelerators: FactTable[Accelerator], provider: str | None = None
) -> ListedCatalogue:
    """Return the prices of a catalogue in any known layout."""
    columns = read_columns(path)
    layout = _layout_of(columns, path)
    columns = {_known(layout, name): values for name, values in columns.items()}
    source = _Source(path, columns, provider or _provider_of(path), accelerators)
    # `GCP` and `gcp` are one provider, to which the same rules and terms apply.
    prices = [replace(one, provider=one.provider.casefold()) for one in _READERS[layout](source)]
    return ListedCatalogue(file=str(path), layout=layout, prices=prices)


class _Source(Struct, frozen=True):
    """A file, its columns, and what its rows do not say."""

    path: Path
    columns: Columns
    provider: str
    accelerators: FactTable[Accelerator]

    def table(
        self, text: Sequence[str], numbers: Sequence[str], optional: Sequence[str] = ()
    ) -> PriceTable:
        """Return columns; the optional ones are empty where the file has none of that name."""
        rows = len(next(iter(self.columns.values()), ()))
        blank: dict[str, Sequence[object]] = {
            name: [None] * rows for name in optional if name not in self.columns
        }
        return table_of(self.path, {**self.columns, **blank}, text, numbers)


def _layout_of(columns: Columns, path: Path) -> LayoutName:
    given = {name.casefold() for name in columns}
    missing: dict[LayoutName, list[str]] = {
        layout: [name for name in names if name.casefold() not in given]
        for layout, names in NEEDED.items()
    }
    for layout, names in missing.items():
        if not names:
            return layout
    nearest = min(missing, key=lambda layout: len(missing[layout]) / len(NEEDED[layout]))
    if 2 * len(missing[nearest]) < len(NEEDED[nearest]):
        lacks = missing[nearest][0]
        raise InputError(
            "missing-column",
            f"`{path}` has the layout `{nearest}` of a price catalogue, but no column `{lacks}`",
            f"columns of this layout: {', '.join(NEEDED[nearest])}",
            file=str(path),
            field=lacks,
        )
    raise InputError(
        "unknown-layout",
        f"`{path}` is not a price catalogue: its columns are {', '.join(columns) or 'none'}",
        "use the layout of SkyPilot or gpuhunt, or a table with the columns provider, "
        "accelerator, gpus and usd_per_gpu_hour",
        file=str(path),
    )


def _known(layout: LayoutName, name: str) -> str:
    """Return a column's name as the layout spells it: headers come in any case."""
    names = (*NEEDED[layout], *OPTIONAL[layout])
    return next((one for one in names if one.casefold() == name.casefold()), name)


def _provider_of(path: Path) -> str:
    stem = path.name.split(".")[0]
    return path.absolute().parent.name if stem in FILES_OF_ANY_PROVIDER else stem


def _flat(source: _Source) -> list[ListedPrice]:
    return listed_prices(source.table(FLAT_TEXT, FLAT_NUMBERS))


def _skypilot(source: _Source) -> list[ListedPrice]:
    rows = source.table(
        (*SKYPILOT_TEXT, "AvailabilityZone"),
        (*SKYPILOT_NUMBERS, "SpotPrice"),
        OPTIONAL["skypilot"],
    )
    texts, numbers = rows.texts, rows.numbers
    flat = PriceTable(
        {
            "cloud": [source.provider] * len(texts["Region"]),
            "region": texts["Region"],
            "zone": texts["AvailabilityZone"],
            "instance": texts["InstanceType"],
            "accelerator": texts["AcceleratorName"],
        },
        {
            "accelerator_count": numbers["AcceleratorCount"],
            "ondemand_usd_h": numbers["Price"],
            "spot_usd_h": numbers["SpotPrice"],
        },
    )
    # Rows of machines without accelerators are not offers.
    return [one for one in listed_prices(flat) if one.spelling]


def _gpuhunt(source: _Source) -> list[ListedPrice]:
    rows = source.table((*GPUHUNT_TEXT, "provider"), GPUHUNT_NUMBERS, OPTIONAL["gpuhunt"])
    texts, numbers = rows.texts, rows.numbers
    found: list[ListedPrice] = []
    for at, spot in enumerate(texts["spot"]):
        count, price = numbers["gpu_count"][at] or 0.0, numbers["price"][at]
        if price is None or not count:
            continue
        if spot.casefold() not in ("true", "false"):
            raise _wrong(source, at, "spot", spot, "write True or False")
        is_spot = spot.casefold() == "true"
        memory_gib = numbers["gpu_memory"][at]
        found.append(
            ListedPrice(
                provider=texts["provider"][at] or source.provider,
                region=texts["location"][at],
                zone="",
                instance=texts["instance_name"][at],
                spelling=_with_memory(texts["gpu_name"][at], memory_gib, source.accelerators),
                count=count,
                kind="spot" if is_spot else "on-demand",
                usd_h=price,
                ondemand_usd_h=None if is_spot else price,
            )
        )
    return found


def _with_memory(name: str, memory_gib: float | None, accelerators: FactTable[Accelerator]) -> str:
    """Return a name with its memory where the facts know it so: an A100 has 40 or 80 GB."""
    longer = f"{name}-{memory_gib:g}GB" if memory_gib else name
    return longer if accelerators.find(longer) is not None else name


def _plain(source: _Source) -> list[ListedPrice]:
    if not {"usd_per_gpu_hour", "usd_per_hour"} & set(source.columns):
        raise InputError(
            "missing-column",
            f"`{source.path}` has no price",
            "add the column `usd_per_gpu_hour`, or `usd_per_hour` for prices of whole instances",
            file=str(source.path),
            field="usd_per_gpu_hour",
        )
    rows = source.table(PLAIN_TEXT, PLAIN_NUMBERS, OPTIONAL["plain"])
    return [_plain_row(source, rows, at) for at in range(len(rows.texts["provider"]))]


def _plain_row(source: _Source, rows: PriceTable, at: int) -> ListedPrice:
    text = {name: values[at] for name, values in rows.texts.items()}
    number = {name: values[at] for name, values in rows.numbers.items()}
    count = 1.0 if number["gpus"] is None else number["gpus"]
    kind = _kind(text["kind"])
    if kind is None:
        raise _wrong(source, at, "kind", text["kind"], f"write one of {', '.join(KINDS)}")
    if text["trust"] and text["trust"] not in TRUST:
        raise _wrong(source, at, "trust", text["trust"], f"write one of {', '.join(TRUST)}")
    whole, each = number["usd_per_hour"], number["usd_per_gpu_hour"]
    if (whole is None) == (each is None):
        said = "two prices" if each is not None else "no price"
        raise _wrong(source, at, "usd_per_gpu_hour", said, "give one of the two prices")
    price = whole if each is None else each * count
    assert price is not None, "one of the two was given"
    return ListedPrice(
        provider=text["provider"],
        region=text["region"],
        zone=text["zone"],
        instance=text["instance"],
        spelling=text["accelerator"],
        count=count,
        kind=kind,
        usd_h=price,
        ondemand_usd_h=price if kind == "on-demand" else None,
        own_terms=OwnTerms(
            any_size=number["gpus"] is None,
            country=text["country"].upper(),
            trust=text["trust"] or None,  # pyright: ignore[reportArgumentType]
            egress_usd_per_gb=number["egress_usd_per_gb"],
            startup_s=number["startup_s"],
            availability=number["availability"],
        ),
    )


def _kind(text: str) -> PriceKind | None:
    """Return a kind in any case, also as `OnDemand` or `on_demand`."""
    plain = text.casefold().replace("_", "").replace("-", "").replace(" ", "") or "ondemand"
    return next((one for one in KINDS if one.replace("-", "") == plain), None)


def _wrong(source: _Source, at: int, column: str, value: str, hint: str) -> InputError:
    # Row 0 is on line 2, under the header; Parquet and JSON have no lines.
    line = at + 2 if source.path.name.endswith((".csv", ".csv.gz")) else None
    return InputError(
        "bad-price-row",
        f"row {at + 1} of `{source.path}` has {value or 'nothing'} in `{column}`",
        hint,
        file=str(source.path),
        line=line,
        field=column,
    )


_READERS: Mapping[LayoutName, Callable[[_Source], list[ListedPrice]]] = {
    "flat": _flat,
    "skypilot": _skypilot,
    "gpuhunt": _gpuhunt,
    "plain": _plain,
}
