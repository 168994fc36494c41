"""The fleet at one step of an analysis: the inputs, changed by the reliefs applied so far.

Constraints read a state and nothing else. So a relief is just another state, and a constraint that
is relaxed for a trial is left out everywhere at once.
"""

from collections.abc import Callable
from functools import cached_property
from math import prod
from typing import NewType, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from tenfold.compose.fleet import OpenFleet
from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.growth.growth import GrowSpec
from tenfold.model.policy.policy import Policy
from tenfold.physics.layout import Layout, lay_out
from tenfold.physics.nodes import nodes_of
from tenfold.study.ceiling.design import CeilingQuestion, Design, design_of
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.sim.nodes_down import NodesDown

ConstraintKey = NewType("ConstraintKey", str)
"""Identifies one constraint: its layer and its resource."""
T = TypeVar("T")


class ExpectedDesign:
    """The planner's design for the expected model, made once and only if needed."""

    def __init__(self, fleet: OpenFleet, failures: str | None = None) -> None:
        self._fleet = fleet
        self._failures = failures

    @cached_property
    def design(self) -> Design | None:
        """The fleet with its expected model; None without a model or known accelerators."""
        spec = self._fleet.spec
        parts = self._fleet.catalogue.accelerators
        names = [pool.accelerator or "" for pool in spec.pools if pool.gpus]
        if spec.expects.model is None or not names or not all(map(parts.find, names)):
            return None
        preset = self._fleet.catalogue.failures.find(self._failures or "")
        failures = None if preset is None else preset.name
        return design_of(self._fleet, CeilingQuestion(failures=failures))


class State(Struct, frozen=True, kw_only=True, dict=True):
    """The inputs, as changed by the reliefs applied so far."""

    inputs: GrowInputs
    spec: FleetSpec
    policy: Policy
    grow: GrowSpec
    reliefs: tuple[str, ...] = ()
    """Codes of the reliefs applied, in order."""
    relaxed: tuple[ConstraintKey, ...] = ()
    """Keys of relaxed constraints: as if their capacity had no limit."""
    unlimited: tuple[Callable[[FleetSpec], FleetSpec], ...] = ()
    """How relaxing changes the simulated fleet."""
    scaled: tuple[tuple[ConstraintKey, float], ...] = ()
    """Capacities multiplied by reliefs that have no field in the fleet, by constraint."""
    purchases: tuple[float, ...] = ()
    """Dollars a month of reliefs that neither the fleet nor the grow file has a field for."""
    expected: "ExpectedDesign"
    """The planner's design for the expected model; shared by all states."""
    nodes_down: NodesDown
    """Nodes of today's fleet that are down at once; shared by all states."""

    def capacity_scale(self, key: ConstraintKey) -> float:
        """Return the capacity as a multiple of the original one."""
        return prod(factor for name, factor in self.scaled if name == key)

    @cached_property
    def layout(self) -> Layout:
        """Where every node is located."""
        fleet = self.inputs.fleet
        return fleet.layout if self.spec is fleet.spec else lay_out(self.spec)

    @cached_property
    def fleet(self) -> OpenFleet:
        """The fleet as it is now, in the form that the planner takes."""
        return OpenFleet(spec=self.spec, layout=self.layout, catalogue=self.inputs.fleet.catalogue)

    @cached_property
    def _made(self) -> dict[object, object]:
        return {}

    def once(self, make: Callable[["State"], T]) -> T:
        """Return the result of a function of this state, computed once."""
        if make not in self._made:
            self._made[make] = make(self)
        return cast(T, self._made[make])


def state_of(inputs: GrowInputs, failures: str | None = None) -> State:
    """Return the state before any relief."""
    return State(
        inputs=inputs,
        spec=inputs.fleet.spec,
        policy=inputs.policy,
        grow=inputs.grow,
        expected=ExpectedDesign(inputs.fleet, failures),
        nodes_down=NodesDown(
            lambda: list(nodes_of(inputs.fleet.spec, inputs.fleet.layout)), inputs.failures
        ),
    )


def planned_state(inputs: GrowInputs, failures: str | None = None) -> State:
    """Return the state to analyse: today's, or the planned fleet that was grown from it."""
    today, plan = state_of(inputs, failures), inputs.planned
    if plan is None:
        return today
    return replace(
        today,
        spec=plan.spec,
        policy=plan.policy,
        reliefs=plan.reliefs,
        scaled=tuple((ConstraintKey(key), times) for key, times in plan.capacity.items()),
        purchases=(plan.purchases_usd,) if plan.purchases_usd else (),
    )


def scale_capacity(state: State, key: ConstraintKey, factor: float) -> State:
    """Return the state with one capacity multiplied."""
    return replace(state, scaled=(*state.scaled, (key, factor)))
