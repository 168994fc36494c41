"""A node is rented only for a job that is late, gains, and fits the budget; nothing is churned."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tenfold.decide.provision.burst import decide_burst
from tenfold.model.market.burst import (
    BurstDecision,
    BurstJob,
    BurstPolicy,
    BurstState,
    RentedNode,
    Zone,
)
from tenfold.model.units import usd_micros

HOUR_MS = 3_600_000
ZONE = Zone(name="north", accelerator="H100", gpus_per_node=8, usd_micros_per_hour=usd_micros(24.0))
DEAR = replace(ZONE, name="south", usd_micros_per_hour=usd_micros(30.0))
POLICY = BurstPolicy(budget_usd=1_000.0, nodes_max=4, changes_max=4)
NOW = BurstState(now_ms=0, spent_usd_micros=0)


def job(name: str = "j", **more: object) -> BurstJob:
    """Return a job of one hour that would end at home in ten."""
    fields = {
        "id": name,
        "gpus": 8,
        "submitted_ms": 0,
        "run_s": 3_600.0,
        "own_end_ms": 10 * HOUR_MS,
        **more,
    }
    return BurstJob(**fields)  # pyright: ignore[reportArgumentType]


def why(decision: BurstDecision) -> list[str]:
    return [one.reason.code for one in decision.refusals]


def decide(*jobs: BurstJob, policy: BurstPolicy = POLICY, state: BurstState = NOW) -> BurstDecision:
    return decide_burst(jobs, [DEAR, ZONE], policy, state)


def test_a_late_job_gets_nodes_in_the_cheapest_zone():
    (rent,) = decide(job(gpus=16)).rents
    assert (rent.zone, rent.nodes) == ("north", 2)
    # Two nodes for an hour of work and ten minutes of start-up.
    assert rent.usd_micros == usd_micros(2 * 24.0 * 7 / 6)
    assert rent.saves_s == 10 * 3_600 - 4_200


def test_a_job_that_is_in_time_at_home_is_never_burst():
    in_time = job(own_end_ms=2 * HOUR_MS, deadline_ms=2 * HOUR_MS)
    assert why(decide(in_time)) == ["burst-not-needed"]
    soon = job(own_end_ms=round(1.5 * HOUR_MS))
    assert why(decide(soon)) == ["burst-not-needed"]


def test_a_burst_is_refused_when_staging_exceeds_the_benefit():
    # 40,500 GB take nine hours at 10 Gbit/s.
    heavy = job(data_gb=40_500.0)
    assert why(decide(heavy)) == ["burst-staging-exceeds-benefit"]
    assert decide(replace(heavy, data_gb=30_000.0)).rents


def test_egress_is_part_of_the_cost_and_moves_the_zone():
    far = replace(ZONE, egress_usd_per_gb=0.1)
    found = decide_burst([job(results_gb=500.0)], [far, DEAR], POLICY, NOW)
    assert found.rents[0].zone == "south"


def test_a_deadline_that_rented_nodes_miss_too_is_no_reason_to_rent():
    late = job(deadline_ms=HOUR_MS)
    assert why(decide(late)) == ["burst-too-late"]


def test_the_budget_is_never_exceeded():
    state = replace(NOW, spent_usd_micros=usd_micros(980.0))
    assert why(decide(job(), policy=POLICY, state=state)) == ["burst-over-budget"]
    many = [job(f"j{at}") for at in range(9)]
    found = decide(*many, policy=replace(POLICY, budget_usd=60.0))
    assert len(found.rents) == 2
    assert sum(one.usd_micros for one in found.rents) <= usd_micros(60.0)


def test_a_zone_without_capacity_is_passed_over_and_tried_again_later():
    failed = replace(NOW, now_ms=HOUR_MS, failed_ms={"north": HOUR_MS})
    assert decide(job(), state=failed).rents[0].zone == "south"
    both = replace(failed, failed_ms={"north": HOUR_MS, "south": HOUR_MS})
    assert why(decide(job(), state=both)) == ["burst-no-capacity"]
    later = replace(both, now_ms=HOUR_MS + 901_000)
    assert decide(job(), state=later).rents[0].zone == "north"


def test_residency_and_trust_are_tags_of_a_zone():
    assert why(decide(job(needs=("EU",)))) == ["burst-no-zone"]
    zone = replace(ZONE, tags=("EU", "trust-standard"))
    assert decide_burst([job(needs=("EU",))], [zone], POLICY, NOW).rents


def test_changes_in_a_window_are_bounded():
    busy = replace(NOW, now_ms=300_000, rented_ms=(1, 2, 3, 4))
    assert why(decide(job(), state=busy)) == ["burst-changes-used-up"]
    assert decide(job(), state=replace(busy, now_ms=700_000)).rents


def test_idle_nodes_are_released_at_once_when_the_money_is_gone():
    idle = RentedNode(id="n", zone="north", since_ms=0, idle_since_ms=100_000)
    busy = RentedNode(id="m", zone="north", since_ms=0, job="j")
    state = replace(NOW, now_ms=200_000, nodes=(idle, busy))
    assert decide(state=state).releases == ()
    later = decide(state=replace(state, now_ms=700_000))
    assert [(one.node, one.because) for one in later.releases] == [("n", "idle")]
    spent = decide(state=replace(state, spent_usd_micros=usd_micros(1_000.0)))
    assert [(one.node, one.because) for one in spent.releases] == [("n", "budget spent")]


jobs = st.lists(
    st.builds(
        job,
        st.sampled_from([f"j{at}" for at in range(12)]),
        gpus=st.integers(1, 40),
        run_s=st.floats(60, 1e5),
        own_end_ms=st.none() | st.integers(0, 100 * HOUR_MS),
        deadline_ms=st.none() | st.integers(0, 100 * HOUR_MS),
        data_gb=st.floats(0, 1e5),
    ),
    max_size=10,
    unique_by=lambda one: one.id,
)
policies = st.builds(
    BurstPolicy,
    budget_usd=st.floats(1, 1e5),
    nodes_max=st.integers(1, 12),
    changes_max=st.integers(1, 12),
)


@settings(max_examples=200, deadline=None)
@given(jobs, policies)
def test_deciding_again_on_unchanged_input_changes_nothing(
    waiting: list[BurstJob], policy: BurstPolicy
):
    first = decide(*waiting, policy=policy)
    nodes = tuple(
        RentedNode(id=f"{rent.job}-{at}", zone=rent.zone, since_ms=0, job=rent.job)
        for rent in first.rents
        for at in range(rent.nodes)
    )
    after = replace(
        NOW,
        nodes=nodes,
        committed_usd_micros=sum(rent.usd_micros for rent in first.rents),
        rented_ms=tuple(0 for _ in nodes),
    )
    again = decide(*waiting, policy=policy, state=after)
    assert again.rents == ()
    assert again.releases == ()
    assert len(nodes) <= min(policy.nodes_max, policy.changes_max)
    assert after.committed_usd_micros <= usd_micros(policy.budget_usd)


@given(jobs, policies)
def test_a_decision_does_not_depend_on_the_order_of_jobs(
    waiting: list[BurstJob], policy: BurstPolicy
):
    assert decide(*waiting, policy=policy) == decide(*reversed(waiting), policy=policy)


@given(jobs, policies)
def test_every_job_is_rented_for_or_refused_with_a_reason(
    waiting: list[BurstJob], policy: BurstPolicy
):
    found = decide(*waiting, policy=policy)
    named = [one.job for one in (*found.rents, *found.refusals)]
    assert sorted(named) == sorted(one.id for one in waiting)
