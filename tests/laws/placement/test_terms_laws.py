"""What holds for jobs with terms in both worlds of chance, whatever is done to them.

The decider knows no rules, so these are laws of the worlds, the fleet and the ledger: work
that was saved is kept, a resize follows its order, idle sessions are reclaimed or go on.
"""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from restless import Restless
from tenfold.engine.loop import Decider, World, run
from tenfold.fleet.fleet import Fleet
from tenfold.model.events import Event
from tenfold.model.job.job import Job, shape_of
from tenfold.sim.world import SimWorld
from tests.rigs.chance_world import ChanceWorld
from tests.rigs.laws import Sound
from tests.rigs.ledger import Hands, Ledger
from tests.rigs.soak import simulated, state
from tests.rigs.worlds import SmallWorld, drawn_world

QUICK = settings(max_examples=40, suppress_health_check=list(HealthCheck))


def restless_world(dice: Random, *, jobs: int = 20, faults: int = 3) -> SmallWorld:
    """A governed world whose jobs ask for whole GPUs alone, and no more than nodes alike have."""
    world = drawn_world(dice, jobs=(1, jobs), faults=(0, faults), governed=True)
    alike: dict[tuple[str, str, int], int] = {}
    for node in world.nodes:
        kind = (node.site, node.accelerator, node.gpus)
        alike[kind] = alike.get(kind, 0) + node.gpus
    most = max(alike.values())
    return replace(world, jobs=tuple(modest(job, most) for job in world.jobs) if most else ())


def modest(job: Job, most: int) -> Job:
    gpus, terms = max(1, min(job.shape.gpus, most // 2)), job.terms
    if terms is not None and job.seq % 2:
        terms = replace(terms, least_gpus=1, most_gpus=min(2 * gpus, most))
    elif terms is not None:
        terms = replace(terms, least_gpus=0, most_gpus=0)
    return replace(job, shape=shape_of(gpus), terms=terms)


def live(world: World, decider: Decider, ledger: Ledger) -> Fleet:
    fleet = Fleet()
    run(world, fleet, [decider], journal=ledger, witnesses=[Sound(ledger)])
    ledger.close()
    again = Fleet()
    again.apply_all(ledger.events)
    assert state(again) == state(fleet)
    return fleet


def simulate_restless(world: SmallWorld) -> tuple[SimWorld, list[Event]]:
    ledger = Ledger(Hands(world.restart_cost_ms, world.checkpoint_every_ms))
    acted = simulated(world)
    live(acted, Restless(), ledger)
    return acted, ledger.events


@given(dice=st.randoms(use_true_random=False))
@QUICK
def test_the_simulated_world_keeps_its_word_to_jobs_with_terms(dice: Random):
    simulate_restless(restless_world(dice))


@given(dice=st.randoms(use_true_random=False))
@QUICK
def test_anything_may_happen_to_jobs_with_terms(dice: Random):
    drawn = restless_world(dice, faults=0)
    live(ChanceWorld(dice, drawn.nodes, drawn.jobs, turns=60), Restless(), Ledger())


@pytest.mark.parametrize("seed", range(12))
def test_gpu_time_is_that_of_all_slots_for_as_long_as_they_were_held(seed: int):
    """The meters against the facts: slots times the stretch in which each was held."""
    world = restless_world(Random(seed), jobs=40)
    acted, events = simulate_restless(world)
    fleet, held, last_ms = Fleet(), 0, 0
    for event in events:
        held += (event.at_ms - last_ms) * sum(
            slot.gpus for one in fleet.running.values() for slot in one.slots
        )
        last_ms = event.at_ms
        fleet.apply(event)
    summary = acted.meters.summary(world.jobs, 1)
    assert summary.gpu_hours * 3_600_000 == pytest.approx(held)


def test_every_new_kind_of_fact_and_order_comes_about():
    kinds: set[str] = set()
    for seed in range(30):
        _, events = simulate_restless(restless_world(Random(seed), jobs=40))
        kinds |= {type(event).__name__ for event in events}
        kinds |= {type(getattr(event, "action", None)).__name__ for event in events}
        dice = Random(seed)
        drawn = restless_world(dice, jobs=40, faults=0)
        ledger = Ledger()
        live(ChanceWorld(dice, drawn.nodes, drawn.jobs, turns=150), Restless(), ledger)
        kinds |= {type(event).__name__ for event in ledger.events}
    wanted = {"JobResized", "JobIdled", "JobBusy", "ResizeJob", "ReserveStart", "ActionRefused"}
    assert wanted <= kinds


def test_the_world_of_a_seed_is_the_same_where_nothing_governs_it():
    for seed in range(20):
        plain, governed = drawn_world(Random(seed)), drawn_world(Random(seed), governed=True)
        assert [job.duration_ms for job in plain.jobs] == [job.duration_ms for job in governed.jobs]
        assert [node.gpus for node in plain.nodes] == [node.gpus for node in governed.nodes]
        assert (plain.faults, plain.slurm) == (governed.faults, governed.slurm)
        assert plain.govern is None
        assert governed.govern is not None


def test_governed_worlds_hold_what_makes_governing_hard():
    worlds = [drawn_world(Random(seed), governed=True) for seed in range(100)]
    terms = [job.terms for world in worlds for job in world.jobs if job.terms is not None]
    wheres = [job.shape.where for world in worlds for job in world.jobs if job.shape.where]
    governs = [world.govern for world in worlds if world.govern]
    assert {one.kind for one in terms} >= {"training", "experiment", "interactive"}
    assert any(0 < one.least_gpus < one.most_gpus for one in terms)
    assert any(one.after for one in terms)
    assert any(one.array_most for one in terms)
    assert any(one.checkpoint_every_ms and not one.preemptible for one in terms)
    assert {one.how for one in wheres} == {"required", "preferred", "balanced", "spread"}
    assert any(one.teams and one.teams[-1].parent for one in governs)
    assert any(one.windows for one in governs)
    assert any(node.rack_watts and node.tags for world in worlds for node in world.nodes)
