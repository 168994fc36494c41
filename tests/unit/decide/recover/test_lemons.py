"""Which nodes are blamed: no world, no clock, facts applied to a fleet."""

import pytest

from tenfold.compose.node_rules import cordon_rule_of
from tenfold.decide.recover.lemons import CordonThresholds, blame_rule, nodes_to_cordon
from tenfold.engine.digest import fleet_digest
from tenfold.fleet.image import fleet_from, image_of
from tenfold.live.blame import FailureCordons
from tenfold.model.errors import InputError
from tenfold.model.events import (
    JobEnded,
    NodeCordoned,
    NodeReturned,
)
from tenfold.model.ids import NodeId
from tenfold.model.job.failures import AttemptFailure
from tenfold.model.units import HOUR, Millis
from tenfold.report.reasons.render import render
from troubled import RULE, Story

BAD, GOOD = NodeId("n1"), NodeId("n2")


def lemon(nodes: int = 10) -> Story:
    """Two jobs crash on one node and run to their ends on another."""
    story = Story(nodes)
    for _ in range(2):
        job = story.runs(BAD)
        story.crashes(job)
        story.again(job, GOOD)
        story.completes(job)
    return story


def test_a_node_is_blamed_when_jobs_that_crashed_there_run_to_their_ends_elsewhere():
    story = lemon()
    assert story.blamed() == [BAD]
    assert story.reason().code == "keeps-failing-jobs"
    assert "job `job-1`, attempt 1 (exited); job `job-2`, attempt 1 (exited)" in render(
        story.reason()
    )


def test_a_job_that_crashes_on_every_node_takes_none_out():
    story = Story()
    job = story.runs(NodeId("n1"))
    for number in range(2, 11):
        story.crashes(job)
        story.completes(story.runs(NodeId(f"n{number % 10 + 1}"), "bob"))
        story.again(job, NodeId(f"n{number}"))
    assert story.blamed() == []


def test_two_jobs_that_crash_everywhere_take_none_out_either():
    story = Story()
    jobs = [story.runs(BAD, "ann"), story.runs(BAD, "bob")]
    for node in ("n2", "n3"):
        for job in jobs:
            story.crashes(job)
            story.again(job, NodeId(node))
    story.completes(story.runs(NodeId("n4"), "eve"))
    assert story.blamed() == []


def test_one_persons_wrong_commands_do_not_blame_the_node_they_are_packed_on():
    story = Story()
    for _ in range(5):
        story.fails(story.runs(BAD, "ann"))
    story.completes(story.runs(GOOD, "bob"))
    assert story.blamed() == []


def test_members_of_one_array_count_as_one():
    story = Story()
    for _ in range(5):
        story.fails(story.runs(BAD, "ann", array="sweep-1"), "silent")
    story.completes(story.runs(GOOD, "bob"))
    assert story.blamed() == []


def test_jobs_of_different_people_that_fail_on_one_node_blame_it():
    story = Story()
    story.fails(story.runs(BAD, "ann"))
    story.fails(story.runs(BAD, "bob"))
    story.completes(story.runs(GOOD, "eve"))
    assert story.blamed() == [BAD]


def test_losses_and_silence_count_for_each_job():
    story = Story()
    story.fails(story.runs(BAD), "silent")
    story.fails(story.runs(BAD), "lost")
    assert story.blamed() == [], "nothing shows that other nodes do better"
    story.completes(story.runs(GOOD))
    assert story.blamed() == [BAD]


def test_running_out_of_its_own_memory_blames_no_node():
    story = Story()
    story.fails(story.runs(BAD, "ann"), "out-of-memory")
    story.fails(story.runs(BAD, "bob"), "out-of-memory")
    story.completes(story.runs(GOOD, "eve"))
    assert story.blamed() == []


def test_a_success_in_between_clears_the_node():
    story = Story()
    story.fails(story.runs(BAD, "ann"))
    story.completes(story.runs(BAD, "bob"))
    story.fails(story.runs(BAD, "bob"))
    story.completes(story.runs(GOOD, "eve"))
    assert story.blamed() == []


def test_a_pool_that_fails_as_a_whole_loses_no_node():
    story = Story(4)
    for node in ("n1", "n2", "n3"):
        for owner in ("ann", "bob"):
            story.fails(story.runs(NodeId(node), owner), "lost")
    story.completes(story.runs(NodeId("n4"), "eve"))
    assert story.blamed() == []


