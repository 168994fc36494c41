"""Lead time against pace: does what is ordered today come before the layer that needs it breaks?

This does not grow with the factor: it is so today, or it is not. Where it is not, that stands
beside the ladder and is no rung of it, for more of nothing relieves it.
"""

from collections.abc import Sequence
from math import inf

from tenfold.model.growth import LeadTime, Pace
from tenfold.physics.growth.law import STATED, Law, Named, breaking_factor
from tenfold.study.grow.state import State

LEAD = 91
LAYER = "lead-time"
FACTOR_MOST = 1_000.0
WEEKS_PER_MONTH = 365.25 / 12 / 7
_FOR: dict[str, tuple[str, ...]] = {
    "nodes": ("compute",),
    "site-power": ("site-power",),
    "rack-power": ("rack-power", "cooling"),
    "rack": ("rack-power", "cooling"),
    "switch": ("switch-ports",),
    "floor": ("floor",),
    "storage": ("storage-capacity", "storage-read", "storage-streams", "storage-write"),
}
"""Layers that a thing relieves, by the name it has in lead times."""


def lead_time_laws(state: State, laws: Sequence[Law]) -> list[Law]:
    """Return one law for each thing with a lead time that relieves one of the laws given."""
    times, pace = state.grow.lead_times, state.grow.pace
    if pace is None and not times:
        return []
    if pace is None or not times:
        missing = "`[pace]`" if pace is None else "`[[lead_time]]`s"
        return [Named(LAYER, "orders", LEAD).unknown(f"{missing} of the grow file")]
    made = [_law(time, pace, laws) for time in times]
    return [law for law in made if law is not None]


def _law(time: LeadTime, pace: Pace, laws: Sequence[Law]) -> Law | None:
    """Demand when an order of today comes, over what the layer that waits for it stands.

    A layer that is only assumed, or unknown, makes nobody late.
    """
    waiting = [
        law
        for law in laws
        if law.layer in _FOR.get(time.thing, ()) and law.grade != "assumed" and not law.needs
    ]
    if not waiting:
        return None
    breaks = [(breaking_factor(law.strain, FACTOR_MOST) or inf, law) for law in waiting]
    stands, first = min(breaks, key=lambda one: (one[0], one[1].key))
    comes = 2 ** (time.weeks_p90 / (pace.doubles_in_months * WEEKS_PER_MONTH))

    def seen(_: float) -> str:
        when = f"{time.thing} ordered today comes in {time.weeks_p90:g} weeks, at {comes:.2f}x"
        return when if stands == inf else f"{when}; {first.layer} breaks at {stands:.2f}x"

    name = Named(LAYER, time.thing, LEAD)
    return name.law(lambda _: comes, stands, STATED, seen)
