"""Price catalogues: what makes a price fact, what is left out, and that nothing is lost."""

import gzip
from pathlib import Path

import msgspec
import polars as pl
import pytest
import tomli
from msgspec.structs import replace

from tenfold.files.price_catalogue import PriceNotes, read_price_catalogue
from tenfold.files.price_toml import render_price_facts
from tenfold.model.catalogue import Shelf
from tenfold.model.errors import InputError
from tenfold.model.facility import PriceFact
from tenfold.model.hardware import Accelerator

ROOT = Path(__file__).parents[2]
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


SHELF = Shelf(
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


def test_a_fact_is_the_median_per_gpu_over_sizes_and_regions(tmp_path: Path):
    facts, notes = read(
        tmp_path,
        offer(count=1, ondemand=3),
        offer(count=8, ondemand=32, region="r2"),
        offer(count=2, ondemand=10, region="r2", zone="z2"),
    )
    fact = facts["acme/H100-80G-SXM/on-demand"]
    assert (fact.provider, fact.accelerator, fact.kind) == ("acme", "H100-80G-SXM", "on-demand")
    assert fact.usd_per_gpu_hour == 4
    assert (fact.usd_per_gpu_hour_min, fact.usd_per_gpu_hour_max) == (3, 5)
    assert (fact.offers, fact.regions) == (3, 2)
    assert dropped(notes) == {}


def test_on_demand_and_spot_are_facts_of_their_own(tmp_path: Path):
    facts, notes = read(tmp_path, offer(ondemand=4, spot=1.5))
    assert facts["acme/H100-80G-SXM/on-demand"].usd_per_gpu_hour == 4
    assert facts["acme/H100-80G-SXM/spot"].usd_per_gpu_hour == 1.5
    assert notes.offers_read == 2


def test_spellings_of_one_accelerator_make_one_fact(tmp_path: Path):
    facts, _ = read(
        tmp_path, offer(gpu="H100", ondemand=2), offer(gpu="h100_sxm", ondemand=4, zone="z2")
    )
    assert list(facts) == ["acme/H100-80G-SXM/on-demand"]
    assert facts["acme/H100-80G-SXM/on-demand"].usd_per_gpu_hour == 3


def test_an_unknown_accelerator_is_counted_and_named(tmp_path: Path):
    facts, notes = read(
        tmp_path, offer(ondemand=3), offer(gpu="Z9", ondemand=1, spot=0.5), offer(gpu="Q", spot=1)
    )
    assert list(facts) == ["acme/H100-80G-SXM/on-demand"]
    assert notes.unresolved == {"Q": 1, "Z9": 2}


def test_prices_are_rounded_to_four_decimals(tmp_path: Path):
    facts, _ = read(tmp_path, offer(count=3, ondemand=10))
    assert facts["acme/H100-80G-SXM/on-demand"].usd_per_gpu_hour == 3.3333


def test_the_order_of_offers_does_not_matter(tmp_path: Path):
    offers = [
        offer("b", ondemand=4, spot=2),
        offer("a", gpu="L4", ondemand=0.5),
        offer("a", ondemand=3, zone="z2"),
        offer("a", ondemand=3.5, spot=1),
    ]
    forward, _ = read(tmp_path, *offers)
    backward, _ = read(tmp_path, *offers[::-1])
    assert list(forward.items()) == list(backward.items())
    assert list(forward) == sorted(forward)


# The rules, one by one.


@pytest.mark.parametrize("row", [offer(gpu="", ondemand=3), offer(count=0, ondemand=3)])
def test_an_offer_without_accelerators_is_dropped(tmp_path: Path, row: str):
    facts, notes = read(tmp_path, row)
    assert facts == {}
    assert dropped(notes) == {"no-accelerator": 1}


@pytest.mark.parametrize("count", ["", "-1", "NaN", "inf"])
def test_a_count_that_is_no_count_is_dropped(tmp_path: Path, count: str):
    _, notes = read(tmp_path, offer(count=count, ondemand=3))
    assert dropped(notes) == {"no-accelerator": 1}


def test_the_same_offer_counts_once(tmp_path: Path):
    facts, notes = read(
        tmp_path, offer(ondemand=3), offer(ondemand=3), offer(ondemand=5, zone="z2")
    )
    assert facts["acme/H100-80G-SXM/on-demand"].offers == 2
    assert dropped(notes) == {"duplicate": 1}


def test_bid_floors_are_no_prices(tmp_path: Path):
    facts, notes = read(tmp_path, offer("mithril", count=8, ondemand=8, spot=8), offer(ondemand=3))
    assert list(facts) == ["acme/H100-80G-SXM/on-demand"]
    assert dropped(notes) == {"bid-floor": 2}


@pytest.mark.parametrize("price", ["0", "-1", "NaN", "inf"])
def test_a_price_that_is_no_price_is_dropped(tmp_path: Path, price: str):
    facts, notes = read(tmp_path, offer(ondemand=price), offer(ondemand=3))
    assert facts["acme/H100-80G-SXM/on-demand"].offers == 1
    assert dropped(notes) == {"not-a-price": 1}


def test_an_empty_price_is_no_offer(tmp_path: Path):
    facts, notes = read(tmp_path, offer(ondemand=3, spot=""))
    assert notes.offers_read == 1
    assert list(facts) == ["acme/H100-80G-SXM/on-demand"]


def test_spot_above_on_demand_is_dropped_and_its_on_demand_price_stays(tmp_path: Path):
    facts, notes = read(tmp_path, offer(ondemand=3, spot=3.1), offer(ondemand=3, spot=1, zone="z2"))
    assert facts["acme/H100-80G-SXM/on-demand"].offers == 2
    assert facts["acme/H100-80G-SXM/spot"].offers == 1
    assert dropped(notes) == {"spot-above-on-demand": 1}


def test_rounding_does_not_put_spot_above_on_demand(tmp_path: Path):
    """AWS caps spot at on-demand and rounds the two differently."""
    facts, notes = read(
        tmp_path,
        offer(ondemand=27.43298, spot=27.433, count=8),
        offer(ondemand=27.43298, spot=10, count=8, zone="z2"),
    )
    assert facts["acme/H100-80G-SXM/spot"].offers == 2
    assert dropped(notes) == {}


def test_a_provider_whose_spot_column_repeats_on_demand_sells_no_spot(tmp_path: Path):
    facts, notes = read(
        tmp_path,
        offer("copier", ondemand=3, spot=3),
        offer("copier", ondemand=4, spot=4, zone="z2"),
        offer("seller", ondemand=3, spot=3),
        offer("seller", ondemand=3, spot=1, zone="z2"),
    )
    assert "copier/H100-80G-SXM/spot" not in facts
    assert facts["copier/H100-80G-SXM/on-demand"].offers == 2
    assert facts["seller/H100-80G-SXM/spot"].offers == 2
    assert dropped(notes) == {"no-spot-discount": 2}


def test_spot_offers_without_an_on_demand_price_stay(tmp_path: Path):
    facts, notes = read(tmp_path, offer(spot=1))
    assert facts["acme/H100-80G-SXM/spot"].usd_per_gpu_hour == 1
    assert dropped(notes) == {}


@pytest.mark.parametrize("price", [0.29, 31])
def test_ten_times_off_the_median_over_providers_is_implausible(tmp_path: Path, price: float):
    facts, notes = read(
        tmp_path,
        offer("a", ondemand=3),
        offer("b", ondemand=3),
        offer("c", ondemand=price),
    )
    assert "c/H100-80G-SXM/on-demand" not in facts
    assert dropped(notes) == {"implausible": 1}


def test_a_cheap_and_a_dear_provider_are_plausible(tmp_path: Path):
    facts, notes = read(
        tmp_path, offer("a", ondemand=0.31), offer("b", ondemand=3), offer("c", ondemand=29)
    )
    assert len(facts) == 3
    assert dropped(notes) == {}


def test_many_offers_of_one_provider_do_not_move_the_plausible_band(tmp_path: Path):
    flood = [offer("flood", ondemand=0.1, zone=f"z{number}") for number in range(50)]
    facts, notes = read(tmp_path, *flood, offer("a", ondemand=3), offer("b", ondemand=3.5))
    assert set(facts) == {"a/H100-80G-SXM/on-demand", "b/H100-80G-SXM/on-demand"}
    assert dropped(notes) == {"implausible": 50}


def test_one_price_for_every_size_stands_for_no_price(tmp_path: Path):
    facts, notes = read(
        tmp_path,
        *(offer(count=count, ondemand=700) for count in (1, 2, 4)),
        *(offer(count=count, ondemand=3 * count, region="r2") for count in (1, 2, 4)),
        *(offer(count=count, ondemand=6, region="r3") for count in (1, 2)),
    )
    fact = facts["acme/H100-80G-SXM/on-demand"]
    assert (fact.offers, fact.regions) == (5, 2)
    assert dropped(notes) == {"flat-price": 3}


def test_an_a100_of_the_catalogue_has_40_gb(tmp_path: Path):
    """People mean either part by `A100`; the catalogue has `A100-80GB` for the other."""
    facts, _ = read(tmp_path, offer(gpu="A100", ondemand=2))
    assert list(facts) == ["acme/A100-40G-SXM/on-demand"]


def test_an_rtx6000_of_nebius_is_the_blackwell_part(tmp_path: Path):
    facts, _ = read(
        tmp_path, offer(gpu="RTX6000", ondemand=1), offer("nebius", gpu="RTX6000", ondemand=2)
    )
    assert list(facts) == ["acme/Quadro-RTX-6000/on-demand", "nebius/RTX-PRO-6000-SE/on-demand"]


# GCP prices an accelerator without its host.

HOSTS = (
    "a3-highgpu-8g,208,1872,r1,r1-a,10,4",
    "a3-highgpu-8g,208,1872,r1,r1-b,10,4",
    "a3-highgpu-8g,208,1872,r3,r3-a,NaN,-1",
    "a3-highgpu-1g,26,234,r1,r1-a,1.5,0.5",
    "g2-standard-4,4,16,r1,r1-a,0,0",
)


def gcp(**columns: object) -> str:
    return offer("gcp", **{"instance": "", **columns})


def test_a_gcp_price_gets_the_host_of_its_count_and_region(tmp_path: Path):
    facts, notes = read(tmp_path, gcp(count=8, ondemand=80, spot=36), hosts=HOSTS)
    assert facts["gcp/H100-80G-SXM/on-demand"].usd_per_gpu_hour == 90 / 8
    assert facts["gcp/H100-80G-SXM/spot"].usd_per_gpu_hour == 40 / 8
    assert dropped(notes) == {}


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(gcp(count=8, ondemand=80, region="r2"), id="no host in the region"),
        pytest.param(gcp(count=4, ondemand=40), id="no host of the size"),
        pytest.param(gcp(count=8, ondemand=80, region="r3"), id="host price is no price"),
        pytest.param(gcp(gpu="H100-SXM", count=8, ondemand=80), id="no machine type known"),
    ],
)
def test_a_gcp_price_without_a_host_is_dropped(tmp_path: Path, row: str):
    facts, notes = read(tmp_path, row, hosts=HOSTS)
    assert facts == {}
    assert dropped(notes) == {"host-unknown": 1}


