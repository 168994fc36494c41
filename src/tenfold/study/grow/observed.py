"""Inputs with timed training runs at small scale.

Constraints need the same series at every step of an analysis, so they are computed once.
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
    """All inputs, with timed runs and layouts planned for larger sizes."""

    observed: tuple[TrainRow, ...] = ()

    @cached_property
    def series(self) -> tuple[StepSeries, ...]:
        """Scaling of larger jobs, by the planner calibrated with the timed runs."""
        return step_series(self.observed, self.fleet.catalogue)

    @cached_property
    def _estimates(
        self,
    ) -> dict[tuple[TrainPlan, ...], Mapping[TrainConfig, tuple[PlannerEstimate, PlannerEstimate]]]:
        return {}

    def planner_estimates(
        self, plans: Sequence[TrainPlan]
    ) -> Mapping[TrainConfig, tuple[PlannerEstimate, PlannerEstimate]]:
        """Return planner estimates before and after calibration with the timed runs."""
        requested = tuple(plans)
        if requested not in self._estimates:
            catalogue = self.fleet.catalogue
            timed = [row for row in self.observed if row.step_s is not None]
            before, after = (
                calibrated_estimates(requested, catalogue, ()),
                calibrated_estimates(requested, catalogue, timed),
            )
            self._estimates[requested] = {plan: (before[plan], after[plan]) for plan in before}
        return self._estimates[requested]


def with_observed(inputs: GrowInputs, rows: Sequence[TrainRow]) -> GrowInputs:
    """Return inputs with timed and planned runs."""
    if not rows:
        return inputs
    fields = {name: getattr(inputs, name) for name in GrowInputs.__struct_fields__}
    return ObservedInputs(**fields, observed=tuple(rows))


def read_observed(inputs: GrowInputs, path: Path) -> GrowInputs:
    """Return inputs with the runs of a JSON Lines file, as read by `plan train`."""
    return with_observed(inputs, read_json_lines(path, TrainRow))
