"""What grows along which axis: the table of the reference, against every computed layer.

One fleet has all of them: two sites with a link, a tier with a dataset, jobs that read, save and
send, a service, spares, people, monitoring and a budget.
"""

from functools import cache

import pytest
from msgspec.structs import replace

import growth_builders as made
from docs.generate_reference import growth_layers
from tenfold.compose.fleet import OpenFleet
from tenfold.model.facts.failure_law import FailureLaw
from tenfold.model.fleet.spec import Expectation, Price, SiteLink
from tenfold.model.growth.growth import (
    AXES,
    Axis,
    Controller,
    Dataset,
    Facility,
    GrowSpec,
    GrowthLimits,
    Monitoring,
    Operations,
    ServiceLoad,
)
from tenfold.model.ids import SiteId
from tenfold.model.job.traffic import Traffic, WorkProfile
from tenfold.model.units import SECOND, Bytes, BytesPerSecond, Millis, UsdMicros
from tenfold.physics.layout import lay_out
from tenfold.study.grow.layer import ComputedLayer, Constraint
from tenfold.study.grow.registry import LAYERS
from tenfold.study.grow.runs.layer import SimulatedLayer
from tenfold.study.grow.state import State, state_of
from tenfold.testing.builders import job

COMPUTED = [layer for layer in LAYERS if isinstance(layer, ComputedLayer)]
WHOLE = ("spares", "floor", "rack-power", "cooling")
"""Layers that count whole things: a factor may not show at once."""
FULL = ("rack-power",)
"""Layers of this fleet that grow only until a rack is full, and it is."""
UNEVEN = ("step-efficiency", "fabric-uplinks", "fabric-spine", "checkpoint-saves", "spares")
"""Layers whose demand is no multiple of what grows."""
FACTOR = 1.5


@cache
def everything() -> State:
    opened = made.fleet(nodes=34, tiers=(replace(made.tier(), site=SiteId("vault")), near_tier()))
    spec = opened.spec
    fabric = replace(spec.fabrics[0], oversubscription=2.0, spines=4)
    price = Price(kind="owned", usd_micros_per_hour=UsdMicros(1_000_000), basis="stated")
    small = replace(
        spec.pools[0],
        id="small",
        node_names="s[1-2]",
        nodes=2,
        site=SiteId("vault"),
        fabric=None,
        price=price,
    )
    spec = replace(
        spec,
        sites=(*spec.sites, replace(spec.sites[0], id=SiteId("vault"), rack_kw_limit=60.0)),
        pools=(replace(spec.pools[0], price=price), small),
        fabrics=(fabric,),
        links=(
            SiteLink(
                a=made.HALL,
                b=SiteId("vault"),
                bandwidth=BytesPerSecond(10**11),
                latency_us=500.0,
                egress_usd_micros_per_gb=UsdMicros(20_000),
            ),
        ),
        expects=Expectation(model="Llama 3 8B"),
    )
    fleet = OpenFleet(spec=spec, layout=lay_out(spec), catalogue=opened.catalogue)
    traffic = Traffic(
        read_bytes_per_s_per_gpu=0.05e9,
        tier="fast",
        checkpoint_bytes=Bytes(10**12),
        checkpoint_every_ms=Millis(4_000 * SECOND),
        network_bytes_per_s_per_gpu=20e9,
        network_share=0.3,
    )
    profile = WorkProfile(traffic=traffic, scaling=((8, 1.0), (192, 0.9), (2_048, 0.5)))
    jobs = [replace(job(at, 192, at_s=at * 3_600, runs_s=900), profile="llm") for at in range(20)]
    inputs = replace(
        made.given(fleet, limits()),
        jobs=jobs,
        starts_ms={one.id: one.submitted_ms for one in jobs},
        profiles={"llm": profile},
        failures=FailureLaw(
            name="own", faults_per_1000_node_days=60.0, repair_h_median=24.0, repair_h_mean=48.0
        ),
    )
    return state_of(inputs)


def near_tier() -> "made.Tier":
    return replace(made.tier(), id="near")


def limits() -> GrowSpec:
    service = ServiceLoad(
        name="chat",
        model="Llama 3 8B",
        qps=1.0,
        input_tokens=1_000,
        output_tokens=200,
        ttft_s=2.0,
        tpot_s=0.1,
        pool="train",
    )
    return GrowSpec(
        limits=GrowthLimits(kw_most=10_000.0, usd_per_month_most=1e8),
        controllers=(Controller(kind="tenfold", cost_ms_per_job=100.0),),
        services=(service,),
        datasets=(
            Dataset(name="text", tier="fast", tb=100),
            Dataset(name="copy", tier="near", tb=100, source_site="vault", copies_per_month=4.0),
        ),
        monitoring=Monitoring(
            series_per_node=100.0,
            interval_s=15.0,
            samples_per_s_most=1e6,
            retention_days=30.0,
            store_tb=10.0,
        ),
        operations=Operations(crew=2.0, repairs_per_person_day=4.0, spares=10),
        facility=Facility(floor_racks=400, ports_free=10_000),
    )


def known(layer: ComputedLayer, axis: Axis) -> list[Constraint]:
    found = [one for one in layer.evaluated(everything(), axis) if not one.needs]
    assert found or layer.growth(axis) == "none", f"the fleet of this test has no {layer.name}"
    return found


@pytest.mark.parametrize("layer", COMPUTED, ids=lambda layer: layer.name)
def test_a_layer_grows_along_the_axes_of_the_table_and_never_twice(layer: ComputedLayer):
    factor = 4.0 if layer.name in WHOLE else FACTOR
    for axis in AXES:
        by = [one.utilisation(factor) / one.utilisation(1.0) for one in known(layer, axis)]
        if layer.growth(axis) == "demand" and layer.name not in FULL:
            assert max(by) > 1, axis
        else:
            assert max(by, default=1.0) == pytest.approx(1.0), axis
        if layer.name not in UNEVEN:
            assert max(by, default=1.0) <= factor * (1 + 1e-9), axis


@pytest.mark.parametrize("layer", [one for one in LAYERS if isinstance(one, SimulatedLayer)])
def test_runs_grow_with_jobs_and_not_with_data(layer: SimulatedLayer):
    moved = [axis for axis in AXES if layer.growth(axis) != "none"]
    assert moved == ["jobs", "job-size", "teams", "nodes", "all"]


def test_reads_and_saves_grow_with_the_nodes_along_all_axes():
    for name in ("storage-read", "checkpoint-burst", "site-links"):
        [layer] = [one for one in COMPUTED if one.name == name]
        [constraint] = known(layer, "all")
        assert constraint.utilisation(4.0) / constraint.utilisation(1.0) == pytest.approx(4.0)


def test_the_reference_page_says_what_grows():
    page = growth_layers(LAYERS)
    reads = "GPUs that read, until all are in use; the read rate of each GPU stays the same"
    assert f"| Storage reads | {reads} | yes | - | - | - | yes | yes | yes |" in page
    assert "| GPU time | GPU time of the jobs | yes | yes | - | - | yes | both | both |" in page
    assert "| Site power | power of the nodes" in page
