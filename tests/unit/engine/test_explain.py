"""The story of a job, and why it waits."""

from functools import partial

from msgspec.structs import replace

from replay_builders import job, node, request
from tenfold.compose.policies import placing_decider
from tenfold.compose.simulation import SimRequest, simulate
from tenfold.engine.explain import JobHistory, explain
from tenfold.engine.obstacle import obstacle_of
from tenfold.engine.queue_position import jobs_ahead
from tenfold.engine.recording import Recording
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import ReserveStart, StartJob, StopJob
from tenfold.model.events import (
    ActionOrdered,
    JobCancelled,
    JobStarted,
    JobStopped,
    JobSubmitted,
    NodeJoined,
    NodeLost,
)
from tenfold.model.fault import Fault
from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Job, Slot, shape_of
from tenfold.model.job.terms import Terms
from tenfold.model.policy.policy import POLICIES, Policy
from tenfold.model.reason import Reason
from tenfold.model.units import MINUTE, SECOND, Millis
from tenfold.report.reasons.render import render
from tenfold.sim.world import SimSettings


def story(asked: SimRequest, name: str) -> JobHistory:
    recording = Recording()
    simulate(asked, journal=recording, witnesses=[recording])
    told = explain(recording.lines, JobId(name), partial(placing_decider, asked.policy))
    assert told is not None
    return told


def codes(told: JobHistory) -> list[str]:
    return [stage.code for stage in told.stages]


def fleet_with(*jobs: Job, runs: Job | None = None) -> Fleet:
    """Two nodes of eight GPUs; `runs` holds four GPUs of the first, the others wait."""
    fleet = Fleet()
    fleet.apply_all([NodeJoined(Millis(0), node("n0")), NodeJoined(Millis(0), node("n1"))])
    if runs is not None:
        start = StartJob(runs.id, (Slot(NodeId("n0"), 4),))
        fleet.apply(JobSubmitted(Millis(0), runs))
        fleet.apply(ActionOrdered(Millis(0), start))
        fleet.apply(JobStarted(Millis(0), runs.id))
    fleet.apply_all([JobSubmitted(Millis(0), one) for one in jobs])
    return fleet


def test_a_job_that_found_room_at_once_has_a_short_story():
    told = story(request("fifo", jobs=[job("a")], faults=[]), "a")
    assert codes(told) == ["submitted", "start-ordered", "started", "ended"]
    assert (told.state, told.waited_ms, told.ran_ms) == ("ended", 0, 600 * SECOND)
    assert told.obstacle is None


def test_a_job_says_what_it_waited_for_and_who_made_room():
    jobs = [job("first", 32), job("second", 8, at_s=10, seq=1)]
    told = story(request("fifo", jobs=jobs, faults=[]), "second")
    assert codes(told) == ["submitted", "waited", "start-ordered", "started", "ended"]
    assert "needs 8 GPUs on 1 node; 0 GPUs free, none of 4 eligible nodes has enough" in render(
        told.stages[1].why
    )
    assert render(told.stages[2].why) == "could start when job `first` ended"
    assert told.waited_ms == 590 * SECOND


def test_a_preempted_job_says_by_whom_and_what_was_saved():
    jobs = [job("long", 32, lasts_s=36_000), job("short", 32, at_s=7_200, lasts_s=60, seq=1)]
    told = story(request("las", jobs=jobs, faults=[]), "long")
    assert codes(told)[3:] == [
        "stop-ordered",
        "stopped",
        "waited",
        "start-ordered",
        "started",
        "ended",
    ]
    assert "preempted under policy `las` for job `short`" in render(told.stages[3].why)
    assert "2h 00m of work saved" in render(told.stages[4].why)
    assert render(told.stages[7].why).endswith("attempt 2, resuming from 2h 00m of saved work")
    assert told.waited_ms == 60 * SECOND


def test_a_job_that_lost_its_node_says_which_and_why():
    gone = Fault(Millis(5 * MINUTE), NodeId("n0"), Millis(9 * MINUTE), "xid-79")
    settings = SimSettings(start_delay_ms=Millis(SECOND))
    told = story(request("fifo", jobs=[job("a", 32)], faults=[gone], settings=settings), "a")
    assert codes(told)[3:7] == ["stopped", "waited", "start-ordered", "started"]
    assert render(told.stages[3].why).startswith("node `n0` was lost (xid-79)")
    assert "(1 unavailable)" in render(told.stages[4].why)
    assert render(told.stages[5].why) == "could start when node `n0` returned"
    assert told.stages[6].at_ms == told.stages[5].at_ms + SECOND


def test_a_refused_job_says_why():
    told = story(request("fifo", jobs=[job("huge", 64)], faults=[]), "huge")
    assert codes(told) == ["submitted", "refused"]
    assert told.state == "refused"
    assert "needs 8 nodes" in render(told.stages[1].why)


