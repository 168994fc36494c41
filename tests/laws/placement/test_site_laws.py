"""Laws of the choice of a site: no start is lost, no node is given twice, and it costs no more."""

from hypothesis import given
from hypothesis import strategies as st

from tenfold.compose.policies import placing_decider
from tenfold.decide.place.cheapest_site import moved
from tenfold.decide.place.site_cost import site_costs
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import StartJob
from tenfold.model.events import JobSubmitted, NodeJoined
from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, PoolId, SiteId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.job.terms import Terms
from tenfold.model.policy.policy import Policy
from tenfold.model.policy.site_costs import DataPlace, SiteCosts, SiteRoute
from tenfold.model.units import HOUR, Millis, UsdMicros

SITES = ("north", "south", "west")
GPU = "H100"


@st.composite
def costs(draw: st.DrawFn) -> SiteCosts:
    price = st.integers(1, 5).map(lambda usd: UsdMicros(usd * 1_000_000))
    holders = st.lists(st.sampled_from(SITES), min_size=1, unique=True).map(tuple)
    pairs = [("north", "south"), ("north", "west"), ("south", "west")]
    return SiteCosts(
        usd_micros_per_gpu_hour={site: {GPU: draw(price)} for site in SITES},
        routes=tuple(SiteRoute(a, b, 1e9, draw(price)) for a, b in pairs if draw(st.booleans())),
        data={name: DataPlace(draw(st.integers(1, 10**13)), draw(holders)) for name in ("x", "y")},
    )


@st.composite
def jobs(draw: st.DrawFn, seq: int) -> Job:
    data = draw(st.lists(st.sampled_from(("x", "y", "unknown")), unique=True).map(tuple))
    needs = draw(st.sampled_from(((), (), ("eu",))))
    return Job(
        id=JobId(f"j{seq}"),
        shape=shape_of(
            draw(st.sampled_from((1, 2, 4, 8, 16))),
            where=PlacementConstraints(needs=needs) if needs else None,
        ),
        submitted_ms=Millis(0),
        seq=seq,
        limit_ms=Millis(draw(st.integers(1, 100)) * HOUR),
        terms=Terms(data=data) if data else None,
    )


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    made = Fleet()
    for site in SITES:
        tags = ("eu",) if draw(st.booleans()) else ()
        for number in range(draw(st.integers(0, 3))):
            made.apply(
                NodeJoined(
                    Millis(0),
                    Node(
                        id=NodeId(f"{site}-{number}"),
                        pool=PoolId(site),
                        site=SiteId(site),
                        accelerator=GPU,
                        gpus=8,
                        tags=tags,
                    ),
                )
            )
    for seq in range(draw(st.integers(1, 8))):
        made.apply(JobSubmitted(Millis(0), draw(jobs(seq))))
    return made


@given(fleets(), costs())
def test_the_same_jobs_start_on_free_nodes_with_their_tags_and_cost_no_more(
    fleet: Fleet, terms: SiteCosts
):
    decided = placing_decider(Policy(name="fifo")).decide(fleet, Millis(1_000), None).actions
    before = [one for one in decided if isinstance(one, StartJob)]
    found = moved(fleet, decided, terms)
    after = [one for one in found if isinstance(one, StartJob)]
    assert [one.job_id for one in before] == [one.job_id for one in after]
    free = dict(fleet.gpus_free)
    for one in after:
        job = fleet.pending[one.job_id]
        assert sum(slot.gpus for slot in one.slots) == job.shape.gpus
        assert len({fleet.nodes[slot.node].site for slot in one.slots}) == 1
        for slot in one.slots:
            free[slot.node] -= slot.gpus
            needs = () if job.shape.where is None else job.shape.where.needs
            assert all(tag in fleet.nodes[slot.node].tags for tag in needs)
    assert min(free.values(), default=0) >= 0
    assert total(fleet, after, terms) <= total(fleet, before, terms)


def total(fleet: Fleet, starts: list[StartJob], terms: SiteCosts) -> tuple[int, int]:
    ranks = [
        site_costs(fleet.pending[one.job_id], GPU, terms)[fleet.nodes[one.slots[0].node].site].rank
        for one in starts
    ]
    return sum(far for far, _ in ranks), sum(usd for _, usd in ranks)


@given(fleets(), costs())
def test_the_choice_depends_on_the_view_alone(fleet: Fleet, terms: SiteCosts):
    policy = Policy(name="fifo", sites=terms)
    first = placing_decider(policy).decide(fleet, Millis(1_000), None)
    assert placing_decider(policy).decide(fleet, Millis(1_000), None) == first
