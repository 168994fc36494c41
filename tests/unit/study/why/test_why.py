"""Why a job waits under the governed policy, and what would let it start."""

from collections.abc import Sequence

from msgspec.structs import replace

from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import ReserveStart, StartJob
from tenfold.model.events import ActionOrdered, JobStarted, JobSubmitted, NodeJoined
from tenfold.model.fleet.constraints import Level, PlacementConstraints, TopologyMode
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.job import Job, Slot, shape_of
from tenfold.model.job.terms import Hours, Terms
from tenfold.model.policy.governance import GovernanceRules, TeamRules
from tenfold.model.units import HOUR, MINUTE, Millis, UsdMicros
from tenfold.report.reasons.render import Reader, render
from tenfold.study.why.changes import (
    LimitRaise,
    MoveJobs,
    RaiseLimits,
    RentNodes,
    RequestChange,
    ShrinkJobs,
)
from tenfold.study.why.redaction import redacted_why
from tenfold.study.why.remedies import RemedySearch
from tenfold.study.why.why import Why, why
from tenfold.testing.builders import in_domains, nodes

NOW = Millis(HOUR)
PLAIN = GovernanceRules(reservations=0)


def asked(
    name: str,
    gpus: float,
    *,
    team: str = "red",
    per_node: int | None = None,
    where: PlacementConstraints | None = None,
    types: tuple[str, ...] = (),
    terms: Terms | None = None,
    priority: int = 0,
) -> Job:
    return Job(
        id=JobId(name),
        shape=shape_of(gpus, gpus_per_node=per_node, where=where, accelerators=types),
        submitted_ms=Millis(0),
        seq=sum(name.encode()),
        team=TeamId(team),
        priority=priority,
        terms=terms,
    )


def held(members: Sequence[Node], *runs: tuple[Job, str, int]) -> Fleet:
    """A fleet in which jobs hold GPUs of one node each, since time 0."""
    fleet = Fleet()
    fleet.apply_all([NodeJoined(Millis(0), node) for node in members])
    for job, node, gpus in runs:
        fleet.apply(JobSubmitted(Millis(0), job))
        fleet.apply(ActionOrdered(Millis(0), StartJob(job.id, (Slot(NodeId(node), gpus),))))
        fleet.apply(JobStarted(Millis(0), job.id))
    return fleet


def answer(
    fleet: Fleet, job: Job, govern: GovernanceRules = PLAIN, seek: RemedySearch = "cheapest"
) -> Why:
    fleet.apply(JobSubmitted(Millis(0), job))
    return why(fleet, govern, job, NOW, seek)


def together(level: Level, how: TopologyMode = "required") -> PlacementConstraints:
    return PlacementConstraints(within=level, how=how)


def bound(quota: int, borrow: int) -> GovernanceRules:
    red = TeamRules(id=TeamId("red"), quota={"A": quota * 1_000}, borrow={"A": borrow * 1_000})
    return replace(PLAIN, teams=(red, TeamRules(id=TeamId("blue"), quota={"A": 8_000})))


def test_a_job_that_the_decider_starts_is_told_where():
    found = answer(held(nodes(1)), asked("small", 2))
    assert (found.state, found.reason.code) == ("starts", "starts-now")
    assert found.slots == (Slot(NodeId("n0"), 2),)
    assert found.remedies == ()


def test_too_few_free_gpus_are_counted_and_their_holders_named():
    fleet = held(nodes(2), (asked("a", 8), "n0", 8), (asked("bb", 5, team="blue"), "n1", 5))
    found = answer(fleet, asked("wide", 8))
    assert found.reason.code == "too-few-free"
    assert render(found.reason) == (
        "needs 8 GPUs on 1 node; 3 GPUs free, none of 2 eligible nodes has enough"
    )
    assert [(one.team, one.gpus_milli) for one in found.holders.teams] == [
        ("red", 8_000),
        ("blue", 5_000),
    ]
    assert [one.job_id for one in found.holders.jobs] == ["a", "bb"]


def test_scattered_room_is_mended_by_moving_a_small_job():
    fleet = held(nodes(2), (asked("a", 4), "n0", 4), (asked("bb", 2), "n1", 2))
    found = answer(fleet, asked("whole", 8))
    assert found.reason.code == "room-scattered"
    assert found.cheapest is not None
    assert (found.cheapest.kind, found.cheapest.lost_gpu_ms) == ("defragment", 2 * 5 * MINUTE)
    assert isinstance(found.cheapest.change, MoveJobs)
    [moved] = found.cheapest.change.jobs
    assert (moved.job_id, moved.slots) == ("bb", (Slot(NodeId("n0"), 2),))