def test_gcp_prices_are_dropped_where_no_host_file_is_given(tmp_path: Path):
    facts, notes = read(tmp_path, gcp(count=8, ondemand=80), offer(ondemand=3))
    assert list(facts) == ["acme/H100-80G-SXM/on-demand"]
    assert dropped(notes) == {"host-unknown": 1}


def test_a_gcp_host_at_zero_is_billed_with_its_accelerators(tmp_path: Path):
    facts, _ = read(tmp_path, gcp(gpu="L4", ondemand=0.7), hosts=HOSTS)
    assert facts["gcp/L4/on-demand"].usd_per_gpu_hour == 0.7


def test_a_gcp_row_that_names_its_machine_has_the_host_in_its_price(tmp_path: Path):
    facts, _ = read(tmp_path, gcp(count=8, ondemand=88, instance="a3-highgpu-8g"), hosts=HOSTS)
    assert facts["gcp/H100-80G-SXM/on-demand"].usd_per_gpu_hour == 11


def test_a_tpu_slice_is_priced_by_the_chip_and_has_its_host(tmp_path: Path):
    """A v5p slice is named by its cores, two on a chip; a v6e slice by its chips."""
    facts, notes = read(
        tmp_path, gcp(gpu="tpu-v5p-128", ondemand=272), gcp(gpu="tpu-v6e-4", ondemand=10.8)
    )
    assert facts["gcp/TPU-v5p/on-demand"].usd_per_gpu_hour == 4.25
    assert facts["gcp/TPU-v6e/on-demand"].usd_per_gpu_hour == 2.7
    assert dropped(notes) == {}


