"""What relieves a layer, in doses: enough for the layer to stand a target, and what that costs.

A relief is a change of the state, so all other laws feel it: shelves more draw power. Costs
are those that the fleet file or a fact states; one that nobody states stays unknown, and
such a relief is tried after all that have a price.
"""

from collections.abc import Callable
from math import isfinite

from tenfold.physics.growth.law import Law
from tenfold.study.grow.laws_measured import of_measurement
from tenfold.study.grow.relief import Relief, taken, times
from tenfold.study.grow.reliefs_control import CONTROL_RELIEFS
from tenfold.study.grow.reliefs_fabric import FABRIC_RELIEFS
from tenfold.study.grow.reliefs_nodes import NODE_RELIEFS
from tenfold.study.grow.reliefs_site import SITE_RELIEFS
from tenfold.study.grow.reliefs_storage import STORAGE_RELIEFS
from tenfold.study.grow.reliefs_upkeep import UPKEEP_RELIEFS
from tenfold.study.grow.reliefs_work import WORK_RELIEFS
from tenfold.study.grow.state import State, widen

DOSE_MOST = 1_000.0
"""A layer that would need more than this many times its capacity is not relieved by more."""
_RELIEFS: dict[str, Callable[[Law, State, float], list[Relief]]] = {
    **SITE_RELIEFS,
    **STORAGE_RELIEFS,
    **FABRIC_RELIEFS,
    **NODE_RELIEFS,
    **CONTROL_RELIEFS,
    **UPKEEP_RELIEFS,
}


def reliefs_for(law: Law, state: State, target: float) -> list[Relief]:
    """Return what would let a layer stand `target`: free first, then priced, then unpriced."""
    dose = law.strain(target)
    if law.layer in WORK_RELIEFS and dose > 1 and not of_measurement(law):
        return sorted(WORK_RELIEFS[law.layer](law, state, target), key=_price_order)
    if not isfinite(dose) or not 1 < dose <= DOSE_MOST:
        return []
    if of_measurement(law):
        return [_capacity(law, dose)]
    make = _RELIEFS.get(law.layer)
    return [] if make is None else sorted(make(law, state, dose), key=_price_order)


def _price_order(relief: Relief) -> tuple[bool, float]:
    return relief.usd_per_month is None, relief.usd_per_month or 0.0


def _capacity(law: Law, dose: float) -> Relief:
    """What was measured has a limit, and nobody said what it is made of."""

    def apply(now: State) -> State:
        return widen(taken(now, "capacity"), law.key, times(dose))

    text = f"{times(dose):g} times the capacity of {law.resource}"
    return Relief("capacity", text, None, None, apply)
