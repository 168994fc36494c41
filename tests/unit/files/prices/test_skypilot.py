"""Catalogues as files: their formats, their faults, and the prices that ship."""

import gzip
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
import tomli
from msgspec.structs import replace
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from price_builders import (
    DATE,
    FACTS,
    HEADER,
    SHARED_PRICES,
    SHELF,
    SOURCE,
    offer,
    read,
)
from tenfold.files.prices.skypilot import PriceNotes, read_price_catalogue
from tenfold.files.prices.write import render_price_facts
from tenfold.model.errors import InputError
from tenfold.model.facts.catalogue import FactTable
from tenfold.model.fleet.facility import PriceFact
from tenfold.model.fleet.hardware import Accelerator


def test_csv_gzip_and_parquet_read_alike(tmp_path: Path):
    text = "\n".join((HEADER, offer(ondemand=3, spot=1), offer("b", ondemand=4)))
    (tmp_path / "prices.csv").write_text(text)
    (tmp_path / "prices.csv.gz").write_bytes(gzip.compress(text.encode()))
    parquet.write_table(arrow_csv.read_csv(tmp_path / "prices.csv"), tmp_path / "prices.parquet")
    plain, zipped, columns = (
        read_price_catalogue(tmp_path / name, SHELF, source="test", date="2026-01")
        for name in ("prices.csv", "prices.csv.gz", "prices.parquet")
    )
    assert plain == zipped == columns
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
    parquet.write_table(pa.table(columns), path)
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
        ("prices.csv", b"\xff\xfe\x00\x01" * 9, "unreadable-table"),
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
    monkeypatch.setattr("tenfold.files.prices.tables.SIZE_MAX_BYTES", 1_000)
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
        FactTable("accelerator", {fact.name: fact for fact in accelerators}),
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


def test_a_catalogue_of_one_provider_is_read_as_offers_read_it(tmp_path: Path):
    path = tmp_path / "aws.csv"
    path.write_text(
        "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region\n"
        "p5.48xlarge,H100,8,192,2048,98.32,40.0,us-east-1\n"
    )
    facts, notes = read_price_catalogue(path, SHELF, source="test", date="2026-01")
    assert notes.offers_used == notes.offers_read
    assert {(one.provider, one.kind, round(one.usd_per_gpu_hour, 2)) for one in facts} == {
        ("aws", "on-demand", 12.29),
        ("aws", "spot", 5.0),
    }
