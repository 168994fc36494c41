"""What holds for every placing policy, in every small world, at every moment.

Each world is drawn by hypothesis through the same generator that `./dev soak` uses, so a
world that breaks a law is made as small as it can be before it is shown.
"""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenfold.model.policy.policy import POLICIES, PolicyName
from tests.rigs.soak import run_world, soak_one
from tests.rigs.worlds import SmallWorld, drawn_world

QUICK = settings(max_examples=25, suppress_health_check=list(HealthCheck))


@st.composite
def small_worlds(draw: st.DrawFn) -> SmallWorld:
    dice = draw(st.randoms(use_true_random=False))
    return drawn_world(dice, jobs=(1, 14), faults=(0, 3))


@pytest.mark.parametrize("name", POLICIES)
@given(world=small_worlds())
@QUICK
def test_every_law_holds_at_every_cycle(name: PolicyName, world: SmallWorld):
    """Nothing over-allocated, gangs whole, fresh as warm, twice the same, no order repeated,
    the kept index the built one, room used, saved work kept, no job lost, the journal replays.
    """
    run_world(world, name)


@pytest.mark.parametrize("seed", range(18))
def test_every_law_holds_in_the_first_worlds_of_the_soak(seed: int):
    soak_one(seed)


def test_a_seed_draws_the_same_world_each_time():
    assert drawn_world(Random(7)) == drawn_world(Random(7))
    assert drawn_world(Random(7)) != drawn_world(Random(8))


def test_a_world_of_the_soak_has_fifty_jobs_and_three_faults_at_least():
    worlds = [drawn_world(Random(seed)) for seed in range(50)]
    assert min(len(world.jobs) for world in worlds) >= 50
    assert min(len(world.faults) for world in worlds) >= 3


def test_the_worlds_hold_what_makes_placing_hard():
    worlds = [drawn_world(Random(seed)) for seed in range(200)]
    shapes = [job.shape for world in worlds for job in world.jobs]
    assert any(shape.milli for shape in shapes)
    assert any(shape.gpus_per_node and shape.gpus % shape.gpus_per_node for shape in shapes)
    assert any(len(shape.accelerators) > 1 for shape in shapes)
    assert any(shape.gpus == 0 and shape.cpus_milli and not shape.milli for shape in shapes)
    assert any(world.stop_delay_ms and world.start_failure_share for world in worlds)
    assert any(world.slurm.partitions for world in worlds)
