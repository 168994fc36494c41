"""Differences between a recorded and a replayed run, as text."""

from tenfold.engine.replay import describe
from tenfold.model.actions import RefuseJob, StartJob
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Slot


def test_actions_are_described_in_the_words_of_the_pages():
    assert describe(RefuseJob(JobId("job-1"), ())) == "reject `job-1`"
    start = StartJob(JobId("job-1"), (Slot(NodeId("n0"), 8),))
    assert describe(start) == "start `job-1` on `n0`"
