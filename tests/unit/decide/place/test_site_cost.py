"""What a job costs at each site, and where it starts: the figures are worked out by hand."""

from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from tenfold.compose.policies import placing_decider
from tenfold.decide.place.cheapest_site import CheapestSite
from tenfold.decide.place.site_cost import site_costs
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import StartJob
from tenfold.model.events import JobSubmitted, NodeCordoned, NodeJoined
from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, PoolId, SiteId, TeamId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.job.terms import Terms
from tenfold.model.policy.governance import GovernanceRules, TeamRules
from tenfold.model.policy.policy import Policy
from tenfold.model.policy.site_costs import DataPlace, SiteCosts, SiteRoute
from tenfold.model.units import HOUR, Millis, usd_micros
from tenfold.report.reasons.render import render

GPU = "H100"
COSTS = SiteCosts(
    usd_micros_per_gpu_hour={
        "north": {GPU: usd_micros(2.5)},
        "south": {GPU: usd_micros(2.0)},
    },
    routes=(SiteRoute("north", "south", 1e9, usd_micros(0.02)),),
    data={"corpus": DataPlace(3_600_000_000_000, ("north",)), "far": DataPlace(1, ("moon",))},
)


def job(name: str = "j", *, hours: float | None = 10, gpus: int = 8, **of_job: Any) -> Job:
    data = of_job.pop("data", UNSET)
    where = of_job.pop("where", None)
    return Job(
        id=JobId(name),
        shape=shape_of(gpus, where=where),
        submitted_ms=Millis(0),
        limit_ms=None if hours is None else Millis(round(hours * HOUR)),
        terms=Terms(data=data) if data else None,
        **of_job,
    )


def fleet(*jobs: Job, nodes: int = 1, tags: tuple[str, ...] = ()) -> Fleet:
    made = Fleet()
    for site in ("north", "south"):
        for number in range(nodes):
            node = Node(
                id=NodeId(f"{site}-{number}"),
                pool=PoolId(site),
                site=SiteId(site),
                accelerator=GPU,
                gpus=8,
                tags=tags if site == "north" else (),
            )
            made.apply(NodeJoined(Millis(0), node))
    for seq, one in enumerate(jobs):
        made.apply(JobSubmitted(Millis(0), replace(one, seq=seq)))
    return made


def starts(made: Fleet, policy: Policy | None = None) -> dict[str, StartJob]:
    policy = policy or Policy(name="fifo", sites=COSTS)
    decided = placing_decider(policy).decide(made, Millis(1_000), None)
    return {one.job_id: one for one in decided.actions if isinstance(one, StartJob)}


def site_of(made: Fleet, action: StartJob) -> str:
    [site] = dict.fromkeys(made.nodes[slot.node].site for slot in action.slots)
    return site


def test_the_run_is_price_times_gpus_times_the_time_limit():
    found = site_costs(job(), GPU, COSTS)
    assert {site: one.total for site, one in found.items()} == {
        "north": usd_micros(200),
        "south": usd_micros(160),
    }


def test_what_is_saved_is_not_paid_for_again():
    assert site_costs(job(), GPU, COSTS, 5 * HOUR)["south"].total == usd_micros(80)


def test_an_hour_is_assumed_without_a_time_limit():
    assert site_costs(job(hours=None), GPU, COSTS)["south"].total == usd_micros(16)


def test_data_elsewhere_costs_egress_and_gpus_that_wait():
    """3.6 TB at 1 GB/s take an hour."""
    south = site_costs(job(data=("corpus",)), GPU, COSTS)["south"]
    assert (south.staging_ms, south.staging, south.egress) == (
        HOUR,
        usd_micros(16),
        usd_micros(72),
    )
    assert south.total == usd_micros(160 + 16 + 72)


def test_data_without_a_link_puts_a_site_last():
    found = site_costs(job(data=("far",)), GPU, COSTS)
    assert [one.is_reachable for one in found.values()] == [False, False]


def test_a_site_without_a_price_is_left_out():
    assert site_costs(job(), "A100", COSTS) == {}


def test_a_job_starts_at_the_cheaper_site_and_says_why():
    made = fleet(job())
    [action] = starts(made).values()
    assert site_of(made, action) == "south"
    assert action.because is not UNSET
    assert render(action.because) == "`south` costs $160.00, `north` $200.00"


def test_a_job_starts_where_its_data_is():
    made = fleet(job(data=("corpus",)))
    [action] = starts(made).values()
    assert site_of(made, action) == "north"
    assert action.because is not UNSET
    assert render(action.because) == (
        "`north` costs $200.00, `south` $248.00 with 1h 00m of staging and $72.00 of egress"
    )


def test_the_second_job_takes_what_is_left():
    made = fleet(job("a"), job("b"))
    found = starts(made)
    assert [site_of(made, found[name]) for name in ("a", "b")] == ["south", "north"]
    assert found["b"].because is not UNSET
    assert (
        render(found["b"].because)
        == "`north` costs $200.00, and `south` at $160.00 has no free nodes for it"
    )


def test_a_gang_moves_as_a_whole_or_not_at_all():
    made = fleet(job("big", gpus=16), nodes=2)
    [action] = starts(made).values()
    assert [slot.node for slot in action.slots] == ["south-0", "south-1"]
    made.apply(NodeCordoned(Millis(0), NodeId("south-1")))
    [action] = starts(made).values()
    assert site_of(made, action) == "north"


def test_tags_hold_whatever_it_costs():
    made = fleet(job(where=PlacementConstraints(needs=("eu",))), tags=("eu",))
    [action] = starts(made).values()
    assert site_of(made, action) == "north"


def test_the_residency_of_a_team_holds_whatever_it_costs():
    team = TeamRules(id=TeamId("red"), residency=("eu",), quota={GPU: 16_000})
    policy = Policy(name="governed", govern=GovernanceRules(teams=(team,)), sites=COSTS)
    made = fleet(job(team=TeamId("red")), tags=("eu",))
    [action] = starts(made, policy).values()
    assert site_of(made, action) == "north"


def test_every_policy_that_may_move_jobs_uses_the_cheaper_site():
    for name in ("tenfold", "fifo", "las", "fair", "governed"):
        made = fleet(job())
        [action] = starts(made, Policy(name=name, sites=COSTS)).values()
        assert site_of(made, action) == "south", name


def test_equal_costs_leave_the_choice_of_the_policy():
    same = SiteCosts(usd_micros_per_gpu_hour={"north": {GPU: 2}, "south": {GPU: 2}})
    made = fleet(job())
    [action] = starts(made, Policy(name="fifo", sites=same)).values()
    assert (site_of(made, action), action.because) == ("north", UNSET)


def test_jobs_whose_data_is_apart_each_start_where_theirs_is():
    made = fleet(job("first"), job("second", data=("corpus",)))
    found = starts(made)
    assert [site_of(made, found[name]) for name in ("first", "second")] == ["south", "north"]


def test_no_node_is_given_twice():
    jobs = [job(f"j{number}", gpus=4) for number in range(9)]
    made = fleet(*jobs, nodes=2)
    taken: dict[NodeId, int] = {}
    for action in starts(made).values():
        for slot in action.slots:
            taken[slot.node] = taken.get(slot.node, 0) + slot.gpus
    assert taken == dict.fromkeys(taken, 8)
    assert len(taken) == 4


def test_a_wrapper_names_the_policy_that_decides():
    inner = placing_decider(Policy(name="fifo"), has_gates=False)
    assert CheapestSite(inner, COSTS).name == inner.name