def test_the_best_rack_is_named_where_all_must_stand_in_one():
    members = in_domains(nodes(6), {"rack": 3})
    taken = [(asked(node, 8), node, 8) for node in ("n0", "n1", "n3")]
    fleet = held(members, *taken)
    found = answer(fleet, asked("gang", 24, per_node=8, where=together("rack")))
    assert found.reason.code == "wrong-domain"
    assert render(found.reason) == (
        "needs 24 GPUs on 3 nodes in one rack; in the best one, `rack-1`, 2 of 3 nodes have enough"
    )
    assert found.cheapest is not None
    assert found.cheapest.change == RequestChange(how="preferred")


def test_a_limit_on_borrowing_is_told_with_its_numbers_and_how_far_to_move_it():
    members = nodes(4, accelerator="A")
    fleet = held(members, (asked("a", 8), "n0", 8))
    found = answer(fleet, asked("more", 4), bound(6, 4))
    assert found.reason.code == "borrow-limit"
    assert render(found.reason) == ("requests 4 A; team `red` holds 8 (quota 6, may borrow 4)")
    own = found.standing[0]
    assert (own.held, own.quota, own.borrowed, own.limit) == (8_000, 6_000, 2_000, 10_000)
    assert found.cheapest is not None
    assert found.cheapest.change == RaiseLimits((LimitRaise(TeamId("red"), "borrow", "A", 2_000),))


def test_what_others_do_not_lend_is_told_and_they_are_asked_to():
    teams = (
        TeamRules(id=TeamId("red"), quota={"A": 8_000}),
        TeamRules(id=TeamId("blue"), quota={"A": 8_000}, lend={"A": 2_000}),
    )
    fleet = held(nodes(2, accelerator="A"), (asked("a", 8), "n0", 8))
    found = answer(fleet, asked("more", 4), replace(PLAIN, teams=teams))
    assert found.reason.code == "not-lent"
    assert "6 of idle quota is not lent out" in render(found.reason)
    assert found.cheapest is not None
    assert found.cheapest.change == RaiseLimits((LimitRaise(TeamId("blue"), "lend", "A", 2_000),))


def test_an_elastic_job_that_the_decider_shrinks_is_no_obstacle():
    elastic = asked("grown", 8, terms=Terms(least_gpus=2, most_gpus=8))
    found = answer(held(nodes(1), (elastic, "n0", 8)), asked("small", 3))
    assert found.cheapest is not None
    assert found.cheapest.kind == "free"


def test_an_elastic_job_is_asked_to_shrink_by_no_more_than_is_needed():
    elastic = asked("grown", 8, terms=Terms(least_gpus=2, most_gpus=8))
    fleet = held(nodes(1), (elastic, "n0", 8))
    found = answer(fleet, asked("small", 3), replace(PLAIN, preempts=False))
    assert found.cheapest is not None
    assert found.cheapest.kind == "shrink"
    assert isinstance(found.cheapest.change, ShrinkJobs)
    assert found.cheapest.change.jobs[0].slots == (Slot(NodeId("n0"), 5),)
    assert render(found.cheapest.advice) == "shrink job `grown` from 8 to 5 GPUs"


def test_rent_is_priced_as_the_policy_says():
    govern = replace(PLAIN, usd_micros_per_gpu_hour={"A": UsdMicros(2_500_000)})
    stays = asked("a", 8, terms=Terms(preemptible=False))
    fleet = held(nodes(1, accelerator="A"), (stays, "n0", 8))
    burst = answer(fleet, asked("whole", 8), govern).cheapest
    assert burst is not None
    assert burst.change == RentNodes(NodeId("n0"), 1)
    assert (burst.rented_gpu_ms, burst.usd_micros) == (8 * HOUR, 20_000_000)


def test_the_largest_size_that_starts_now_is_found():
    stays = Terms(preemptible=False)
    runs = [(asked("a", 3, terms=stays), "n0", 3), (asked("b", 6, terms=stays), "n1", 6)]
    fleet = held(nodes(2), *runs)
    found = answer(fleet, asked("whole", 8), seek="every")
    sizes = [one.change for one in found.remedies if one.kind == "size"]
    assert sizes == [RequestChange(gpus=5)]


def test_another_type_is_named_where_it_has_room():
    members = [*nodes(1, accelerator="A"), *nodes(1, accelerator="B", name="m")]
    fleet = held(members, (asked("a", 8), "n0", 8))
    found = answer(fleet, asked("typed", 8, types=("A",)))
    assert found.cheapest is not None
    assert found.cheapest.change == RequestChange(accelerators=("B",))


def test_a_job_that_comes_after_another_waits_for_it():
    fleet = held(nodes(2), (asked("first", 8), "n0", 8))
    found = answer(fleet, asked("then", 8, terms=Terms(after=(JobId("first"),))))
    assert found.reason.code == "dependency"
    assert render(found.reason) == "waiting for job `first` to end"
    assert found.cheapest is not None
    assert found.cheapest.change == RequestChange(after=())