def test_a_job_that_nobody_knows_has_no_story():
    assert explain([], JobId("a")) is None


def test_a_waiting_job_is_told_what_stands_in_its_way_where_the_record_ends():
    lines = [
        NodeJoined(Millis(0), node("n0")),
        JobSubmitted(Millis(5), job("a", 8)),
        NodeLost(Millis(9), NodeId("n0"), "psu"),
        JobSubmitted(Millis(9), job("b", 8, seq=1)),
    ]
    told = explain(lines, JobId("b"), lambda: placing_decider(Policy(name="fifo")))
    assert told is not None
    assert told.state == "pending"
    assert told.obstacle is not None
    assert told.obstacle.room is not None
    assert (told.obstacle.room.nodes_away, told.obstacle.room.nodes_with_room) == (1, 0)
    taken_back = explain([*lines, JobCancelled(Millis(12), JobId("b"))], JobId("b"))
    assert taken_back is not None
    assert taken_back.state == "cancelled"


def test_an_obstacle_counts_what_is_free_and_what_is_needed():
    gang = job("gang", 16)
    found = obstacle_of(fleet_with(gang, runs=job("r", 4)), gang, Millis(0))
    assert found.reason.code == "too-few-free"
    assert (room := found.room) is not None
    assert (room.nodes_needed, room.gpus_per_node, room.nodes_with_room) == (2, 8, 1)
    assert (room.gpus_free, room.gpus_needed) == (12, 16)


def test_a_job_whose_tagged_nodes_are_down_waits_for_them():
    bound = replace(job("bound", 8), shape=shape_of(8, where=PlacementConstraints(needs=("eu",))))
    fleet = Fleet()
    fleet.apply(NodeJoined(Millis(0), replace(node("n0"), tags=("eu",))))
    fleet.apply(NodeJoined(Millis(0), node("n1")))
    fleet.apply(JobSubmitted(Millis(5), bound))
    assert obstacle_of(fleet, bound, Millis(6)).reason.code != "tagged-nodes-down"
    fleet.apply(NodeLost(Millis(9), NodeId("n0"), "site-lost"))
    reason = obstacle_of(fleet, bound, Millis(10)).reason
    assert reason.code == "tagged-nodes-down"
    assert render(reason) == (
        "needs 8 GPUs on 1 node tagged `eu`; all 1 node with these tags are unavailable, "
        "and it may not run on others"
    )


def test_free_gpus_that_lie_apart_are_called_scattered():
    wide = job("wide", 8)
    fleet = fleet_with(job("x", 8, seq=1), wide, runs=job("r", 4))
    start = StartJob(JobId("x"), (Slot(NodeId("n1"), 4),))
    fleet.apply(ActionOrdered(Millis(0), start))
    assert obstacle_of(fleet, wide, Millis(0)).reason.code == "room-scattered"


def test_a_job_with_room_waits_for_its_turn():
    small, other = job("small", 1), job("other", 1, seq=1)
    found = obstacle_of(fleet_with(small, other), small, Millis(0))
    assert found.reason.code == "others-first"


def test_the_only_pending_job_with_room_waits_for_no_other_job():
    small = job("small", 1)
    assert obstacle_of(fleet_with(small), small, Millis(0)).reason.code == "next-pass"


def test_under_slurm_a_job_with_room_waits_for_the_next_pass():
    jobs = [job("a", 1), job("b", 1, seq=1)]
    for one in jobs:
        found = obstacle_of(
            fleet_with(*jobs), one, Millis(7_000), placing_decider(Policy(name="slurm"))
        )
        said = "capacity is free: waits for the next scheduling pass in 2 s"
        assert render(found.reason) == said


def test_a_job_that_waits_for_another_says_so_although_there_is_room():
    first = job("b", 1)
    then = replace(job("c", 1, seq=1), terms=Terms(after=(first.id,)))
    found = obstacle_of(fleet_with(then, runs=first), then, Millis(0))
    assert render(found.reason) == "waiting for job `b` to end"


def test_a_shape_that_no_nodes_hold_is_told_so():
    huge = job("huge", 64)
    assert obstacle_of(fleet_with(huge), huge, Millis(0)).reason.code == "never-fits"


def test_a_refusal_is_told_in_the_words_of_the_decider_that_would_make_it():
    huge = job("huge", 64)
    fleet = fleet_with(huge)
    found = obstacle_of(fleet, huge, Millis(0), placing_decider(Policy(name="fifo")))
    assert (found.never, found.reason.code) == (True, "larger-than-the-fleet")
    elsewhere = replace(job("eu"), shape=shape_of(8, where=PlacementConstraints(needs=("eu",))))
    fleet = fleet_with(elsewhere)
    found = obstacle_of(fleet, elsewhere, Millis(0), placing_decider(Policy(name="governed")))
    assert (found.never, found.reason.code) == (True, "no-node-with-tags")


