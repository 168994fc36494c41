"""Files of growth: what they say, and what is wrong in them with its line."""

from pathlib import Path

import pytest

import growth_builders as made
from tenfold.files.growth import read_grow
from tenfold.files.growth_write import render_grow_toml
from tenfold.model.errors import InputError, InvalidFile
from tenfold.model.growth.growth import (
    Controller,
    Dataset,
    Facility,
    GrowSpec,
    GrowthLimits,
    LeadTime,
    Monitoring,
    Operations,
    Pace,
)

GOOD = """\
[limits]
wait_s_p90 = 7_200
usd_per_month_most = 500_000

[[controller]]
kind = "kueue"
queue = "deep"
cycles_per_min = 25
admitted_share = 0.38

[[service]]
name = "chat"
model = "llama-3-8b"
qps = 12.5
input_tokens = 900
output_tokens = 200
pool = "train"

[[dataset]]
name = "crawl"
tier = "fast"
tb = 1_200
grows_with = "all"

[monitoring]
series_per_node = 2_000
interval_s = 15
store_tb = 2

[operations]
crew = 1.5
spares = 4

[facility]
floor_racks = 20

[[lead_time]]
thing = "nodes"
weeks_p50 = 12
weeks_p90 = 20

[pace]
today = 2026-11-15
doubles_in_months = 9
"""


@pytest.fixture
def read(tmp_path: Path):
    def of(text: str, suffix: str = ".toml", *, fleet: bool = False) -> GrowSpec:
        path = tmp_path / f"grow{suffix}"
        path.write_text(text)
        spec = made.fleet(tiers=(made.tier(),)).spec if fleet else None
        return read_grow(path, made.catalogue(), spec)

    return of


@pytest.fixture
def faults(read):
    def of(text: str, *, fleet: bool = False) -> list[tuple[str, int | None]]:
        with pytest.raises(InvalidFile) as caught:
            read(text, fleet=fleet)
        return [(found.code, found.line) for found in caught.value.findings]

    return of


def test_every_table_is_read_into_what_growth_is_asked_with(read):
    spec = read(GOOD, fleet=True)
    assert spec.limits == GrowthLimits(wait_s_p90=7_200, usd_per_month_most=500_000)
    assert spec.controllers == (
        Controller(kind="kueue", queue="deep", cycles_per_min=25, admitted_share=0.38),
    )
    assert [(one.name, one.qps, one.pool) for one in spec.services] == [("chat", 12.5, "train")]
    held = Dataset(name="crawl", tier="fast", tb=1_200, grows_with="all")
    assert spec.datasets == (held,)
    assert spec.monitoring == Monitoring(series_per_node=2_000, interval_s=15, store_tb=2)
    assert spec.operations == Operations(crew=1.5, spares=4)
    assert spec.facility == Facility(floor_racks=20)
    assert spec.lead_times == (LeadTime(thing="nodes", weeks_p50=12, weeks_p90=20),)
    assert spec.pace == Pace(today="2026-11-15", doubles_in_months=9)


def test_a_file_that_says_nothing_leaves_every_default(read):
    assert read("") == GrowSpec()


def test_yaml_says_the_same(read):
    text = "pace:\n  today: 2026-11-15\n  doubles_in_months: 9\noperations:\n  crew: 2\n"
    spec = read(text, ".yaml")
    assert spec.pace == Pace(today="2026-11-15", doubles_in_months=9)
    assert spec.operations == Operations(crew=2)


def test_every_fault_comes_back_with_its_line(faults):
    text = (
        '[limits]\nwait = 3\nkw_most = "lots"\n\n[people]\n\n[[dataset]]\nname = "crawl"\ntb = 1\n'
    )
    assert faults(text) == [
        ("unknown-key", 2),
        ("wrong-value", 3),
        ("unknown-key", 5),
        ("missing-key", 7),
    ]


def test_a_day_that_is_none_is_a_fault(faults):
    assert faults('[pace]\ntoday = "soon"\ndoubles_in_months = 9\n') == [("wrong-value", 2)]


