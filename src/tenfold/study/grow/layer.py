"""A layer of a fleet and its constraints: demand over capacity as a function of the growth factor.

A layer is one class in one file under `layers/`: its name, what it grows with, the inputs it needs,
its constraints, its reliefs with their prices, and its assumptions. `registry.py` lists them all.
The search, the attribution and the analysis see constraints only. A constraint with missing inputs
names them in `needs` and has the status `unknown`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_fields
from math import inf, isfinite
from typing import Literal

from msgspec.structs import replace

from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.growth.growth import Axis, Grade, OrderItem, Quantity, grows_along
from tenfold.physics.growth import breaking as arithmetic
from tenfold.physics.growth.breaking import Break, Evidence, Utilisation
from tenfold.study.grow.relief import Relief
from tenfold.study.grow.state import ConstraintKey, State

MULTIPLE_MAX = 1_000.0
"""If a layer needs more than this many times its capacity, adding capacity is not a fix."""
Symptom = Callable[[float], str]
"""What an operator notices at a factor, in one sentence."""
Relieve = Callable[["Constraint", float], Iterable[Relief]]
"""The reliefs that keep a constraint within its limit up to a factor."""
Unlimited = Callable[[FleetSpec], FleetSpec]
AxisGrowth = Literal["demand", "both", "none"]
"""What grows along an axis: a layer's demand, its capacity alike, or neither."""


def _silent(_: float) -> str:
    return ""


def _no_relief(_: "Constraint", __: float) -> Iterable[Relief]:
    return ()


@dataclass(frozen=True, slots=True)
class Constraint:
    """One resource of a layer, and how its utilisation rises with the factor."""

    of: "Layer"
    resource: str
    utilisation: Utilisation
    spread: float
    grade: Grade
    cause_rank: int
    needs: str = ""
    """The missing input; empty if the constraint can be evaluated."""
    symptom: Symptom = _silent
    relieve: Relieve = _no_relief
    bounds: tuple[Utilisation, Utilisation] | None = None
    """The highest and the lowest plausible utilisation, if not a spread around the likeliest."""
    unlimited: Unlimited | None = None
    """The simulated fleet without a limit on this resource; None if it is not simulated."""
    factor_spread: float = 0.0
    """How far the factor may be off because the history is a sample, at 80%."""
    no_fix: str = ""
    """Why it has no relief, if more can be said than that no fix is known."""

    @property
    def layer(self) -> str:
        """The name of its layer."""
        return self.of.name

    @property
    def label(self) -> str:
        """The layer and its resource by the names used on screen."""
        return self.of.label(self.resource)

    @property
    def key(self) -> ConstraintKey:
        """The layer and its resource as one key."""
        return self.of.key(self.resource)

    def slowing_jobs(self, unlimited: Unlimited) -> "Constraint":
        """Return it as one that slows simulated jobs, unless `unlimited` is applied."""
        return with_fields(self, unlimited=unlimited)

    def reliefs(self, target: float) -> list[Relief]:
        """Return reliefs that hold up to `target`: free first, then by price, then unpriced."""
        return sorted(self.relieve(self, target), key=_price_order)


def _price_order(relief: Relief) -> tuple[bool, float]:
    unpriced = relief.usd_per_month is None or relief.unpriced > 0
    return unpriced, relief.usd_per_month or 0.0