def test_a_gang_that_must_share_a_rack_is_told_so_by_the_policy_that_heeds_it():
    gang = replace(
        job("gang"), shape=shape_of(16, where=PlacementConstraints(within="rack", how="required"))
    )
    fleet = fleet_with(gang)
    fleet.apply(JobSubmitted(Millis(0), job("far", 8, seq=1)))
    fleet.apply(NodeJoined(Millis(0), replace(node("n2"), rack="r")))
    fleet.apply(NodeJoined(Millis(0), replace(node("n3"), rack="r")))
    fleet.apply(ActionOrdered(Millis(0), StartJob(JobId("far"), (Slot(NodeId("n3"), 8),))))
    governed = obstacle_of(fleet, gang, Millis(0), placing_decider(Policy(name="governed")))
    assert governed.reason.code == "wrong-domain"
    said = "needs 16 GPUs on 2 nodes in one rack; in the best one, `r`, 1 of 2 nodes has enough"
    assert render(governed.reason) == said
    plain = obstacle_of(fleet, gang, Millis(0), placing_decider(Policy(name="fifo")))
    assert plain.reason.code == "next-pass"


def test_racks_that_cannot_feed_a_job_are_told_from_nodes_that_are_full():
    watts = {"rack": "r", "watts_per_gpu": 100, "rack_watts": 1_000}
    fleet = Fleet()
    members = [replace(node(name), **watts) for name in ("n0", "n1")]
    fleet.apply_all([NodeJoined(Millis(0), each) for each in members])
    fleet.apply(JobSubmitted(Millis(0), job("first", 8)))
    fleet.apply(ActionOrdered(Millis(0), StartJob(JobId("first"), (Slot(NodeId("n0"), 8),))))
    second = job("second", 8, seq=1)
    fleet.apply(JobSubmitted(Millis(0), second))
    found = obstacle_of(fleet, second, Millis(0), placing_decider(Policy(name="governed")))
    assert found.reason.code == "rack-power"
    assert (
        render(found.reason)
        == "needs 8 GPUs on 1 node; rack power limit reached: none of 2 eligible nodes has enough"
    )


def test_jobs_ahead_are_counted_as_the_policy_would_start_them():
    jobs = [job(f"j{n}", 16, seq=n, lasts_s=100 - n) for n in range(5)]
    fleet = fleet_with(*jobs)
    last = jobs[-1].id
    before = dict(fleet.pending)
    assert jobs_ahead(fleet, last, Millis(0), placing_decider(Policy(name="fifo"))) == 4
    assert jobs_ahead(fleet, last, Millis(0), placing_decider(Policy(name="sjf"))) == 0
    assert fleet.pending == before
    for name in POLICIES:
        decider = placing_decider(Policy(name=name))
        assert jobs_ahead(fleet, last, Millis(0), decider) in range(5)


def test_displaced_jobs_that_wait_do_not_hide_why_another_does():
    late = job("late", 16)
    fleet = fleet_with(late, runs=job("first", 4))
    why = Reason("outranked", sentence="another goes first")
    fleet.apply(ActionOrdered(Millis(1), StopJob(JobId("first"), "preempted", why)))
    fleet.apply(JobStopped(Millis(1), JobId("first"), "preempted", Millis(0)))
    fleet.apply(NodeLost(Millis(2), NodeId("n0")))
    decider = placing_decider(Policy(name="tenfold"))
    assert obstacle_of(fleet, late, Millis(3), decider).reason.code


def test_a_reserved_start_that_slips_says_by_how_much_and_what_still_runs_there():
    held = Job(id=JobId("held"), shape=shape_of(8), submitted_ms=Millis(0))
    gang = Job(id=JobId("gang"), shape=shape_of(8), submitted_ms=Millis(0), seq=1)
    slots = (Slot(NodeId("n0"), 8),)

    def reserved(at_min: int, start_min: int, given: tuple[Slot, ...] = slots) -> ActionOrdered:
        action = ReserveStart(gang.id, given, Millis(start_min * MINUTE), Millis(0))
        return ActionOrdered(Millis(at_min * MINUTE), action)

    told = explain(
        [
            NodeJoined(Millis(0), node("n0")),
            JobSubmitted(Millis(0), held),
            ActionOrdered(Millis(0), StartJob(held.id, slots)),
            JobStarted(Millis(0), held.id),
            JobSubmitted(Millis(0), gang),
            reserved(1, 10),
            reserved(10, 80),
            reserved(80, 80, ()),
        ],
        gang.id,
    )
    assert told is not None
    assert [render(stage.why) for stage in told.stages if "reserv" in render(stage.why)] == [
        "reserved for it: starts within 9 min on `n0`",
        "reserved for it: starts within 1h 10m on `n0`; postponed by 1h 10m: job `held` still runs"
        " there; it has no time limit, so its end is a guess",
        "its reservation was withdrawn",
    ]
