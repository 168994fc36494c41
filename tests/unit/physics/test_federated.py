"""A round of federated training: its parts, its stragglers, its ways."""

from itertools import combinations
from math import inf

import pytest
from msgspec.structs import replace

from tenfold.model.federated import FederatedJob, FederatedSite
from tenfold.model.fleet.spec import SiteLink
from tenfold.model.ids import SiteId
from tenfold.model.reason import Misfit
from tenfold.model.units import BytesPerSecond, UsdMicros
from tenfold.physics.federated import Round, RoundTime, federated_round, synchronous
from tenfold.physics.federated_levers import levers
from tenfold.physics.site_routes import quickest_route, shared_rates
from tenfold.report.reasons.render import render

MB = 1e6


def site(name: str, step_s: float, mb_per_s: float | None, latency_s: float = 0.0) -> FederatedSite:
    rate = None if mb_per_s is None else mb_per_s * MB
    return FederatedSite(
        site=SiteId(name), step_s=step_s, samples=1, bytes_per_s=rate, latency_s=latency_s
    )


def job(*sites: FederatedSite, steps: int = 10, **changes: object) -> FederatedJob:
    count = len(sites)
    made = FederatedJob(
        sites=sites, model_bytes=100 * MB, local_steps=steps, per_round=count, quorum=count
    )
    return replace(made, **changes)


def link(a: str, b: str, mb_per_s: float, ms: float, usd: float = 0.0) -> SiteLink:
    return SiteLink(
        a=SiteId(a),
        b=SiteId(b),
        bandwidth=BytesPerSecond(round(mb_per_s * MB)),
        latency_us=ms * 1000,
        egress_usd_micros_per_gb=UsdMicros(round(usd * 1e6)),
    )


THREE = (site("a", 1.0, 10, 0.5), site("b", 2.0, 20), site("c", 0.5, 2))


def of(asked: FederatedJob) -> Round:
    found = federated_round(asked)
    assert isinstance(found, Round)
    return found


def parts(found: Round) -> list[float]:
    return [getattr(found.breakdown_s, name) for name in RoundTime.__struct_fields__]


def test_the_slowest_site_closes_the_round():
    # a: 10.5 + 10 + 10.5 = 31, b: 5 + 20 + 5 = 30, c: 50 + 5 + 50 = 105.
    found = of(job(*THREE))
    assert found.round_s == pytest.approx(105)
    assert [one.total_s for one in found.sites] == pytest.approx([31, 30, 105])
    assert [one.closes for one in found.sites] == [0, 0, 1]
    assert found.breakdown_s.upload_s == pytest.approx(50)
    assert found.rounds_per_day == pytest.approx(86_400 / 105)
    assert found.steps_per_day == pytest.approx(864_000 / 105)


def test_a_quorum_does_not_wait_for_stragglers():
    found = of(job(*THREE, quorum=2))
    assert found.round_s == pytest.approx(31)
    slowed = (replace(THREE[0], slowdown=100.0), *THREE[1:])
    assert of(job(*slowed, quorum=1)).round_s == pytest.approx(30)
    assert of(job(*slowed)).round_s == pytest.approx(1021)


def test_drawn_sites_give_the_mean_over_all_draws():
    found = of(job(*THREE, per_round=2, quorum=2))
    times = [31, 30, 105]
    slowest = [max(pair) for pair in combinations(times, 2)]
    assert found.round_s == pytest.approx(sum(slowest) / 3)
    assert sum(parts(found)) == pytest.approx(found.round_s)
    assert found.wan_bytes_per_round == pytest.approx(2 * 200 * MB)


def test_a_deadline_gives_up_rounds_that_lack_their_quorum():
    found = of(job(*THREE, per_round=2, quorum=2, deadline_s=60.0))
    assert found.succeeds == pytest.approx(1 / 3)
    assert found.round_s == pytest.approx((31 + 60 + 60) / 3)
    assert found.breakdown_s.abandoned_s == pytest.approx(40)
    assert found.rounds_per_day == pytest.approx(86_400 / found.round_s / 3)
    never = federated_round(job(*THREE, deadline_s=60.0))
    assert isinstance(never, Misfit)
    assert never.reasons[0].code == "deadline-before-quorum"
    assert "`c`" in render(never.reasons[0])


def test_a_site_beside_the_coordinator_sends_nothing_far():
    found = of(job(site("home", 3.0, None), site("b", 1.0, 100)))
    assert found.round_s == pytest.approx(30)
    assert found.wan_bytes_per_round == pytest.approx(200 * MB)
    assert [one.weight for one in found.sites] == [0.5, 0.5]


def test_egress_is_paid_on_every_link_of_the_way():
    paid = replace(site("a", 1.0, 10), usd_per_gb=0.5)
    found = of(job(paid))
    assert found.egress_usd_per_day == pytest.approx(0.2 * 0.5 * found.rounds_per_day)


def test_exchanging_after_each_step_sends_as_much_more_as_there_are_steps():
    asked = job(*THREE, compression=4.0)
    found = of(asked)
    sync = synchronous(asked, found.round_s)
    assert sync.exchange_s == pytest.approx(100)
    assert sync.step_s == pytest.approx(102)
    assert sync.round_steps_s == pytest.approx(1020)
    assert sync.slower == pytest.approx(1020 / found.round_s)
    assert sync.wan_bytes == pytest.approx(10 * 3 * 200 * MB)


def test_levers_pay_where_links_bind_and_not_where_they_do_not():
    thin, wide = job(site("a", 1.0, 1)), job(site("a", 1.0, 1e6))
    gains = levers(thin, of(thin))
    assert gains.compression_pays
    assert gains.more_local_steps_pay
    assert gains.local_steps_for_even == 200
    assert gains.grid[0].quicker == pytest.approx(0)
    none = levers(wide, of(wide))
    assert not none.compression_pays
    assert not none.more_local_steps_pay


def test_the_quickest_way_depends_on_what_is_sent():
    links = [link("a", "b", 1, 1), link("a", "m", 100, 20), link("m", "b", 50, 20)]
    short = quickest_route(links, SiteId("a"), SiteId("b"), 1000)
    long = quickest_route(links, SiteId("a"), SiteId("b"), 100 * MB)
    assert short is not None
    assert long is not None
    assert (len(short.links), short.bytes_per_s) == (1, 1 * MB)
    assert (len(long.links), long.bytes_per_s, long.latency_s) == (2, 50 * MB, 0.04)
    assert quickest_route(links, SiteId("a"), SiteId("z"), 1.0) is None


def test_ways_over_one_link_share_it():
    links = [link("a", "m", 100, 1, 0.1), link("b", "m", 10, 1), link("m", "hub", 30, 1, 0.2)]
    routes = {
        SiteId(name): quickest_route(links, SiteId(name), SiteId("hub"), MB) for name in "abm"
    }
    found = {name: route for name, route in routes.items() if route is not None}
    assert shared_rates(found) == {"a": 10 * MB, "b": 10 * MB, "m": 10 * MB}
    assert found[SiteId("a")].usd_micros_per_gb == 300_000
    assert inf > found[SiteId("a")].bytes_per_s == 30 * MB
