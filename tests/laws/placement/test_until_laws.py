"""A run that is stopped is the beginning of the whole run."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.compose.simulation import SimRequest, SimResult, simulate
from tenfold.engine.recording import Recording
from tenfold.model.policy.policy import POLICIES, Policy, PolicyName
from tenfold.model.units import HOUR, Millis
from tenfold.sim.world import SimSettings
from tests.rigs.worlds import SmallWorld, drawn_world


def recorded(
    world: SmallWorld, name: PolicyName, until_ms: Millis | None
) -> tuple[Recording, SimResult]:
    request = SimRequest(
        nodes=world.nodes,
        jobs=world.jobs,
        policy=Policy(name=name, placement=world.placement, slurm=world.slurm, govern=world.govern),
        settings=SimSettings(
            restart_cost_ms=world.restart_cost_ms,
            start_delay_ms=world.start_delay_ms,
            stop_delay_ms=world.stop_delay_ms,
            start_failure_share=world.start_failure_share,
            seed=world.seed,
        ),
        faults=world.faults,
        until_ms=until_ms,
    )
    kept = Recording()
    return kept, simulate(request, journal=kept, witnesses=[kept])


@settings(max_examples=60)
@given(st.integers(0, 500), st.sampled_from(POLICIES), st.integers(0, 40 * HOUR))
def test_a_stopped_run_is_the_beginning_of_the_whole_run(seed: int, name: PolicyName, until: int):
    world = drawn_world(Random(seed), jobs=(10, 20), governed=name == "governed")
    whole, _ = recorded(world, name, None)
    part, stopped = recorded(world, name, Millis(until))
    assert part.lines == [line for line in whole.lines if line.at_ms <= until]
    meters = stopped.meters
    over = len(meters.ends) + len(meters.refused_jobs)
    here = len(stopped.fleet.pending) + len(stopped.fleet.running) + len(stopped.fleet.orders)
    assert over + here == sum(job.submitted_ms <= until for job in world.jobs)


@settings(max_examples=20)
@given(st.integers(0, 500), st.sampled_from(POLICIES))
def test_an_end_beyond_the_run_changes_nothing(seed: int, name: PolicyName):
    world = drawn_world(Random(seed), jobs=(5, 10), governed=name == "governed")
    whole, free = recorded(world, name, None)
    part, stopped = recorded(world, name, Millis(10**12))
    assert part.lines == whole.lines
    assert stopped.summary == free.summary
