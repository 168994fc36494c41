"""Which running jobs a policy stops when it ranks them again."""

import pytest
from msgspec.structs import replace

from tenfold.compose.policies import placing_decider
from tenfold.model.job.terms import Terms
from tenfold.model.policy.policy import Policy, PolicyName
from tenfold.testing.builders import job, nodes
from tenfold.testing.policy_run import run_policy

POLICIES_THAT_RERANK: tuple[PolicyName, ...] = ("tenfold", "las", "srtf", "srsf")


@pytest.mark.parametrize("name", POLICIES_THAT_RERANK)
def test_a_job_that_would_lose_its_work_keeps_its_nodes(name: PolicyName):
    large = replace(job(0, 32, per_node=8, runs_s=7_200), terms=Terms(keep_on_rerank=True))
    small = job(1, 1, at_s=900, runs_s=60)
    run = run_policy(placing_decider(Policy(name=name)), nodes(4), [large, small])
    assert run.stops_s(large) == []
    assert run.starts_s(small) == [7_200]


@pytest.mark.parametrize("name", POLICIES_THAT_RERANK)
@pytest.mark.parametrize("terms", [None, Terms(preemptible=True)])
def test_a_job_that_allows_it_is_stopped_for_a_shorter_one(name: PolicyName, terms: Terms | None):
    large = replace(job(0, 32, per_node=8, runs_s=7_200), terms=terms)
    small = job(1, 1, at_s=900, runs_s=60)
    run = run_policy(placing_decider(Policy(name=name)), nodes(4), [large, small])
    assert run.stops_s(large)
    assert run.starts_s(small)[0] < 7_200
