"""A job whose terms say that it may not be preempted is stopped for nobody, under any policy."""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tenfold.compose.policies import placing_decider
from tenfold.engine.loop import run
from tenfold.fleet.fleet import Fleet
from tenfold.model.events import NodeJoined
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, PoolId, SiteId, TeamId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.job.terms import Terms
from tenfold.model.policy.policy import Policy, PolicyName
from tenfold.model.units import HOUR, Millis
from tenfold.sim.world import SimSettings, SimWorld
from tests.rigs.soak import run_world
from tests.rigs.worlds import drawn_world

STOPPING: tuple[PolicyName, ...] = ("tenfold", "las", "fair", "edf", "srtf", "srsf", "governed")
STAYS = Terms(preemptible=False)


@pytest.mark.parametrize("name", STOPPING)
@given(dice=st.randoms(use_true_random=False))
@settings(max_examples=20, suppress_health_check=list(HealthCheck))
def test_where_every_job_stays_no_run_is_cut_short_but_by_a_fault(name: PolicyName, dice: Random):
    world = drawn_world(dice, jobs=(1, 20), faults=(0, 0))
    stay = tuple(replace(job, terms=STAYS) for job in world.jobs)
    soaked = run_world(replace(world, jobs=stay, start_failure_share=0.0), name)
    assert soaked.stops == 0


def stopped(name: PolicyName, *, long_terms: Terms | None) -> list[str]:
    """Run two long jobs on two nodes, then short ones of others; return who was stopped."""
    nodes = [
        Node(id=NodeId(f"n{i}"), pool=PoolId("p"), site=SiteId("s"), accelerator="h100", gpus=8)
        for i in range(2)
    ]
    spans = [(0, 40, "a", long_terms), (0, 40, "a", None)]
    spans += [(10, 1, f"t{number}", None) for number in range(8)]
    jobs = [
        Job(
            id=JobId(f"j{seq}"),
            shape=shape_of(8),
            submitted_ms=Millis(at * HOUR),
            seq=seq,
            team=TeamId(team),
            deadline_ms=Millis((at + 2 * length) * HOUR),
            duration_ms=Millis(length * HOUR),
            terms=terms,
        )
        for seq, (at, length, team, terms) in enumerate(spans)
    ]
    before = [NodeJoined(Millis(0), node) for node in nodes]
    world = SimWorld(jobs, settings=SimSettings(), initial_events=before)
    run(world, Fleet(), [placing_decider(Policy(name=name), Millis(0))])
    assert len(world.meters.ends) == len(jobs)
    return [job.id for job, *_ in world.meters.stops]


@pytest.mark.parametrize("name", ["tenfold", "las", "srtf", "srsf"])
def test_the_one_beside_it_gives_way_instead(name: PolicyName):
    assert "j0" in stopped(name, long_terms=None)
    those = stopped(name, long_terms=STAYS)
    assert "j1" in those
    assert "j0" not in those
