"""Run a random small world under a policy with every law watched: what soaks are made of."""

from functools import partial
from random import Random

from msgspec import Struct

from tenfold.compose.policies import placing_decider
from tenfold.decide.place.indexed import IndexedDecider
from tenfold.engine.loop import run
from tenfold.fleet.fleet import Fleet
from tenfold.model.events import NodeJoined
from tenfold.model.job.job import Job
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.policy.policy import POLICIES, Policy, PolicyName
from tenfold.model.units import Millis
from tenfold.sim.world import SimSettings, SimWorld
from tests.rigs.broken import hold
from tests.rigs.governed.laws import Governing, index_of
from tests.rigs.laws import Leaves, Sound, Watched
from tests.rigs.ledger import Hands, Ledger
from tests.rigs.worlds import SmallWorld, drawn_world

LEAVES: dict[PolicyName, Leaves] = {
    "tenfold": "nobody",
    "las": "nobody",
    "edf": "nobody",
    "fair": "nobody",
    "fifo": "all-but-the-first",
    "sjf": "all-but-the-first",
    "srtf": "all-but-one",
    "srsf": "all-but-one",
}
"""Policies that use whatever room there is; others may keep some on purpose."""


GOVERNED_EVERY = 3
PLAIN: tuple[PolicyName, ...] = tuple(name for name in POLICIES if name != "governed")


class Soaked(Struct, frozen=True):
    """What a world went through."""

    cycles: int
    events: int
    stops: int
    refusals: int
    digest: str


def soak_one(seed: int, name: PolicyName | None = None, *, every: int = 1) -> Soaked:
    """Run the world of a seed; policies take turns where none is named."""
    name = name or policy_of(seed)
    world = drawn_world(Random(seed), governed=name == "governed")
    return run_world(world, name, every=every)


def policy_of(seed: int) -> PolicyName:
    """Return whose turn a seed is: every third world is governed."""
    if seed % GOVERNED_EVERY == 0:
        return "governed"
    return PLAIN[(seed - seed // GOVERNED_EVERY - 1) % len(PLAIN)]


def run_world(world: SmallWorld, name: PolicyName, *, every: int = 1) -> Soaked:
    """Run a world to its end and raise `LawBroken` where a law does not hold.

    `every` thins out the comparison with a fresh decider, which costs most.
    """
    watched = watched_decider(world, name, every=every)
    ledger = Ledger(Hands(world.restart_cost_ms, world.checkpoint_every_ms))
    fleet, acted = Fleet(), simulated(world)
    decider = watched
    if name == "governed":
        decider = Governing(watched, world.govern or GovernanceRules(), every=every)
    run(acted, fleet, [decider], journal=ledger, witnesses=[Sound(ledger)])
    ledger.close()
    meters = acted.meters
    refused = len(meters.refused_jobs)
    hold(
        "no-job-is-lost",
        len(meters.ends) + refused == len(world.jobs),
        f"{len(world.jobs)} jobs came, {len(meters.ends)} ended and {refused} were refused",
    )
    again = Fleet()
    again.apply_all(ledger.events)
    hold("the-journal-replays", state(again) == state(fleet), "its fleet is another")
    return Soaked(watched.cycles, fleet.version, len(meters.stops), refused, ledger.digest())


def watched_decider(world: SmallWorld, name: PolicyName, *, every: int = 1) -> Watched:
    """Return the decider of a policy with the settings of a world, under watch."""
    policy = Policy(
        name=name,
        placement=world.placement,
        las_limits_gpu_s=world.las_limits_gpu_s,
        slurm=world.slurm,
        govern=world.govern,
    )

    def make() -> IndexedDecider:
        return placing_decider(policy, world.restart_cost_ms)

    key = _length if name == "sjf" else None
    leaves = LEAVES.get(name, "all")
    if name != "governed":
        return Watched(make, leaves=leaves, key=key, every=every)
    build = partial(index_of, world.govern or GovernanceRules())
    return Watched(make, leaves=leaves, key=key, every=every, build=build)


def state(fleet: Fleet) -> dict[str, object]:
    """Return all that a fleet holds, as values to compare."""
    return {name: value for name, value in vars(fleet).items() if not name.startswith("_")}


def simulated(world: SmallWorld) -> SimWorld:
    """Return the simulated world of a drawn one."""
    return SimWorld(
        world.jobs,
        settings=SimSettings(
            restart_cost_ms=world.restart_cost_ms,
            checkpoint_every_ms=world.checkpoint_every_ms,
            start_delay_ms=world.start_delay_ms,
            stop_delay_ms=world.stop_delay_ms,
            start_failure_share=world.start_failure_share,
            seed=world.seed,
        ),
        initial_events=[NodeJoined(Millis(0), node) for node in world.nodes],
        outages=world.faults,
    )


def _length(job: Job) -> int:
    return job.duration_ms or 0
