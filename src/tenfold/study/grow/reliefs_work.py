"""What relieves layers that only runs can tell: another policy, which is free, or more of a thing.

How far a dose carries is not known before the runs that follow it: the ladder makes them, and
takes the first of these that lets the fleet go further.
"""

from collections.abc import Callable

from msgspec.structs import replace

from tenfold.model.govern import ANY, Govern, TeamTerms
from tenfold.model.ids import TeamId
from tenfold.model.job import WHOLE
from tenfold.model.units import MINUTE
from tenfold.physics.growth.law import Law, breaking_factor
from tenfold.sim.world import SimSettings
from tenfold.study.grow.relief import Relief, taken
from tenfold.study.grow.reliefs_fabric import blocking_less
from tenfold.study.grow.reliefs_nodes import nodes_more
from tenfold.study.grow.reliefs_storage import more_shelves
from tenfold.study.grow.state import State

POLICY = "policy"
OWN = ("tenfold", "governed")
"""Policies that leave nothing to be had from a change to `tenfold`."""
DOSE_LEAST, DOSE_MOST = 1.5, 8.0
"""Less does not stand out from the luck of runs, and more is tried in further steps."""
SAVES_LEAST_MIN = 5.0


def _waits(law: Law, state: State, target: float) -> list[Relief]:
    """At so many times the nodes the work of the target loads them as that of the break does."""
    k = breaking_factor(law.strain, target)
    return [*_policy(state), *([] if k is None else nodes_more(state, target / k))]


def _policy(state: State) -> list[Relief]:
    if state.policy.name in OWN:
        return []

    def apply(now: State) -> State:
        policy = replace(now.policy, name="tenfold", slurm=None)
        return replace(taken(now, POLICY), policy=policy)

    text = f"run jobs under `tenfold`, not `{state.policy.name}`"
    return [Relief(POLICY, text, 0.0, 0.0, apply)]


def _dose(law: Law, target: float) -> float:
    return min(DOSE_MOST, max(DOSE_LEAST, law.strain(target)))


def _failures(law: Law, state: State, target: float) -> list[Relief]:
    """What is lost with a node is what was done since the last save, half of it on average."""
    usual = SimSettings().checkpoint_every_ms / MINUTE
    old = state.grow.operations.checkpoint_every_min or usual
    new = max(SAVES_LEAST_MIN, float(int(old / _dose(law, target))))
    if new >= old:
        return []

    def apply(now: State) -> State:
        operations = replace(now.grow.operations, checkpoint_every_min=new)
        return replace(taken(now, "saves"), grow=replace(now.grow, operations=operations))

    text = f"save every {new:g} min, {old:g} today; what saves take is not counted in this"
    return [Relief("saves", text, 0.0, 0.0, apply)]


def _contention(law: Law, state: State, target: float) -> list[Relief]:
    """A policy that packs gangs, uplinks that do not block, or shelves for what is read."""
    dose = _dose(law, target)
    read = {one.traffic.tier: True for one in state.inputs.profiles.values()}
    return [
        *_policy(state),
        *(more_shelves(state, tier, dose) for tier in state.spec.tiers if tier.id in read),
        *(
            blocking_less(state, fabric, 1.0)
            for fabric in state.spec.fabrics
            if fabric.oversubscription > 1
        ),
    ]


def _governance(law: Law, state: State, target: float) -> list[Relief]:
    """Every team is promised its part by weight, and may borrow what others leave idle."""
    terms = _deserved(state)
    known = state.policy.govern
    if known is not None and state.policy.name == "governed" and known.teams == terms:
        return []

    def apply(now: State) -> State:
        govern = replace(now.policy.govern or Govern(), teams=_deserved(now))
        policy = replace(now.policy, name="governed", slurm=None, govern=govern)
        return replace(taken(now, "quota"), policy=policy)

    text = "promise every team its part by weight, and let idle parts be borrowed"
    return [Relief("quota", text, 0.0, 0.0, apply)]


def _deserved(state: State) -> tuple[TeamTerms, ...]:
    weights = {str(team.id): team.weight for team in state.spec.teams}
    govern = state.policy.govern
    old = {str(team.id): team for team in govern.teams} if govern is not None else {}
    teams = sorted(dict.fromkeys(str(job.team) for job in state.inputs.jobs))
    whole = sum(weights.get(team, 1.0) for team in teams)
    milli = state.spec.gpus * WHOLE
    return tuple(
        replace(
            old.get(team, TeamTerms(id=TeamId(team))),
            parent=None,
            weight=weights.get(team, 1.0),
            quota={ANY: int(milli * weights.get(team, 1.0) / whole)},
            borrow={},
            lend={},
            hours=(),
        )
        for team in teams
    )


WORK_RELIEFS: dict[str, Callable[[Law, State, float], list[Relief]]] = {
    "queue": _waits,
    "fragmentation": _waits,
    "failures": _failures,
    "contention": _contention,
    "governance": _governance,
}
"""These are given the target: their doses are not a part of a capacity."""
