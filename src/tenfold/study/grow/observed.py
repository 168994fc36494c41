"""What growth is asked with where runs were timed: a history, and steps at small scale.

Laws ask for the same series at every step of a ladder, so they are made once.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from tenfold.files.core.json_lines import read_json_lines
from tenfold.model.estimate import TrainConfig, TrainRow
from tenfold.model.plan import TrainPlan
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.step_series import (
    PlannerEstimate,
    StepSeries,
    calibrated_estimates,
    step_series,
)


class ObservedInputs(GrowInputs, frozen=True, kw_only=True, dict=True):
    """All that growth is judged with, and runs: timed ones, and layouts planned beyond them."""

    observed: tuple[TrainRow, ...] = ()

    @cached_property
    def series(self) -> tuple[StepSeries, ...]:
        """How well larger jobs run, by the planner that the timed runs calibrated."""
        return step_series(self.observed, self.fleet.catalogue)

    @cached_property
    def _said(
        self,
    ) -> dict[tuple[TrainPlan, ...], Mapping[TrainConfig, tuple[PlannerEstimate, PlannerEstimate]]]:
        return {}

    def said(
        self, plans: Sequence[TrainPlan]
    ) -> Mapping[TrainConfig, tuple[PlannerEstimate, PlannerEstimate]]:
        """Return what the planner says of plans before the timed runs, and after them."""
        asked = tuple(plans)
        if asked not in self._said:
            catalogue = self.fleet.catalogue
            timed = [row for row in self.observed if row.step_s is not None]
            before, after = (
                calibrated_estimates(asked, catalogue, ()),
                calibrated_estimates(asked, catalogue, timed),
            )
            self._said[asked] = {plan: (before[plan], after[plan]) for plan in before}
        return self._said[asked]


def with_observed(inputs: GrowInputs, rows: Sequence[TrainRow]) -> GrowInputs:
    """Return inputs that know of timed and planned runs."""
    if not rows:
        return inputs
    fields = {name: getattr(inputs, name) for name in GrowInputs.__struct_fields__}
    return ObservedInputs(**fields, observed=tuple(rows))


def read_observed(inputs: GrowInputs, path: Path) -> GrowInputs:
    """Return inputs with the runs of a file of JSON lines, as `plan train` calibrates on."""
    return with_observed(inputs, read_json_lines(path, TrainRow))
