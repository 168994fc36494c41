"""Lead time against pace: does what is ordered today come before the layer that needs it breaks?

This does not grow with the factor: it is so today, or it is not. Where it is not, that stands
beside the ladder and is no rung of it, for more of nothing relieves it.
"""

from collections.abc import Iterable, Sequence
from math import inf

from tenfold.model.growth.growth import LeadTime, Pace
from tenfold.physics.growth.breaking import STATED, breaking_factor
from tenfold.study.grow.layer import Constraint, DerivedLayer
from tenfold.study.grow.state import State

FACTOR_MOST = 1_000.0
WEEKS_PER_MONTH = 365.25 / 12 / 7


class LeadTimeLayer(DerivedLayer):
    """Each thing with a lead time that relieves one of the layers that were judged."""

    name = "lead-time"
    breaks = "demand passes what a layer stands before what relieves it comes"
    cause_rank = 91
    grows_with = ()
    needs = "`[pace]` and `[[lead_time]]`s of the grow file"
    fixed_by = "an order before today"

    def constraints(self, state: State, others: Sequence[Constraint]) -> Iterable[Constraint]:
        """Return one law for each thing with a lead time that relieves one of the laws given."""
        times, pace = state.grow.lead_times, state.grow.pace
        if pace is None and not times:
            return []
        if pace is None or not times:
            missing = "`[pace]`" if pace is None else "`[[lead_time]]`s"
            return [self.unknown("orders", f"{missing} of the grow file")]
        made = [self._thing(time, pace, others) for time in times]
        return [constraint for constraint in made if constraint is not None]

    def _thing(self, time: LeadTime, pace: Pace, others: Sequence[Constraint]) -> Constraint | None:
        """Demand when an order of today comes, over what the layer that waits for it stands.

        A layer that is only assumed, or unknown, makes nobody late.
        """
        waiting = [
            constraint
            for constraint in others
            if time.thing in constraint.of.lead_times
            and constraint.grade != "assumed"
            and not constraint.needs
        ]
        if not waiting:
            return None
        breaks = [
            (breaking_factor(constraint.utilisation, FACTOR_MOST) or inf, constraint)
            for constraint in waiting
        ]
        stands, first = min(breaks, key=lambda one: (one[0], one[1].key))
        comes = 2 ** (time.weeks_p90 / (pace.doubles_in_months * WEEKS_PER_MONTH))

        def symptom(_: float) -> str:
            when = f"{time.thing} ordered today comes in {time.weeks_p90:g} weeks, at {comes:.2f}x"
            return when if stands == inf else f"{when}; {first.layer} breaks at {stands:.2f}x"

        return self.constraint(time.thing, lambda _: comes, stands, STATED, symptom)
