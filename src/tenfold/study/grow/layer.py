"""A layer of a fleet, and its laws: demand over capacity as a function of the factor.

A layer is one class in one file under `layers/`: its name, what it grows with, the figures that it
needs, its law, what relieves it at which price, and what it assumes. `registry.py` lists them all.
Search, attribution and the ladder see laws only. A law whose figures are missing says which one
in `needs`, and is unknown.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_fields
from math import inf, isfinite

from msgspec.structs import replace

from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.growth.growth import Axis, Grade, OrderItem, Quantity, grows_along
from tenfold.physics.growth import breaking as arithmetic
from tenfold.physics.growth.breaking import Break, Evidence, Utilisation
from tenfold.study.grow.relief import Relief
from tenfold.study.grow.state import ConstraintKey, State

MULTIPLE_MAX = 1_000.0
"""A layer that would need more than this many times its capacity is not relieved by more."""
Symptom = Callable[[float], str]
"""What is seen at a factor, in one sentence."""
Relieve = Callable[["Constraint", float], Iterable[Relief]]
"""What lets a law hold up to a factor."""
Unlimited = Callable[[FleetSpec], FleetSpec]


def _silent(_: float) -> str:
    return ""


def _no_relief(_: "Constraint", __: float) -> Iterable[Relief]:
    return ()


@dataclass(frozen=True, slots=True)
class Constraint:
    """One resource of a layer, and how its strain rises with the factor."""

    of: "Layer"
    resource: str
    utilisation: Utilisation
    spread: float
    grade: Grade
    cause_rank: int
    needs: str = ""
    """The figure that is missing; empty where the law can be judged."""
    symptom: Symptom = _silent
    relieve: Relieve = _no_relief
    unlimited: Unlimited | None = None
    """The fleet as runs see it where this resource has no limit; None: runs do not see it."""

    @property
    def layer(self) -> str:
        """The name of its layer."""
        return self.of.name

    @property
    def key(self) -> ConstraintKey:
        """The layer and its resource as one name."""
        return self.of.key(self.resource)

    def slowing_jobs(self, unlimited: Unlimited) -> "Constraint":
        """Return it as one whose shortage slows jobs down in runs, until it is lifted there."""
        return with_fields(self, unlimited=unlimited)

    def reliefs(self, target: float) -> list[Relief]:
        """Return what would let it hold up to `target`: free first, then priced, then unpriced."""
        return sorted(self.relieve(self, target), key=_price_order)


def _price_order(relief: Relief) -> tuple[bool, float]:
    return relief.usd_per_month is None, relief.usd_per_month or 0.0


class Layer:
    """What every layer states, whichever way it is judged."""

    name: str
    """As it is shown, and as a table of measurements calls it."""
    breaks: str
    """When it breaks, to follow "breaks where"."""
    cause_rank: int
    """Of laws that break at one factor the lowest is named: causes before their effects."""
    grows_with: tuple[Quantity, ...]
    missing_reported_with: tuple[Quantity, ...] = ()
    """What else its figures are asked for with, although it does not grow with it."""
    needs: str
    """The figures that it is judged by, and the files that state them."""
    fixed_by: str
    """Its reliefs in a few words."""
    assumes: str = ""
    """What its laws rest on where they are graded as assumed."""
    lead_times: tuple[OrderItem, ...] = ()
    """What is ordered to relieve it, as lead times name it."""
    always_listed: bool = False
    """Whether it is named as not judged where it has no law: silence is not health."""
    shown_when_constant: bool = True
    """Whether it is judged along an axis that does not move it."""
    shows_slow_jobs: bool = False
    """Whether it also breaks because jobs are slowed down by another layer."""

    def grows(self, axis: Axis) -> bool:
        """Return whether demand on this layer grows along an axis."""
        return any(grows_along(axis, quantity) for quantity in self.grows_with)

    def reports_missing(self, axis: Axis) -> bool:
        """Return whether figures that are missing are asked for along an axis."""
        return self.grows(axis) or any(
            grows_along(axis, quantity) for quantity in self.missing_reported_with
        )

    def key(self, resource: str) -> ConstraintKey:
        """Return the name of the law about one resource."""
        return ConstraintKey(f"{self.name}:{resource}")

    def constraint(
        self,
        resource: str,
        demand: Callable[[float], float],
        capacity: float,
        evidence: Evidence,
        symptom: Symptom,
        relieve: Callable[[float], Iterable[Relief]] | None = None,
    ) -> Constraint:
        """Return the law of a demand against a capacity that stands still.

        `relieve` is given how many times its capacity the resource needs.
        """

        def utilisation(factor: float) -> float:
            return demand(factor) / capacity if capacity > 0 else inf

        def scaled_reliefs(constraint: Constraint, target: float) -> Iterable[Relief]:
            multiple = constraint.utilisation(target)
            if relieve is None or not isfinite(multiple) or not 1 < multiple <= MULTIPLE_MAX:
                return ()
            return relieve(multiple)

        return Constraint(
            self,
            resource,
            utilisation,
            evidence.spread,
            evidence.grade,
            self.cause_rank,
            symptom=symptom,
            relieve=scaled_reliefs,
        )

    def unknown(self, resource: str, needs: str = "") -> Constraint:
        """Return a law that cannot be judged, with the figure that would answer it."""
        rank = self.cause_rank
        return Constraint(self, resource, lambda _: 0.0, 0.0, "assumed", rank, needs or self.needs)


class ComputedLayer(Layer, ABC):
    """A layer that is judged by figures of files alone."""

    @abstractmethod
    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return a law for each resource of the fleet, or those that are unknown."""

    def judged(self, state: State, axis: Axis) -> list[Constraint]:
        """Return its laws along an axis; what is missing is only asked for where it grows."""
        if not self.shown_when_constant and not self.grows(axis):
            return []
        asked = self.reports_missing(axis)
        return [
            constraint
            for constraint in self.constraints(state, axis)
            if asked or not constraint.needs
        ]


class DerivedLayer(Layer, ABC):
    """A layer that is judged by the laws of others."""

    @abstractmethod
    def constraints(self, state: State, others: Sequence[Constraint]) -> Iterable[Constraint]:
        """Return its laws, given those of the layers that are judged by figures."""


def break_of(constraint: Constraint, most: float) -> Break:
    """Return where a law breaks, with the interval that its evidence leaves."""
    if constraint.needs:
        return Break(None, None, None, "unknown")
    return arithmetic.break_of(constraint.utilisation, constraint.spread, most)


def relax(state: State, *constraints: Constraint) -> State:
    """Return the state as if the resources of some laws had no limit."""
    unlimited = (
        constraint.unlimited for constraint in constraints if constraint.unlimited is not None
    )
    return replace(
        state,
        relaxed=(*state.relaxed, *(constraint.key for constraint in constraints)),
        unlimited=(*state.unlimited, *unlimited),
    )
