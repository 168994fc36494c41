"""Lead time: does an order placed today arrive before the layer that needs it breaks?

This does not change with the factor. If an order is too late, that is reported next to the
analysis and not ranked, because no added capacity fixes it.
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
    """Each item with a lead time that fixes one of the layers evaluated."""

    name = "lead-time"
    breaks = "demand outgrows a layer before an order placed today arrives"
    cause_rank = 91
    grows_with = ()
    needs = "`[pace]` and `[[lead_time]]` in the grow file"
    fixed_by = "an earlier order"

    def label(self, resource: str) -> str:
        """Return the layer and the item to order in words; items are named by ids in files."""
        return super().label(resource.replace("-", " "))

    def constraints(self, state: State, others: Sequence[Constraint]) -> Iterable[Constraint]:
        """Return one constraint for each item with a lead time that fixes one of those given."""
        times, pace = state.grow.lead_times, state.grow.pace
        if pace is None and not times:
            return []
        if pace is None or not times:
            missing = "`[pace]`" if pace is None else "`[[lead_time]]`"
            return [self.unknown("orders", f"{missing} in the grow file")]
        made = [self._thing(time, pace, others) for time in times]
        return [constraint for constraint in made if constraint is not None]

    def _thing(self, time: LeadTime, pace: Pace, others: Sequence[Constraint]) -> Constraint | None:
        """Demand when an order placed today arrives, over the breaking factor of its layer.

        Assumed and unknown layers are left out.
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
        breaks_at, first = min(breaks, key=lambda one: (one[0], one[1].key))
        comes = 2 ** (time.weeks_p90 / (pace.doubles_in_months * WEEKS_PER_MONTH))

        weeks, title = time.weeks_p90, first.of.label("")

        def symptom(_: float) -> str:
            when = f"ordered today, it arrives in {weeks:g} weeks, at {comes:.2f}x demand"
            return when if breaks_at == inf else f"{when}; {title} breaks at {breaks_at:.2f}x"

        return self.constraint(time.thing, lambda _: comes, breaks_at, STATED, symptom)
