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
from tenfold.model.growth.growth import Axis, Grade, Quantity, Thing, moves
from tenfold.physics.growth import law as arithmetic
from tenfold.physics.growth.law import Break, Evidence, Strain
from tenfold.study.grow.relief import Relief
from tenfold.study.grow.state import LawKey, State

DOSE_MOST = 1_000.0
"""A layer that would need more than this many times its capacity is not relieved by more."""
Seen = Callable[[float], str]
"""What is seen at a factor, in one sentence."""
Relieve = Callable[["Law", float], Iterable[Relief]]
"""What lets a law hold up to a factor."""
Unlimited = Callable[[FleetSpec], FleetSpec]


def _silent(_: float) -> str:
    return ""


def _no_relief(_: "Law", __: float) -> Iterable[Relief]:
    return ()


@dataclass(frozen=True, slots=True)
class Law:
    """One resource of a layer, and how its strain rises with the factor."""

    of: "Layer"
    resource: str
    strain: Strain
    spread: float
    grade: Grade
    cause_rank: int
    needs: str = ""
    """The figure that is missing; empty where the law can be judged."""
    symptom: Seen = _silent
    relieve: Relieve = _no_relief
    unlimited: Unlimited | None = None
    """The fleet as runs see it where this resource has no limit; None: runs do not see it."""

    @property
    def layer(self) -> str:
        """The name of its layer."""
        return self.of.name

    @property
    def key(self) -> LawKey:
        """The layer and its resource as one name."""
        return self.of.key(self.resource)

    def slowing_runs(self, unlimited: Unlimited) -> "Law":
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
    asked_with: tuple[Quantity, ...] = ()
    """What else its figures are asked for with, although it does not grow with it."""
    needs: str
    """The figures that it is judged by, and the files that state them."""
    fixed_by: str
    """Its reliefs in a few words."""
    assumes: str = ""
    """What its laws rest on where they are graded as assumed."""
    lead_times: tuple[Thing, ...] = ()
    """What is ordered to relieve it, as lead times name it."""
    always_listed: bool = False
    """Whether it is named as not judged where it has no law: silence is not health."""
    shown_when_still: bool = True
    """Whether it is judged along an axis that does not move it."""
    shows_slow_jobs: bool = False
    """Whether it also breaks because jobs are slowed down by another layer."""

    def grows(self, axis: Axis) -> bool:
        """Return whether demand on this layer grows along an axis."""
        return any(moves(axis, quantity) for quantity in self.grows_with)

    def asked(self, axis: Axis) -> bool:
        """Return whether figures that are missing are asked for along an axis."""
        return self.grows(axis) or any(moves(axis, quantity) for quantity in self.asked_with)

    def key(self, resource: str) -> LawKey:
        """Return the name of the law about one resource."""
        return LawKey(f"{self.name}:{resource}")

    def law(
        self,
        resource: str,
        demand: Callable[[float], float],
        capacity: float,
        evidence: Evidence,
        seen: Seen,
        relieve: Callable[[float], Iterable[Relief]] | None = None,
    ) -> Law:
        """Return the law of a demand against a capacity that stands still.

        `relieve` is given how many times its capacity the resource needs.
        """

        def strain(factor: float) -> float:
            return demand(factor) / capacity if capacity > 0 else inf

        def dosed(law: Law, target: float) -> Iterable[Relief]:
            dose = law.strain(target)
            if relieve is None or not isfinite(dose) or not 1 < dose <= DOSE_MOST:
                return ()
            return relieve(dose)

        return Law(
            self,
            resource,
            strain,
            evidence.spread,
            evidence.grade,
            self.cause_rank,
            symptom=seen,
            relieve=dosed,
        )

    def unknown(self, resource: str, needs: str = "") -> Law:
        """Return a law that cannot be judged, with the figure that would answer it."""
        rank = self.cause_rank
        return Law(self, resource, lambda _: 0.0, 0.0, "assumed", rank, needs or self.needs)


class FiguredLayer(Layer, ABC):
    """A layer that is judged by figures of files alone."""

    @abstractmethod
    def laws(self, state: State, axis: Axis) -> Iterable[Law]:
        """Return a law for each resource of the fleet, or those that are unknown."""

    def judged(self, state: State, axis: Axis) -> list[Law]:
        """Return its laws along an axis; what is missing is only asked for where it grows."""
        if not self.shown_when_still and not self.grows(axis):
            return []
        asked = self.asked(axis)
        return [law for law in self.laws(state, axis) if asked or not law.needs]


class FollowingLayer(Layer, ABC):
    """A layer that is judged by the laws of others."""

    @abstractmethod
    def laws(self, state: State, others: Sequence[Law]) -> Iterable[Law]:
        """Return its laws, given those of the layers that are judged by figures."""


def break_of(law: Law, most: float) -> Break:
    """Return where a law breaks, with the interval that its evidence leaves."""
    if law.needs:
        return Break(None, None, None, "unknown")
    return arithmetic.break_of(law.strain, law.spread, most)


def lift(state: State, *laws: Law) -> State:
    """Return the state as if the resources of some laws had no limit."""
    unlimited = (law.unlimited for law in laws if law.unlimited is not None)
    return replace(
        state,
        lifted=(*state.lifted, *(law.key for law in laws)),
        unlimited=(*state.unlimited, *unlimited),
    )
