"""What makes a price fact of an offer, what is left out, and that nothing is lost."""

from pathlib import Path

import pytest

from price_builders import dropped, offer, read


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
