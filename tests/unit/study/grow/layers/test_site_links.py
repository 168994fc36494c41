"""Links between sites as laws, against figures done by hand.

Jobs of 64 GPUs run on a quarter of 256 GPUs, and read a tier at a site without GPUs.
"""

import pytest
from msgspec.structs import replace

import growth_builders as made
from tenfold.compose.fleet import OpenFleet
from tenfold.model.fleet.spec import FleetSpec, Site, SiteLink
from tenfold.model.growth.growth import Axis
from tenfold.model.ids import SiteId
from tenfold.model.job.job import Job
from tenfold.model.job.traffic import Traffic, WorkProfile
from tenfold.model.units import SECOND, Bytes, BytesPerSecond, Millis, UsdMicros
from tenfold.physics.growth.breaking import breaking_factor
from tenfold.physics.layout import lay_out
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layer import Constraint, break_of
from tenfold.study.grow.layers.fabric.site_links import SiteLinks
from tenfold.study.grow.layers.fabric.spine import FabricSpine
from tenfold.study.grow.layers.fabric.uplinks import FabricUplinks
from tenfold.study.grow.state import scale_capacity, state_of
from tenfold.testing.builders import job

FABRIC = (FabricUplinks(), FabricSpine(), SiteLinks())
SPAN_S = 10_000.0


def work() -> list[Job]:
    """Return 11 jobs over a span, which fill a quarter of the 256 GPUs."""
    runs_s = SPAN_S / 11
    return [
        replace(job(at, 64, at_s=at * SPAN_S / 10, runs_s=runs_s), profile="llm")
        for at in range(11)
    ]


def given(fleet: FleetSpec, profile: WorkProfile | None) -> GrowInputs:
    opened = OpenFleet(spec=fleet, layout=lay_out(fleet), catalogue=made.catalogue())
    profiles = {} if profile is None else {"llm": profile}
    return replace(made.given(opened), jobs=work(), profiles=profiles)


def constraints(axis: Axis, have: GrowInputs) -> dict[str, Constraint]:
    found = made.evaluated(state_of(have), axis, *FABRIC)
    return {constraint.key: constraint for constraint in found if constraint.layer == "site-links"}


def two_sites() -> FleetSpec:
    """Return the fleet with its tier at a site without GPUs, 10 GB/s away."""
    whole = made.fleet().spec
    vault = SiteId("vault")
    far: Site = replace(whole.sites[0], id=vault)
    link = SiteLink(
        a=made.HALL,
        b=vault,
        bandwidth=BytesPerSecond(10 * 10**9),
        latency_us=500.0,
        egress_usd_micros_per_gb=UsdMicros(0),
    )
    tiers = (replace(made.tier(), site=vault),)
    return replace(whole, sites=(*whole.sites, far), links=(link,), tiers=tiers)


READS = WorkProfile(
    traffic=Traffic(
        read_bytes_per_s_per_gpu=0.05e9,
        tier="fast",
        checkpoint_bytes=Bytes(10**12),
        checkpoint_every_ms=Millis(4_000 * SECOND),
    )
)
LINK = "site-links:link hall - vault"


def test_a_link_breaks_where_jobs_read_more_from_afar_than_it_carries():
    have = given(two_sites(), READS)
    reads = 0.25 * 256 * 0.05e9
    constraint = constraints("jobs", have)[LINK]
    assert breaking_factor(constraint.utilisation, 64) == pytest.approx(10e9 / reads)
    assert constraint.grade == "published"
    assert constraint.symptom(2.0) == ("link hall - vault: 51.2 Gbit/s of 80 Gbit/s")


def test_a_link_carries_reads_and_saves_at_once():
    saver = replace(READS, traffic=replace(READS.traffic, read_bytes_per_s_per_gpu=0.0))
    have = given(two_sites(), saver)
    saves = 0.25 * 256 / 64 * 10**12 / 4_000
    assert constraints("jobs", have)[LINK].utilisation(1.0) == pytest.approx(saves / 10e9)


def beside_gpus() -> FleetSpec:
    """Return two halls with 256 GPUs each, and the tier in one of them."""
    whole = two_sites()
    pool = replace(
        whole.pools[0], id="east", site=SiteId("vault"), fabric=None, node_names="m[1-32]"
    )
    return replace(whole, pools=(*whole.pools, pool))


def test_a_tier_beside_gpus_is_read_from_afar_by_the_gpus_of_other_sites():
    [constraint] = constraints("nodes", given(beside_gpus(), READS)).values()
    reads = 0.25 * 256 * 0.05e9 / 2
    assert constraint.grade == "published"
    assert constraint.utilisation(1.0) == pytest.approx(reads / 10e9)
    broken = break_of(constraint, 64)
    assert broken.k == pytest.approx(10e9 / reads)
    assert broken.low is not None
    # An eighth of the GPUs is in use: all of those may be beside the tier, or all afar.
    assert broken.low == pytest.approx(10e9 / reads / 2 / 1.05)
    assert broken.high is None


