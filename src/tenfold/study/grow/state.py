"""The fleet as it stands on one step of the ladder: what was given, and what was relieved since.

Laws read a state and nothing else, so that a relief is nothing but another state, and a
layer that is lifted for a trial is left out of every law at once.
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
from tenfold.study.ceiling.design import CeilingQuestion, Design, design_of
from tenfold.study.grow.inputs import GrowInputs

ConstraintKey = NewType("ConstraintKey", str)
"""Names one law of a fleet: the layer and the resource that it is about."""
T = TypeVar("T")


class ExpectedDesign:
    """The design that a fleet is asked about, made once and only if a law wants it."""

    def __init__(self, fleet: OpenFleet, failures: str | None = None) -> None:
        self._fleet = fleet
        self._failures = failures

    @cached_property
    def design(self) -> Design | None:
        """The fleet joined with the model it expects; None without a model or known parts."""
        spec = self._fleet.spec
        parts = self._fleet.catalogue.accelerators
        names = [pool.accelerator or "" for pool in spec.pools if pool.gpus]
        if spec.expects.model is None or not names or not all(map(parts.find, names)):
            return None
        preset = self._fleet.catalogue.failures.find(self._failures or "")
        failures = None if preset is None else preset.name
        return design_of(self._fleet, CeilingQuestion(failures=failures))


class State(Struct, frozen=True, kw_only=True, dict=True):
    """What was given, as changed by the reliefs taken so far."""

    inputs: GrowInputs
    spec: FleetSpec
    policy: Policy
    grow: GrowSpec
    reliefs: tuple[str, ...] = ()
    """Codes of the reliefs taken, in order."""
    relaxed: tuple[ConstraintKey, ...] = ()
    """Keys of laws that are lifted: as if their capacity had no limit."""
    unlimited: tuple[Callable[[FleetSpec], FleetSpec], ...] = ()
    """What lifting changes of the fleet that runs see."""
    scaled: tuple[tuple[ConstraintKey, float], ...] = ()
    """Capacities that a relief multiplied without a field of the fleet to say so, by law."""
    expected: "ExpectedDesign"
    """What the planner makes of the model that the fleet expects; shared by all states."""

    def capacity_scale(self, key: ConstraintKey) -> float:
        """Return how many times its first capacity a layer has by now."""
        return prod(factor for name, factor in self.scaled if name == key)

    @cached_property
    def layout(self) -> Layout:
        """Where every node stands."""
        fleet = self.inputs.fleet
        return fleet.layout if self.spec is fleet.spec else lay_out(self.spec)

    @cached_property
    def fleet(self) -> OpenFleet:
        """The fleet as it stands now, open for those who ask the planner."""
        return OpenFleet(spec=self.spec, layout=self.layout, catalogue=self.inputs.fleet.catalogue)

    @cached_property
    def _made(self) -> dict[object, object]:
        return {}

    def once(self, make: Callable[["State"], T]) -> T:
        """Return what a function makes of this state, made once however many layers ask."""
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
    )


def scale_capacity(state: State, key: ConstraintKey, factor: float) -> State:
    """Return the state with one capacity multiplied."""
    return replace(state, scaled=(*state.scaled, (key, factor)))
