"""Offers are ranked by the cost of useful work, and rules exclude them one by one."""

from msgspec.structs import replace

from tenfold.decide.provision.rank import Candidate, RentalJob, Terms, moved, rank
from tenfold.model.fleet.facility import PriceKind
from tenfold.model.market.offer import Offer
from tenfold.model.market.quote import RentalRules, Speed
from tenfold.model.units import usd_micros

TERMS = Terms(
    trust="standard",
    egress_usd_per_gb=0.0,
    startup_s=600.0,
    failures_per_1000_node_days=4.0,
    spot_up_h=4.0,
    spot_down_h=2.0,
    availability=1.0,
)
SPEED = Speed(gpus=8, instances=1, units=1, work_per_hour=100.0, save_s=60.0)
JOB = RentalJob(work=10_000.0, hours=0.0, has_state=True)


def candidate(
    provider: str,
    usd_per_hour: float,
    *,
    kind: PriceKind = "on-demand",
    country: str = "",
    work_per_hour: float = 100.0,
    terms: Terms = TERMS,
) -> Candidate:
    offer = Offer(
        provider=provider,
        accelerator="H100-80G-SXM",
        gpus=8,
        kind=kind,
        usd_micros_per_hour=usd_micros(usd_per_hour),
        country=country,
    )
    return Candidate(offer, terms, replace(SPEED, work_per_hour=work_per_hour))


def order(*candidates: Candidate, job: RentalJob = JOB) -> list[str]:
    return [one.offer.provider for one in rank(candidates, job).quotes]


def test_the_lowest_price_per_hour_loses_to_cheaper_work():
    slow = candidate("slow", 10, work_per_hour=40)
    assert order(slow, candidate("fast", 20)) == ["fast", "slow"]


def test_spot_capacity_pays_for_what_reclaims_undo():
    found = rank([candidate("a", 10), candidate("b", 10, kind="spot")], JOB).quotes
    assert [one.offer.provider for one in found] == ["a", "b"]
    full, spot = found
    assert full.effective_share > 0.99
    assert 0.6 < spot.effective_share < 0.9
    assert spot.calendar_h > spot.billed_h > full.billed_h


def test_egress_moves_an_offer_down():
    dear = replace(TERMS, egress_usd_per_gb=0.09)
    pair = (candidate("dear", 10, terms=dear), candidate("free", 11))
    assert order(*pair) == ["dear", "free"]
    assert order(*pair, job=replace(JOB, data_out_gb=5_000.0)) == ["free", "dear"]


def test_a_price_change_moves_the_pick():
    before = rank([candidate("a", 10), candidate("b", 11)], JOB)
    after = rank([candidate("a", 12), candidate("b", 11), candidate("c", 15)], JOB)
    assert moved(before, after) == {"a": (1, 2), "b": (2, 1), "c": (None, 3)}


def test_every_excluded_offer_counts_under_its_first_rule():
    rules = RentalRules(countries=("DE",), trust="standard", availability=0.5, deadline_h=150)
    community = replace(TERMS, trust="community")
    rare = replace(TERMS, availability=0.4)
    found = rank(
        [
            candidate("here", 10, country="DE"),
            candidate("there", 10, country="US"),
            candidate("somewhere", 10),
            candidate("anyone", 10, country="DE", terms=community),
            candidate("rare", 10, country="DE", terms=rare),
            candidate("slow", 10, country="DE", work_per_hour=50),
            replace_speed(candidate("small", 10, country="DE")),
        ],
        replace(JOB, rules=rules),
    )
    assert [one.offer.provider for one in found.quotes] == ["here"]
    assert found.excluded == {
        "residency": 1,
        "country-unknown": 1,
        "trust": 1,
        "availability": 1,
        "split": 1,
        "deadline": 1,
    }


def replace_speed(one: Candidate) -> Candidate:
    return Candidate(one.offer, one.terms, None, "split")


def test_a_service_keeps_no_state_and_restarts_cheaply():
    job = RentalJob(work=None, hours=100.0, has_state=False)
    spot = rank([candidate("a", 10, kind="spot")], job).quotes[0]
    assert 0.9 < spot.effective_share < 1.0


def test_staging_delays_the_end_and_is_not_billed_as_capacity():
    plain = rank([candidate("a", 10)], JOB).quotes[0]
    staged = rank([candidate("a", 10)], replace(JOB, data_in_gb=4_500.0)).quotes[0]
    assert round(staged.calendar_h - plain.calendar_h, 6) == 1.0
    assert staged.billed_h == plain.billed_h


def test_order_does_not_depend_on_the_order_of_offers():
    many = [candidate(f"p{at}", 10 + at % 3) for at in range(9)]
    assert order(*many) == order(*reversed(many))
