"""What is said of a job for which the policy will stop another."""

from functools import partial

from msgspec.structs import replace

from tenfold.compose.policies import placing_decider
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import StartJob
from tenfold.model.events import ActionOrdered, JobStarted
from tenfold.model.ids import NodeId
from tenfold.model.job.job import Job, Slot
from tenfold.model.job.terms import Terms
from tenfold.model.policy.policy import Policy
from tenfold.model.units import MINUTE, Millis
from tenfold.report.reasons.render import render
from tenfold.study.eta.eta import Eta
from tenfold.study.why.why import eta_for, why_under
from tenfold.testing.builders import fleet, job, nodes

DECIDER = partial(placing_decider, Policy(name="tenfold"))


def with_running(large: Job, small: Job) -> Fleet:
    """Return a fleet on which the large job started four minutes into a review period."""
    made = fleet(nodes(4), large, small)
    slots = tuple(Slot(NodeId(f"n{number}"), 8) for number in range(4))
    at = Millis(4 * MINUTE)
    made.apply_all([ActionOrdered(at, StartJob(large.id, slots)), JobStarted(at, large.id)])
    return made


def test_a_job_that_starts_by_preempting_another_says_which_and_when():
    large, small = job(0, 32, per_node=8), job(1, 1)
    made = with_running(large, small)
    found = why_under(made, small, Millis(7 * MINUTE), DECIDER)
    [rule] = found.rules
    assert render(rule.reason) == "starts by preempting job `job-0` in 3 min"
    eta = eta_for(made, found, Millis(7 * MINUTE), DECIDER)
    assert isinstance(eta, Eta)
    assert (eta.p50_ms, eta.p90_ms) == (10 * MINUTE, 10 * MINUTE)


def test_a_job_that_keeps_its_nodes_is_not_named():
    large = replace(job(0, 32, per_node=8), terms=Terms(keep_on_rerank=True))
    small = job(1, 1)
    assert why_under(with_running(large, small), small, Millis(7 * MINUTE), DECIDER).rules == ()