def test_an_unknown_tpu_is_reported_by_its_generation(tmp_path: Path):
    _, notes = read(
        tmp_path, gcp(gpu="tpu-v3-8", ondemand=8), gcp(gpu="tpu-v3-32", ondemand=32, zone="z2")
    )
    assert notes.unresolved == {"tpu-v3": 2}


# Files.


def test_csv_gzip_and_parquet_read_alike(tmp_path: Path):
    text = "\n".join((HEADER, offer(ondemand=3, spot=1), offer("b", ondemand=4)))
    (tmp_path / "prices.csv").write_text(text)
    (tmp_path / "prices.csv.gz").write_bytes(gzip.compress(text.encode()))
    pl.read_csv(tmp_path / "prices.csv").write_parquet(tmp_path / "prices.parquet")
    plain, zipped, parquet = (
        read_price_catalogue(tmp_path / name, SHELF, source="test", date="2026-01")
        for name in ("prices.csv", "prices.csv.gz", "prices.parquet")
    )
    assert plain == zipped == parquet
    assert len(plain[0]) == 3


def test_an_empty_catalogue_makes_no_facts(tmp_path: Path):
    facts, notes = read(tmp_path)
    assert facts == {}
    assert notes.offers_read == 0


def refusal(path: Path, hosts: Path | None = None) -> InputError:
    with pytest.raises(InputError) as caught:
        read_price_catalogue(path, SHELF, source="test", date="2026-01", hosts=hosts)
    assert caught.value.hint
    assert "\n" not in caught.value.message
    return caught.value


