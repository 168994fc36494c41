"""Raising what a layer has never lowers what it carries."""

from functools import cache
from math import inf
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tenfold.compose.fleet import OpenFleet, open_fleet
from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.units import BytesPerSecond
from tenfold.physics.layout import lay_out
from tenfold.study.ceiling.compute import scale_up
from tenfold.study.ceiling.design import CeilingQuestion, Design, design_of
from tenfold.study.ceiling.fabric import fabric_layers
from tenfold.study.ceiling.failures import checkpoint_write, failures
from tenfold.study.ceiling.layers import LayerCeiling
from tenfold.study.ceiling.power import rack_power, site_power
from tenfold.study.ceiling.storage import storage_layers

EXAMPLE = Path(__file__).parents[3] / "examples" / "research-256" / "fleet.toml"


@cache
def example() -> OpenFleet:
    return open_fleet(EXAMPLE)


def with_spec(spec: FleetSpec, **question: object) -> Design:
    fleet = replace(example(), spec=spec, layout=lay_out(spec))
    return design_of(fleet, CeilingQuestion(**question))  # pyright: ignore


def bare(spec: FleetSpec) -> FleetSpec:
    """The fleet without a model: what does not depend on one is quick to ask."""
    return replace(spec, expects=replace(spec.expects, model=None))


def carried(layer: LayerCeiling) -> float:
    return inf if layer.status == "free" else float(layer.gpus or 0)


def pick(layers: list[LayerCeiling], name: str) -> float:
    [found] = [one for one in layers if one.layer == name]
    return carried(found)


pairs_of_kw = st.tuples(st.floats(1, 20_000), st.floats(1, 20_000)).map(sorted)


@settings(max_examples=40, deadline=None)
@given(pairs_of_kw)
def test_more_power_never_carries_less(kw):
    def of(limit: float) -> tuple[float, float]:
        spec = bare(example().spec)
        sites = tuple(
            replace(site, power_kw_limit=limit, rack_kw_limit=limit / 100) for site in spec.sites
        )
        design = with_spec(replace(spec, sites=sites))
        return carried(site_power(design)), carried(rack_power(design))

    low, high = of(kw[0]), of(kw[1])
    assert low[0] <= high[0]
    assert low[1] <= high[1]


@settings(max_examples=40, deadline=None)
@given(
    read=st.tuples(st.floats(0.1, 5_000), st.floats(0.1, 5_000)).map(sorted),
    streams=st.tuples(st.integers(1, 100_000), st.integers(1, 100_000)).map(sorted),
    feed_mb=st.floats(0.1, 2_000),
)
def test_a_faster_or_wider_tier_never_feeds_fewer(read, streams, feed_mb):
    def of(gb_per_s: float, count: int, layer: str) -> float:
        spec = bare(example().spec)
        tier = replace(
            spec.tiers[0], read_bandwidth=BytesPerSecond(round(gb_per_s * 1e9)), streams=count
        )
        design = with_spec(replace(spec, tiers=(tier,)), feed_bytes_per_s_per_gpu=feed_mb * 1e6)
        return pick(storage_layers(design), layer)

    assert of(read[0], streams[0], "storage-read") <= of(read[1], streams[0], "storage-read")
    assert of(read[0], streams[0], "storage-read") <= of(read[0], streams[1], "storage-read")
    assert of(read[0], streams[0], "storage-streams") <= of(read[0], streams[1], "storage-streams")


@settings(max_examples=40, deadline=None)
@given(
    ratio=st.tuples(st.floats(1, 16), st.floats(1, 16)).map(sorted),
    core=st.tuples(st.floats(1, 16), st.floats(1, 16)).map(sorted),
    leaf=st.tuples(st.integers(1, 64), st.integers(1, 64)).map(sorted),
    ports=st.tuples(st.sampled_from([32, 64, 128]), st.sampled_from([32, 64, 128])).map(sorted),
)
def test_a_wider_fabric_never_carries_less(ratio, core, leaf, ports):
    def of(over: float, top: float, nodes: int, switch_ports: int = 64) -> list[LayerCeiling]:
        spec = bare(example().spec)
        fabric = replace(
            spec.fabrics[0],
            oversubscription=over,
            core_oversubscription=top,
            nodes_per_leaf=nodes,
            leaves_per_pod=4,
            switch_ports=switch_ports,
        )
        return fabric_layers(with_spec(replace(spec, fabrics=(fabric,))))

    thin = of(ratio[1], core[1], leaf[0], ports[0])
    assert pick(thin, "leaf-uplinks") <= pick(of(ratio[0], core[1], leaf[0]), "leaf-uplinks")
    assert pick(thin, "leaf-uplinks") <= pick(of(ratio[1], core[1], leaf[1]), "leaf-uplinks")
    assert pick(thin, "pod-uplinks") <= pick(of(ratio[1], core[0], leaf[0]), "pod-uplinks")
    larger = of(ratio[1], core[1], leaf[0], ports[1])
    assert pick(thin, "fabric-ports") <= pick(larger, "fabric-ports")


@settings(max_examples=15, deadline=None)
@given(
    write=st.tuples(st.floats(0.5, 2_000), st.floats(0.5, 2_000)).map(sorted),
    allowed=st.tuples(st.floats(0.02, 0.5), st.floats(0.02, 0.5)).map(sorted),
)
def test_faster_saves_and_more_patience_never_carry_less(write, allowed):
    def of(gb_per_s: float, share: float) -> tuple[float, float]:
        spec = example().spec
        rate = BytesPerSecond(round(gb_per_s * 1e9))
        tier = replace(spec.tiers[0], write_bandwidth=rate)
        design = with_spec(replace(spec, tiers=(tier,)), loss_share_max=share)
        return carried(checkpoint_write(design)), carried(failures(design))

    slow, quick, patient = (
        of(write[0], allowed[0]),
        of(write[1], allowed[0]),
        of(write[0], allowed[1]),
    )
    assert slow[0] <= quick[0]
    assert slow[1] == quick[1]
    assert slow[0] <= patient[0]
    assert slow[1] <= patient[1]
    assert slow[0] <= slow[1], "saves that cost nothing carry at least as much"


def test_a_wider_domain_never_carries_less():
    spec = example().spec
    found = []
    for gpus in (1, 2, 4, 8, 16, 32, 64):
        pools = tuple(replace(pool, scaleup_gpus=gpus) for pool in spec.pools)
        found.append(
            carried(scale_up(with_spec(replace(spec, pools=pools), model="Llama 3.1 70B")))
        )
    assert found == sorted(found)
    assert found[-1] == inf