class Layer:
    """What every layer declares, however it is evaluated."""

    name: str
    """Its id in JSON and in measurements files."""
    title: str = ""
    """Its name on screen; empty: made from the id."""
    labels: tuple[tuple[str, str], ...] = ()
    """Names on screen by resource, where title and resource together would not read well."""
    breaks: str
    """When it breaks, to follow "breaks when"."""
    cause_rank: int
    """Of constraints that break at the same factor the lowest rank comes first: causes first."""
    grows_with: tuple[Quantity, ...]
    grows_by: str = ""
    """What of its demand grows with them, to follow "grows"; empty if nothing does."""
    capacity_grows_with: tuple[Quantity, ...] = ()
    """What its capacity grows with: along an axis with both, the layer is as full as before."""
    missing_reported_with: tuple[Quantity, ...] = ()
    """Quantities it does not grow with, but for which missing inputs are still reported."""
    needs: str
    """The inputs it is evaluated from, and where to state them."""
    fixed_by: str
    """Its fixes in a few words."""
    assumes: str = ""
    """What is assumed if its constraints are graded as assumed."""
    lead_times: tuple[OrderItem, ...] = ()
    """What has to be ordered to fix it, by the names used for lead times."""
    always_listed: bool = False
    """Whether it is listed even without a constraint, so that silence is not taken for OK."""
    only_if_stated: bool = False
    """Whether its limit exists only if stated: a budget that was not set cannot be exceeded."""
    shown_when_constant: bool = True
    """Whether it is evaluated along an axis that does not change its demand."""
    shows_slow_jobs: bool = False
    """Whether it also breaks because another layer slows jobs down."""

    def grows(self, axis: Axis) -> bool:
        """Return whether demand on this layer grows along an axis."""
        return any(grows_along(axis, quantity) for quantity in self.grows_with)

    def growth(self, axis: Axis) -> AxisGrowth:
        """Return what an axis does to this layer: demand, demand and capacity, or nothing."""
        if not self.grows(axis):
            return "none"
        alike = any(grows_along(axis, quantity) for quantity in self.capacity_grows_with)
        return "both" if alike else "demand"

    def could_break_unseen(self, needs: str, axis: Axis) -> bool:
        """Return whether it could break along an axis while an input is missing."""
        absent = self.only_if_stated and needs == self.needs
        return bool(needs) and not absent and self.growth(axis) == "demand"

    def reports_missing(self, axis: Axis) -> bool:
        """Return whether missing inputs are reported along an axis."""
        return self.grows(axis) or any(
            grows_along(axis, quantity) for quantity in self.missing_reported_with
        )

    def label(self, resource: str) -> str:
        """Return the layer and one of its resources by the names used on screen."""
        title = self.title or self.name.replace("-", " ").capitalize()
        named = dict(self.labels).get(resource)
        return named or with_resource(title, resource)

    def key(self, resource: str) -> ConstraintKey:
        """Return the key of the constraint on one resource."""
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
        """Return the constraint of a demand against a fixed capacity.

        `relieve` gets the multiple of today's capacity that the resource needs.
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
        """Return a constraint that cannot be evaluated, with the missing input."""
        rank = self.cause_rank
        return Constraint(self, resource, lambda _: 0.0, 0.0, "assumed", rank, needs or self.needs)


class ComputedLayer(Layer, ABC):
    """A layer that is computed from the input files alone."""

    @abstractmethod
    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return a constraint for each resource of the fleet, unknown ones included."""

    def evaluated(self, state: State, axis: Axis) -> list[Constraint]:
        """Return its constraints along an axis; missing inputs are reported only if it grows."""
        if not self.shown_when_constant and not self.grows(axis):
            return []
        report_missing = self.reports_missing(axis)
        return [
            constraint
            for constraint in self.constraints(state, axis)
            if report_missing or not constraint.needs
        ]


class DerivedLayer(Layer, ABC):
    """A layer that is derived from the constraints of other layers."""

    @abstractmethod
    def constraints(self, state: State, others: Sequence[Constraint]) -> Iterable[Constraint]:
        """Return its constraints, given those of the computed layers."""


def with_resource(title: str, resource: str) -> str:
    """Return the title of a layer and a resource, which is not repeated if the title ends in it."""
    return f"{title}, {resource}" if resource and not title.endswith(resource) else title


def figure(value: float, digits: int = 3) -> str:
    """Return a figure with so many digits, and never in scientific notation."""
    return f"{value:,.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def break_of(constraint: Constraint, most: float) -> Break:
    """Return where a constraint breaks, with the range that its evidence leaves."""
    if constraint.needs:
        return Break(None, None, None, "unknown")
    found = arithmetic.break_of(constraint.utilisation, constraint.spread, most, constraint.bounds)
    return arithmetic.widened(found, constraint.factor_spread, most)


def relax(state: State, *constraints: Constraint) -> State:
    """Return the state as if the resources of some constraints had no limit."""
    unlimited = (
        constraint.unlimited for constraint in constraints if constraint.unlimited is not None
    )
    return replace(
        state,
        relaxed=(*state.relaxed, *(constraint.key for constraint in constraints)),
        unlimited=(*state.unlimited, *unlimited),
    )