def test_old_failures_do_not_count():
    story = lemon()
    story.now_ms += 24 * HOUR + 1
    assert story.blamed() == []


def test_no_more_than_a_share_of_the_nodes_is_taken_out_the_worst_first():
    story = Story(10)
    for node, failures in (("n1", 2), ("n2", 3)):
        for number in range(failures):
            story.fails(story.runs(NodeId(node), f"p{number}"), "lost")
    story.completes(story.runs(NodeId("n3")))
    assert story.blamed(CordonThresholds(share_milli_most=200)) == [NodeId("n2"), NodeId("n1")]
    assert story.blamed() == [NodeId("n2")]
    story.fleet.apply(NodeCordoned(Millis(story.now_ms), NodeId("n2"), story.reason()))
    assert story.blamed() == [], "one of ten is out already"
    assert story.blamed(CordonThresholds(is_on=False)) == []


def test_a_node_that_is_alone_in_its_pool_is_never_taken_out():
    story = Story(1)
    story.fails(story.runs(BAD, "ann"), "lost")
    story.fails(story.runs(BAD, "bob"), "lost")
    assert story.blamed() == []


def test_a_node_that_somebody_takes_back_begins_with_a_clean_record():
    story = lemon()
    story.fleet.apply(NodeCordoned(Millis(story.now_ms), BAD, story.reason()))
    assert BAD in story.fleet.failure_log.blamed
    story.fleet.apply(NodeReturned(Millis(story.now_ms), BAD))
    assert story.blamed() == []
    assert not story.fleet.failure_log.blamed


def test_a_restored_fleet_judges_as_the_one_before():
    story = lemon()
    other = fleet_from(image_of(story.fleet))
    assert fleet_digest(other) == fleet_digest(story.fleet)
    now_ms = Millis(story.now_ms)
    assert nodes_to_cordon(other, other.failure_log, now_ms, RULE) == nodes_to_cordon(
        story.fleet, story.fleet.failure_log, now_ms, RULE
    )


def test_the_cordon_comes_with_the_failure_that_calls_for_it():
    story = Story()
    story.fails(story.runs(BAD, "ann"), "lost")
    story.completes(story.runs(GOOD, "bob"))
    last = story.runs(BAD, "eve")
    blame = FailureCordons(cordon_rule_of(RULE), story.fleet)
    now_ms = Millis(story.now_ms + 1)
    assert blame.cordons((), now_ms) == []
    fact = JobEnded(now_ms, last, "failed", 1, AttemptFailure(1, "lost", now_ms, BAD))
    [cordon] = blame.cordons((fact,), now_ms)
    assert isinstance(cordon, NodeCordoned)
    assert cordon.node_id == BAD
    story.fleet.apply_all([fact, cordon])
    assert blame.cordons((), now_ms) == []


def test_a_controller_that_was_killed_before_it_judged_judges_when_it_comes_back():
    story = lemon()
    assert FailureCordons(cordon_rule_of(RULE), story.fleet).cordons((), Millis(story.now_ms))


def test_crashes_are_counted_until_something_new_is_saved():
    story = Story()
    job = story.runs(BAD)
    counts: list[int] = []
    for saved_ms in (0, 0, 50, 50, 70):
        story.crashes(job, saved_ms=saved_ms)
        counts.append(story.fleet.failure_log.crashes[job].count)
        story.again(job, BAD)
    assert counts == [1, 2, 1, 2, 1]
    story.completes(job)
    assert not story.fleet.failure_log.crashes


@pytest.mark.parametrize("share", [-0.1, 1.5])
def test_a_share_beyond_all_nodes_is_refused(share: float):
    with pytest.raises(InputError):
        blame_rule(share)


def test_a_job_that_met_two_bad_nodes_counts_against_both_once_it_is_done():
    story = Story(20)
    worse = NodeId("n3")
    for node in (BAD, worse):
        job = story.runs(node)
        story.crashes(job)
        story.again(job, GOOD)
        story.completes(job)
    job = story.runs(BAD)
    story.crashes(job)
    story.again(job, worse)
    story.crashes(job)
    assert story.blamed() == []
    story.again(job, GOOD)
    story.completes(job)
    assert story.blamed() == [BAD, worse]