def test_a_missing_column_is_named_with_its_file(tmp_path: Path):
    path = tmp_path / "prices.csv"
    path.write_text(f"{HEADER.replace(',spot_usd_h', '')}\n")
    error = refusal(path)
    assert (error.code, error.field, error.file) == ("missing-column", "spot_usd_h", str(path))
    assert "spot_usd_h" in error.message


def test_a_price_in_words_is_named_with_its_line(tmp_path: Path):
    path = tmp_path / "prices.csv"
    path.write_text("\n".join((HEADER, offer(ondemand=3), offer(ondemand="on request"))))
    error = refusal(path)
    assert (error.code, error.field, error.line) == ("not-a-number", "ondemand_usd_h", 3)
    assert "on request" in error.message


def test_a_parquet_column_of_the_wrong_kind_is_named(tmp_path: Path):
    path = tmp_path / "prices.parquet"
    columns: dict[str, list[object]] = {name: ["x"] for name in HEADER.split(",")}
    columns |= {"accelerator_count": [1.0], "ondemand_usd_h": [[3.0]], "spot_usd_h": [None]}
    pl.DataFrame(columns).write_parquet(path)
    assert refusal(path).field == "ondemand_usd_h"


def test_a_host_file_is_checked_too(tmp_path: Path):
    catalogue = tmp_path / "prices.csv"
    catalogue.write_text(f"{HEADER}\n{offer(ondemand=3)}\n")
    hosts = tmp_path / "hosts.csv"
    hosts.write_text("InstanceType,Region,Price\na3-highgpu-8g,r1,10\n")
    error = refusal(catalogue, hosts)
    assert (error.field, error.file) == ("SpotPrice", str(hosts))


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("prices.xlsx", b"", "unknown-suffix"),
        ("prices.csv", b"", "unreadable-table"),
        ("prices.csv", b"\xff\xfe\x00\x01" * 9, "missing-column"),
        (
            "prices.csv",
            HEADER.encode() + b"\nacme,v8,r,z,i,\xff\xff,1,1,1,1,1\n",
            "unreadable-table",
        ),
        ("prices.csv", HEADER.encode() + b"\n" + b"1," * 40 + b"\n", "unreadable-table"),
        ("prices.csv.gz", b"not gzip", "unreadable-table"),
        ("prices.csv.gz", gzip.compress(HEADER.encode() * 99)[:-20], "unreadable-table"),
        ("prices.parquet", b"PAR1 broken PAR1", "unreadable-table"),
    ],
)
def test_a_broken_file_is_refused_in_one_sentence(
    tmp_path: Path, name: str, content: bytes, code: str
):
    path = tmp_path / name
    path.write_bytes(content)
    error = refusal(path)
    assert (error.code, error.file) == (code, str(path))


def test_a_missing_file_and_a_directory_are_refused(tmp_path: Path):
    (tmp_path / "folder.csv").mkdir()
    assert refusal(tmp_path / "none.csv").code == "no-such-file"
    assert refusal(tmp_path / "folder.csv").code == "is-a-directory"