def test_off_peak_hours_and_full_arrays_hold_jobs_back():
    night = replace(PLAIN, off_peak=(Hours(Millis(22 * HOUR), Millis(24 * HOUR)),))
    found = answer(held(nodes(1)), asked("nightly", 1, terms=Terms(off_peak=True)), night)
    assert found.reason.code == "off-peak"
    member = Terms(array="sweep", array_most=1)
    fleet = held(nodes(1), (asked("one", 1, terms=member), "n0", 1))
    found = answer(fleet, asked("other", 1, terms=member))
    assert found.reason.code == "array-full"
    assert found.cheapest is not None
    assert found.cheapest.change == RequestChange(array_most=2)


def test_a_job_that_never_fits_is_told_which_wish_makes_it_so():
    members = in_domains(nodes(4), {"rack": 2})
    found = answer(held(members), asked("gang", 24, per_node=8, where=together("rack")))
    assert (found.state, found.reason.code) == ("never", "larger-than-a-domain")
    found = answer(held(nodes(1)), asked("tagged", 1, where=PlacementConstraints(needs=("eu",))))
    assert (found.state, found.reason.code) == ("never", "no-node-with-tags")
    assert found.cheapest is not None
    assert found.cheapest.kind == "tags"
    found = answer(held(nodes(1)), asked("typed", 1, types=("B",)))
    assert (found.state, found.reason.code) == ("never", "no-such-accelerator")


def test_a_rack_that_cannot_feed_its_gpus_is_the_reason():
    drawn = {"watts_idle": 0, "watts_per_gpu": 100, "rack_watts": 800}
    members = [replace(node, rack="r", **drawn) for node in nodes(2)]
    found = answer(held(members, (asked("a", 6), "n0", 6)), asked("whole", 8))
    assert found.reason.code == "rack-power"


def test_cpus_that_are_short_are_not_mistaken_for_gpus():
    greedy = replace(asked("a", 1), shape=shape_of(1, cpus=14))
    fleet = held(nodes(1, cpus=16), (greedy, "n0", 1))
    found = answer(fleet, replace(asked("b", 1), shape=shape_of(1, cpus=4)))
    assert found.reason.code == "cpus-or-memory-short"


def test_a_promised_gang_is_told_when_and_where_and_others_of_the_hole_before_it():
    stays = replace(asked("a", 6, terms=Terms(preemptible=False)), limit_ms=Millis(3 * HOUR))
    fleet = held(nodes(1), (stays, "n0", 6))
    gang = asked("gang", 8)
    fleet.apply(JobSubmitted(Millis(0), gang))
    slots = (Slot(NodeId("n0"), 8),)
    fleet.apply(ActionOrdered(NOW, ReserveStart(gang.id, slots, Millis(3 * HOUR), NOW)))
    own = why(fleet, GovernanceRules(), gang, NOW)
    assert own.reason.code == "promised"
    assert own.reservation is not None
    assert (own.reservation.start_ms, own.reservation.slots) == (3 * HOUR, slots)
    assert [one.job_id for one in own.holders.jobs] == ["a"]
    late = replace(asked("late", 1, terms=Terms(preemptible=False)), limit_ms=Millis(9 * HOUR))
    found = answer(fleet, late, GovernanceRules())
    assert found.reason.code == "kept-for-a-promise"
    assert found.cheapest is not None
    assert found.cheapest.change == RequestChange(limit_ms=Millis(2 * HOUR))


def test_jobs_alike_that_came_first_are_counted():
    stays = asked("a", 8, terms=Terms(preemptible=False))
    fleet = held(nodes(1), (stays, "n0", 8))
    fleet.apply(JobSubmitted(Millis(0), asked("x", 8)))
    found = answer(fleet, asked("later", 8))
    assert found.ahead == 1


def test_a_fix_that_starts_other_jobs_too_says_which():
    fleet = held(nodes(1), (asked("a", 8), "n0", 8))
    fleet.apply(JobSubmitted(Millis(0), asked("b", 8)))
    fleet.apply(JobSubmitted(Millis(0), asked("c", 8, team="blue")))
    found = answer(fleet, asked("d", 8), seek="every")
    rents = [one for one in found.remedies if isinstance(one.change, RentNodes)]
    assert [one.also_starts for one in rents] == [("c", "b")]
    assert render(rents[0].advice).endswith("; this also starts `c`, `b`")
    for_red = redacted_why(found, fleet, Reader("red"))
    rents = [one for one in for_red.remedies if isinstance(one.change, RentNodes)]
    assert [one.also_starts for one in rents] == [("b",)]
    assert rents[0].sentence.endswith("; this also starts `b` and 1 job of other teams")


def test_a_fix_for_one_job_names_no_other():
    fleet = held(nodes(1), (asked("a", 8), "n0", 8))
    found = answer(fleet, asked("d", 8), seek="every")
    assert {one.also_starts for one in found.remedies} == {()}
    assert all("also" not in one.advice.fields for one in found.remedies)
