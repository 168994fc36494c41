"""Facts become rows without a database: what each of them changes."""

from tenfold.journal.derive import ReadTableUpdate
from tenfold.model.actions import ResizeJob, StartJob, StopJob
from tenfold.model.events import (
    ActionOrdered,
    ActionRefused,
    Event,
    JobEnded,
    JobIdled,
    JobRefused,
    JobResized,
    JobStarted,
    JobStopped,
    JobSubmitted,
    NodeCordoned,
    NodeJoined,
    NodeLost,
    NodeReturned,
    job_of,
    node_of,
)
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import JobState, JobStatus, Slot
from tenfold.model.reason import Reason
from tenfold.model.units import Millis
from tenfold.testing.builders import job, nodes

A = JobId("job-1")
WHY = Reason("stale", sentence="the node is gone")
ON_ONE, ON_TWO = (Slot(NodeId("n0"), 1),), (Slot(NodeId("n0"), 1), Slot(NodeId("n1"), 1))
START, STOP = StartJob(A, ON_ONE), StopJob(A, "preempted", WHY)
GROW = ResizeJob(A, ON_TWO, WHY)


def at(ms: int) -> Millis:
    return Millis(ms)


def drafted(*events: Event) -> ReadTableUpdate:
    draft = ReadTableUpdate()
    for seq, event in enumerate((JobSubmitted(at(1), job(1, 1)), *events), start=1):
        draft.apply(seq, event)
    return draft


def running(*events: Event) -> ReadTableUpdate:
    return drafted(ActionOrdered(at(2), START), JobStarted(at(3), A), *events)


def test_every_end_has_its_state():
    ends: dict[JobStatus, JobState] = {
        "completed": "succeeded",
        "failed": "failed",
        "timeout": "failed",
        "cancelled": "cancelled",
    }
    for status, state in ends.items():
        draft = running(JobEnded(at(9), A, status))
        assert (draft.jobs[A].state, draft.jobs[A].reason) == (state, status)
        assert (draft.attempts[A].ended_ms, draft.attempts[A].exit_code) == (9, None)


def test_a_stop_that_is_refused_leaves_the_job_running():
    draft = running(ActionOrdered(at(4), STOP), ActionRefused(at(5), STOP, WHY))
    assert draft.jobs[A].state == "running"


def test_a_refusal_that_comes_too_late_changes_nothing():
    draft = running(ActionRefused(at(5), START, WHY))
    assert draft.jobs[A].state == "running"
    assert draft.attempts[A].ended_ms is None


def test_a_resized_job_runs_where_it_was_resized_to():
    draft = running(ActionOrdered(at(4), GROW))
    assert draft.attempts[A].nodes == ("n0",)
    assert draft.attempts[A].nodes_next == ("n0", "n1")
    draft.apply(9, JobResized(at(5), A))
    assert draft.attempts[A].nodes == ("n0", "n1")
    assert draft.attempts[A].nodes_next is None
    assert [number for _, number in draft.changed_attempts] == [1, 2]
    assert draft.changed_attempts[A, 1].reason == "resized"


def test_a_resize_that_is_refused_is_forgotten():
    draft = running(ActionOrdered(at(4), GROW), ActionRefused(at(5), GROW, WHY))
    assert draft.attempts[A].nodes == ("n0",)
    assert draft.attempts[A].nodes_next is None


def test_a_job_that_was_lost_counts_its_next_start_on():
    draft = running(JobStopped(at(5), A, "node-lost", at(0)), ActionOrdered(at(6), START))
    assert draft.jobs[A].state == "starting"
    assert [number for _, number in draft.changed_attempts] == [1, 2]
    assert draft.changed_attempts[A, 1].reason == "node-lost"


def test_a_job_turned_away_without_a_reason_is_refused():
    assert drafted(JobRefused(at(2), A, ())).jobs[A].reason == "refused"


def test_facts_about_what_has_no_row_change_nothing():
    draft = ReadTableUpdate()
    strangers: list[Event] = [
        JobStarted(at(1), A),
        JobEnded(at(1), A),
        ActionOrdered(at(1), START),
        ActionRefused(at(1), START, WHY),
        JobResized(at(1), A),
        JobIdled(at(1), A, at(0)),
        NodeLost(at(1), NodeId("n9")),
    ]
    for event in strangers:
        draft.apply(1, event)
    assert (draft.jobs, draft.attempts, draft.nodes) == ({}, {}, {})
    assert (draft.changed_jobs, draft.changed_attempts, draft.changed_nodes) == ({}, {}, {})


def test_a_node_stands_as_it_was_last_told():
    (node,) = nodes(1)
    draft = drafted(NodeJoined(at(2), node), NodeLost(at(3), node.id, "xid-79"))
    row = draft.nodes[node.id]
    assert (row.state, row.cause, row.changed_ms, row.gpus) == ("down", "xid-79", 3, 8)
    draft.apply(9, NodeReturned(at(4), node.id))
    assert (draft.nodes[node.id].state, draft.nodes[node.id].cause) == ("up", "")
    draft.apply(9, NodeCordoned(at(5), node.id))
    assert draft.nodes[node.id].state == "cordoned"


def test_a_fact_says_whom_it_is_about():
    (node,) = nodes(1)
    assert job_of(ActionOrdered(at(1), START)) == job_of(JobStarted(at(1), A)) == A
    assert job_of(NodeLost(at(1), node.id)) is None
    assert node_of(NodeJoined(at(1), node)) == node_of(NodeLost(at(1), node.id)) == node.id
    assert node_of(JobStarted(at(1), A)) is None
