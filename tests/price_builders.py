"""Small price catalogues in the public format, for tests."""

from pathlib import Path

from tenfold.files.prices.skypilot import PriceNotes, read_price_catalogue
from tenfold.model.facts.catalogue import FactTable
from tenfold.model.fleet.facility import PriceFact
from tenfold.model.fleet.hardware import Accelerator

ROOT = Path(__file__).parents[1]
SHARED_PRICES = ROOT.parent / "shared" / "data" / "prices"
FACTS = ROOT / "src" / "tenfold" / "facts" / "data"
SOURCE = "skypilot-org/skypilot-catalog@f2624ac, medians over offers"
DATE = "2026-08-22"

HEADER = (
    "cloud,catalog_version,region,zone,instance,accelerator,accelerator_count,"
    "vcpus,mem_gib,ondemand_usd_h,spot_usd_h"
)
HOST_HEADER = "InstanceType,vCPUs,MemoryGiB,Region,AvailabilityZone,Price,SpotPrice"


def accelerator(name: str, *aliases: str) -> Accelerator:
    return Accelerator(
        name=name,
        aliases=aliases,
        source="test",
        date="2026-01",
        evidence="assumption",
        vendor="test",
        runtime="test",
        memory_gib=80,
        memory_tb_per_s=3,
    )


SHELF = FactTable(
    "accelerator",
    {
        fact.name: fact
        for fact in (
            accelerator("H100-80G-SXM", "H100", "H100-SXM"),
            accelerator("L4"),
            accelerator("A100-80G-SXM", "A100"),
            accelerator("A100-40G-SXM", "A100-40GB"),
            accelerator("RTX-PRO-6000-SE", "RTX-PRO-6000"),
            accelerator("Quadro-RTX-6000", "RTX6000"),
            accelerator("TPU-v5p"),
            accelerator("TPU-v6e"),
        )
    },
)


def offer(
    cloud: str = "acme",
    *,
    gpu: str = "H100",
    count: object = 1,
    ondemand: object = "",
    spot: object = "",
    region: str = "r1",
    zone: str = "z1",
    instance: str = "box",
) -> str:
    return f"{cloud},v8,{region},{zone},{instance},{gpu},{count},8,64,{ondemand},{spot}"


def read(
    folder: Path, *offers: str, hosts: tuple[str, ...] | None = None
) -> tuple[dict[str, PriceFact], PriceNotes]:
    catalogue = folder / "catalogue.csv"
    catalogue.write_text("\n".join((HEADER, *offers)) + "\n")
    host_file = None
    if hosts is not None:
        host_file = folder / "hosts.csv"
        host_file.write_text("\n".join((HOST_HEADER, *hosts)) + "\n")
    facts, notes = read_price_catalogue(
        catalogue, SHELF, source="test", date="2026-01", hosts=host_file
    )
    assert notes.offers_read == notes.offers_used + sum(notes.dropped.values()) + sum(
        notes.unresolved.values()
    ), "every offer is used, dropped by a rule or unresolved"
    return {fact.name: fact for fact in facts}, notes


def dropped(notes: PriceNotes) -> dict[str, int]:
    return {rule: count for rule, count in notes.dropped.items() if count}