def test_a_moment_is_no_day(faults):
    text = "[pace]\ntoday = 2026-11-15T10:00:00Z\ndoubles_in_months = 9\n"
    assert faults(text) == [("wrong-value", 2)]


def test_two_entries_of_one_name_are_a_fault(faults):
    one = '[[lead_time]]\nthing = "nodes"\nweeks_p50 = 1\nweeks_p90 = 2\n'
    assert faults(one + one) == [("duplicate-name", 5)]


def test_nine_of_ten_orders_take_no_less_than_half_of_them(faults):
    text = '[[lead_time]]\nthing = "nodes"\nweeks_p50 = 9\nweeks_p90 = 2\n'
    assert faults(text) == [("wrong-value", 4)]


def test_a_lead_time_of_several_stages_has_the_quantiles_of_their_sum(read):
    text = '[[lead_time]]\nthing = "nodes"\nstages = { delivery = [10, 20], validation = [2, 4] }\n'
    (found,) = read(text).lead_times
    assert 12 < found.weeks_p50 < 13.5
    assert 20 < found.weeks_p90 < 24
    assert found.stages == {"delivery": (10, 20), "validation": (2, 4)}


def test_a_lead_time_of_stages_is_written_as_it_was_read(read):
    text = '[[lead_time]]\nthing = "nodes"\nstages = { delivery = [10, 20], order = [1, 2] }\n'
    spec = read(text)
    assert render_grow_toml(spec) == text
    assert read(render_grow_toml(spec)) == spec


def test_a_lead_time_is_a_total_or_stages(faults):
    head = '[[lead_time]]\nthing = "nodes"\n'
    assert faults(head) == [("missing-key", 1)]
    assert faults(f"{head}weeks_p50 = 2\n") == [("missing-key", 1)]
    both = f"{head}weeks_p50 = 2\nweeks_p90 = 3\nstages = {{ order = [1, 2] }}\n"
    assert faults(both) == [("wrong-value", 5)]
    assert faults(f"{head}stages = {{ order = [3, 2] }}\n") == [("wrong-value", 3)]


def test_a_model_that_no_fact_knows_is_a_fault(faults):
    assert faults(GOOD.replace("llama-3-8b", "no-such")) == [("unknown-model", 13)]


def test_only_places_of_the_fleet_may_be_named(faults):
    text = GOOD.replace('"fast"', '"slow"').replace('"train"', '"none"')
    text = text.replace("tb = 1_200", 'tb = 1_200\nsource_site = "moon"\ncopies_per_month = 1')
    assert faults(text, fleet=True) == [
        ("unknown-pool", 17),
        ("unknown-tier", 21),
        ("unknown-site", 23),
    ]


def test_a_source_needs_a_frequency_and_a_link_to_do_something(faults):
    text = GOOD.replace("tb = 1_200", 'tb = 1_200\nsource_site = "hall"')
    assert faults(text, fleet=True) == [("missing-key", 23)]
    text = GOOD.replace("tb = 1_200", "tb = 1_200\ncopies_per_month = 2")
    assert faults(text, fleet=True) == [("missing-key", 23)]
    text = GOOD.replace("tb = 1_200", 'tb = 1_200\nsource_site = "hall"\ncopies_per_month = 2')
    assert faults(text, fleet=True) == [("no-route", 23)]


def test_a_thing_that_nobody_orders_has_no_lead_time(faults):
    text = '[[lead_time]]\nthing = "unicorn"\nweeks_p50 = 1\nweeks_p90 = 2\n'
    assert faults(text) == [("wrong-value", 2)]


def test_prices_are_read(read):
    found = read("[prices]\nusd_per_kw_month = 150\n").prices
    assert (found.usd_per_kw_month, found.usd_per_rack_month) == (150, None)


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(InputError, match="no such file"):
        read_grow(tmp_path / "grow.toml", made.catalogue())


def test_a_limit_without_a_value_keeps_its_default(read):
    assert read("limits:\n  wait_s_p90:\n  kw_most: 90\n", ".yaml").limits == GrowthLimits(
        kw_most=90
    )
