"""Catalogues in any layout become the same offers, and what is no offer is left out."""

import json
from pathlib import Path

import pytest

from price_builders import SHARED_PRICES
from tenfold.compose.fleet import load_facts
from tenfold.files.prices.offers import OfferNotes, country_of, read_offers
from tenfold.model.errors import InputError
from tenfold.model.market.offer import Offer

CATALOGUE = load_facts()
SKYPILOT = """\
InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Price,SpotPrice,Region,AvailabilityZone
p5.48xlarge,192,2048,H100,8,{},55.04,20.8,eu-west-2,euw2-az1
m7i.large,2,8,,,,0.1,0.04,eu-west-2,euw2-az1
"""
GPUHUNT = """\
instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size
a100x8,eu-central-1,14.4,96,900,8,A100,40,False,
a100x8,eu-central-1,6.4,96,900,8,A100,80,True,
cpu,eu-central-1,1,8,32,0,,,False,
"""
PLAIN = """\
provider,region,country,accelerator,gpus,kind,usd_per_hour,usd_per_gpu_hour,trust,egress_usd_per_gb
acme,hall-1,de,H100,8,on-demand,20,,certified,0.01
acme,hall-1,de,H100,,on-demand,,2.75,,
"""


def read(tmp_path: Path, name: str, text: str) -> tuple[list[Offer], OfferNotes]:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return read_offers([path], CATALOGUE.accelerators, CATALOGUE.providers)


@pytest.mark.parametrize("name", ["aws.csv", "aws/vms.csv"])
def test_a_skypilot_catalogue_is_named_after_its_provider(tmp_path: Path, name: str):
    offers, notes = read(tmp_path, name, SKYPILOT)
    assert [(one.kind, one.usd_per_gpu_hour) for one in offers] == [
        ("on-demand", 6.88),
        ("spot", 2.6),
    ]
    first = offers[0]
    assert (first.provider, first.accelerator, first.gpus) == ("aws", "H100-80G-SXM", 8)
    assert (first.instance, first.zone, first.country) == ("p5.48xlarge", "euw2-az1", "GB")
    assert list(notes.files.values()) == ["skypilot"]


def test_a_gpuhunt_row_is_one_kind_and_its_memory_tells_the_part(tmp_path: Path):
    offers, _ = read(tmp_path, "aws.csv", GPUHUNT)
    assert [(one.accelerator, one.kind, one.usd_per_gpu_hour) for one in offers] == [
        ("A100-40G-SXM", "on-demand", 1.8),
        ("A100-80G-SXM", "spot", 0.8),
    ]
    assert offers[0].country == "DE"


def test_gpuhunt_json_gives_the_offers_of_its_csv(tmp_path: Path):
    header, *rows = (line.split(",") for line in GPUHUNT.splitlines())
    objects = [
        {name: value or None for name, value in zip(header, row, strict=True)} for row in rows
    ]
    from_csv, _ = read(tmp_path, "aws.csv", GPUHUNT)
    assert read(tmp_path, "aws.json", json.dumps(objects))[0] == from_csv
    assert read(tmp_path, "aws.json", json.dumps({"items": objects}))[0] == from_csv


def test_a_plain_price_is_of_the_instance_or_of_one_gpu(tmp_path: Path):
    offers, _ = read(tmp_path, "own.csv", PLAIN)
    whole, single = offers
    assert (whole.usd_per_gpu_hour, whole.any_size) == (2.5, False)
    assert (single.usd_per_gpu_hour, single.any_size) == (2.75, True)
    assert (whole.country, whole.trust, whole.egress_usd_per_gb) == ("DE", "certified", 0.01)
    assert (single.trust, single.egress_usd_per_gb) == (None, None)