def test_jobs_for_gpus_of_one_site_load_its_link_in_full():
    whole = beside_gpus()
    near, far = whole.pools
    pools = (near, replace(far, accelerator="A100"))
    have = given(replace(whole, pools=pools), READS)
    jobs = [replace(one, shape=replace(one.shape, accelerators=("H100",))) for one in have.jobs]
    [constraint] = constraints("jobs", replace(have, jobs=jobs)).values()
    assert constraint.utilisation(1.0) == pytest.approx(0.25 * 256 * 0.05e9 / 10e9)
    assert constraint.bounds is None


def test_more_data_is_read_no_faster():
    [constraint] = constraints("data", given(two_sites(), READS)).values()
    assert constraint.utilisation(8.0) == constraint.utilisation(1.0)


def test_tiers_beside_gpus_use_no_link():
    near = replace(two_sites(), tiers=(made.tier(),))
    found = constraints("jobs", given(near, READS))
    [constraint] = found.values()
    assert "`--measured`" in constraint.needs


def test_sites_that_share_a_tier_afar_are_an_assumption():
    whole = two_sites()
    third = SiteId("third")
    pool = replace(whole.pools[0], id="more", site=third, fabric=None, node_names="m[1-32]")
    link = replace(whole.links[0], a=SiteId("vault"), b=third)
    sites = (*whole.sites, replace(whole.sites[0], id=third))
    three = replace(whole, sites=sites, pools=(*whole.pools, pool), links=(*whole.links, link))
    found = constraints("jobs", given(three, READS))
    each = 0.25 * 256 * 0.05e9 / 2
    assert found[LINK].utilisation(1.0) == pytest.approx(each / 10e9)
    assert found["site-links:link vault - third"].grade == "assumed"


def test_a_way_over_two_links_strains_both_in_its_own_direction():
    whole = two_sites()
    middle = SiteId("middle")
    first = replace(whole.links[0], a=SiteId("vault"), b=middle)
    last = replace(first, a=made.HALL, b=middle)
    sites = (*whole.sites, replace(whole.sites[0], id=middle))
    found = constraints("jobs", given(replace(whole, sites=sites, links=(first, last)), READS))
    reads = 0.25 * 256 * 0.05e9
    assert [constraint.utilisation(1.0) for constraint in found.values()] == pytest.approx(
        [reads / 10e9] * 2
    )


def test_ways_that_meet_on_a_link_from_both_ends_do_not_add_up():
    """Two halls with 256 GPUs each stand between two vaults, and each reads both of them."""
    whole = two_sites()
    east, beyond = SiteId("east"), SiteId("beyond")
    find_bottleneck = replace(whole.links[0], a=made.HALL, b=east)
    last = replace(whole.links[0], a=beyond, b=east)
    pool = replace(whole.pools[0], id="east", site=east, fabric=None, node_names="m[1-32]")
    other = replace(whole.tiers[0], id="other", site=beyond)
    four = replace(
        whole,
        sites=(*whole.sites, *(replace(whole.sites[0], id=one) for one in (east, beyond))),
        pools=(*whole.pools, pool),
        tiers=(*whole.tiers, other),
        links=(*whole.links, find_bottleneck, last),
    )
    reads = replace(READS.traffic, checkpoint_bytes=Bytes(0), checkpoint_every_ms=Millis(0))
    jobs = [replace(one, profile="llm" if at % 2 else "b") for at, one in enumerate(work())]
    profiles = {
        "llm": WorkProfile(traffic=reads),
        "b": WorkProfile(traffic=replace(reads, tier="other")),
    }
    found = constraints("jobs", replace(given(four, None), jobs=jobs, profiles=profiles))
    # Six of eleven jobs read the other tier, half of them on the GPUs of the first hall.
    running_growth = 6 / 11 * 0.25 * 256 * 0.05e9 / 2
    assert found["site-links:link hall - east"].utilisation(1.0) == pytest.approx(
        running_growth / 10e9
    )


def test_a_wider_link_takes_as_much_more():
    state = state_of(given(two_sites(), READS))
    [constraint] = [one for one in made.evaluated(state, "jobs", *FABRIC) if one.key == LINK]
    [wide] = [
        one
        for one in made.evaluated(scale_capacity(state, LINK, 2.0), "jobs", *FABRIC)
        if one.key == LINK
    ]
    assert wide.utilisation(1.0) == pytest.approx(constraint.utilisation(1.0) / 2)


def test_links_that_nobody_is_known_to_use_are_unknown_only_where_use_would_grow():
    have = given(two_sites(), None)
    assert [constraint.needs != "" for constraint in constraints("jobs", have).values()] == [True]
    assert constraints("traffic", have) == {}
    assert constraints("jobs", given(made.fleet().spec, READS)) == {}


def test_a_link_is_upgraded_by_whole_gbits():
    constraint = constraints("jobs", given(two_sites(), READS))[LINK]
    # Reads of 25.6 Gbit/s today: 89.6 at 3.5x, of 80.
    [relief] = constraint.reliefs(3.5)
    assert relief.sentence == "upgrade the link hall - vault to 90 Gbit/s (up from 80 Gbit/s)"