def test_a_gzip_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "prices.csv.gz"
    path.write_bytes(gzip.compress(HEADER.encode() + b"\n" * 2_000))
    monkeypatch.setattr("tenfold.files.price_tables.SIZE_MAX_BYTES", 1_000)
    assert refusal(path).code == "file-too-large"


def test_rendered_facts_read_back_as_they_were(tmp_path: Path):
    facts, _ = read(tmp_path, offer(ondemand=3, spot=1), offer("b", ondemand=1 / 3))
    rows = [
        *facts.values(),
        *(replace(fact, provider='a"cme\\ \x7f\t\u00e9') for fact in facts.values()),
    ]
    text = render_price_facts(rows)
    assert msgspec.convert(tomli.loads(text)["price"], list[PriceFact]) == rows
    assert text == render_price_facts(rows)


# The real catalogue.


@pytest.fixture(scope="module")
def real() -> tuple[list[PriceFact], PriceNotes]:
    catalogue = SHARED_PRICES / "accelerator_prices_2026-08-22.csv.gz"
    if not catalogue.exists():
        pytest.skip(f"the real catalogue is not here: {catalogue}")
    rows = tomli.loads((FACTS / "accelerators.toml").read_text())["accelerator"]
    accelerators = msgspec.convert(rows, list[Accelerator])
    return read_price_catalogue(
        catalogue,
        Shelf("accelerator", {fact.name: fact for fact in accelerators}),
        source=SOURCE,
        date=DATE,
        hosts=SHARED_PRICES / "gcp_accelerator_host_vms_2026-08-22.csv",
    )


@pytest.mark.parametrize(
    ("provider", "kind", "usd"),
    [
        ("lambda", "on-demand", 4.09),
        ("nebius", "on-demand", 3.85),
        ("nebius", "spot", 2.15),
        ("aws", "on-demand", 7.36),
        ("aws", "spot", 2.63),
        ("oci", "on-demand", 10.00),
        ("azure", "on-demand", 6.98),
        ("do", "on-demand", 6.35),
        ("verda", "on-demand", 3.25),
        ("verda", "spot", 1.62),
        ("primeintellect", "on-demand", 1.99),
        ("vast", "on-demand", 1.87),
    ],
)
def test_known_medians_of_the_h100(
    real: tuple[list[PriceFact], PriceNotes], provider: str, kind: str, usd: float
):
    facts = {fact.name: fact for fact in real[0]}
    fact = facts[f"{provider}/H100-80G-SXM/{kind}"]
    assert fact.usd_per_gpu_hour == pytest.approx(usd, abs=0.0051)


def test_gcp_h100_has_its_host_in_the_price(real: tuple[list[PriceFact], PriceNotes]):
    """The catalogue's own median, 11.10 (spot 5.05), is that of the accelerator alone."""
    facts = {fact.name: fact for fact in real[0]}
    ondemand = facts["gcp/H100-80G-SXM/on-demand"]
    assert ondemand.usd_per_gpu_hour == pytest.approx(12.69, abs=0.0051)
    # The cheapest region is us-central1: 9.7966 for the GPU and 1.1825 for its eighth of a host.
    assert ondemand.usd_per_gpu_hour_min == pytest.approx(9.7966 + 1.1825, abs=0.0001)
    assert facts["gcp/H100-80G-SXM/spot"].usd_per_gpu_hour == pytest.approx(5.72, abs=0.0051)


def test_shipped_prices_are_what_the_reader_makes(real: tuple[list[PriceFact], PriceNotes]):
    facts, notes = real
    assert (FACTS / "prices.toml").read_text() == render_price_facts(facts)
    assert notes.offers_read == notes.offers_used + sum(notes.dropped.values()) + sum(
        notes.unresolved.values()
    )


def test_shipped_prices_are_ascii_and_name_shipped_accelerators():
    text = (FACTS / "prices.toml").read_text()
    facts = msgspec.convert(tomli.loads(text)["price"], list[PriceFact])
    shipped = tomli.loads((FACTS / "accelerators.toml").read_text())["accelerator"]
    assert text.isascii()
    assert {fact.accelerator for fact in facts} <= {row["name"] for row in shipped}
    assert len({fact.name for fact in facts}) == len(facts) > 50