@pytest.mark.parametrize(
    ("row", "code", "column"),
    [
        ("acme,H100,8,on-demand,20,2.5", "bad-price-row", "usd_per_gpu_hour"),
        ("acme,H100,8,on-demand,,", "bad-price-row", "usd_per_gpu_hour"),
        ("acme,H100,8,weekly,20,", "bad-price-row", "kind"),
        ("acme,H100,8,on-demand,cheap,", "not-a-number", "usd_per_hour"),
    ],
)
def test_a_bad_plain_row_is_named_with_its_line(tmp_path: Path, row: str, code: str, column: str):
    text = f"provider,accelerator,gpus,kind,usd_per_hour,usd_per_gpu_hour\n{row}\n"
    with pytest.raises(InputError) as found:
        read(tmp_path, "own.csv", text)
    assert (found.value.code, found.value.line, found.value.field) == (code, 2, column)


def test_a_table_that_is_no_catalogue_is_refused_with_its_columns(tmp_path: Path):
    with pytest.raises(InputError, match="its columns are name, cost") as found:
        read(tmp_path, "own.csv", "name,cost\na,1\n")
    assert found.value.code == "unknown-layout"


def test_a_price_per_gpu_in_a_column_of_instances_is_dropped(tmp_path: Path):
    rows = [f"p{at},H100,8,{16 + at}" for at in range(5)]
    text = "\n".join(["provider,accelerator,gpus,usd_per_hour", *rows, "wrong,H100,8,2.1"])
    offers, notes = read(tmp_path, "own.csv", text)
    assert "wrong" not in {one.provider for one in offers}
    assert notes.dropped["per-gpu-price"] == 1
    assert len(offers) == 5


@pytest.mark.parametrize(
    ("provider", "region", "country"),
    [
        ("aws", "eu-west-2", "GB"),
        ("aws", "us-east-1", "US"),
        ("aws", "eu-moon-1", ""),
        ("vast", "Bulgaria, BG, EU", "BG"),
        ("vast", ", CA, NA", "CA"),
        ("hyperstack", "NORWAY-1", "NO"),
        ("hyperstack", "US-1", "US"),
        ("shadeform", "kansascity-usa-1", "US"),
        ("runpod", "CZ", "CZ"),
        ("gcp", "europe-west6", "CH"),
    ],
)
def test_a_country_is_only_said_where_the_region_tells_it(provider: str, region: str, country: str):
    assert country_of(provider, region, CATALOGUE.providers) == country


def test_the_public_catalogue_becomes_offers_of_over_20_providers():
    path = SHARED_PRICES / "accelerator_prices_2026-08-22.csv.gz"
    if not path.exists():
        pytest.skip("no shared data")
    hosts = SHARED_PRICES / "gcp_accelerator_host_vms_2026-08-22.csv"
    offers, notes = read_offers([path], CATALOGUE.accelerators, CATALOGUE.providers, hosts=hosts)
    unresolved = sum(notes.unresolved.values())
    assert notes.offers_read == len(offers) + sum(notes.dropped.values()) + unresolved
    assert len({one.provider for one in offers}) == 23
    assert sum(not one.country for one in offers) / len(offers) < 0.01


def test_headers_kinds_and_providers_come_in_any_case(tmp_path: Path):
    lower = "provider,accelerator,region,kind,usd_per_gpu_hour\n"
    rows = "AWS,H100,eu-west-2,On-Demand,$6.88\naws,H100,eu-west-2,Spot,2.6\n"
    offers, _ = read(tmp_path, "mine.csv", lower + rows)
    assert [(one.provider, one.kind, one.usd_per_gpu_hour) for one in offers] == [
        ("aws", "on-demand", 6.88),
        ("aws", "spot", 2.6),
    ]
    assert {one.country for one in offers} == {"GB"}
    assert read(tmp_path, "mine.csv", lower.title() + rows)[0] == offers
    skypilot = read(tmp_path, "aws.csv", SKYPILOT)[0]
    header, _, body = SKYPILOT.partition("\n")
    assert read(tmp_path, "aws.csv", f"{header.upper()}\n{body}")[0] == skypilot
