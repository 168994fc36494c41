"""Read the inputs of a capacity plan: what `grow` reads, a plan file, drivers and a history."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from tenfold.files.capacity.drivers import read_drivers
from tenfold.files.capacity.plan_file import read_plan_file
from tenfold.files.series.series import read_timed_series
from tenfold.model.capacity.drivers import Driver
from tenfold.model.capacity.plan_file import Horizon, PlanFile
from tenfold.model.errors import InputError
from tenfold.model.growth.growth import Axis
from tenfold.study.grow.inputs import GrowFiles, GrowInputs, grow_inputs


class CapacityFiles(Struct, frozen=True, kw_only=True):
    """The files given on the command line."""

    grow: GrowFiles
    plan: Path | None = None
    drivers: tuple[Path, ...] = ()
    history: Path | None = None
    axis: Axis = "all"
    failures: str | None = None
    count_assumed: bool = False


class TimedSeries(Struct, frozen=True, kw_only=True):
    """A history of demand in GPUs, evenly spaced."""

    step_s: float
    values: tuple[float, ...]


class CapacityInputs(Struct, frozen=True, kw_only=True):
    """Everything that a capacity plan reads, as values."""

    grow: GrowInputs
    plan: PlanFile = PlanFile()
    drivers: tuple[Driver, ...] = ()
    history: Mapping[str, TimedSeries] = {}
    axis: Axis = "all"
    failures: str | None = None
    count_assumed: bool = False
    notes: tuple[str, ...] = ()
    """What was filled in while reading."""

    @property
    def horizon(self) -> Horizon:
        """How far ahead, and how it is drawn."""
        return self.plan.plan

    @property
    def adds_demand(self) -> bool:
        """Whether a driver adds to demand, so that it does not follow `[pace]` alone."""
        return any(one.kind in ("training", "gpus", "service") for one in self.drivers)

    @property
    def start(self) -> str:
        """The first day of the plan: that of `[pace]`, or the one that the plan file states."""
        pace, stated = self.grow.grow.pace, self.horizon.start
        if pace is not None:
            return pace.today
        if not stated:
            raise InputError(
                "missing-key",
                "the plan has no start date, and the system clock is not used",
                "set `start` under `[plan]` in the plan file, or `[pace]` in the grow file",
                field="start",
            )
        return stated


def capacity_inputs(files: CapacityFiles) -> CapacityInputs:
    """Read all inputs; a fleet file and a grow file with `[pace]` are enough."""
    grow = grow_inputs(files.grow)
    fleet = grow.fleet
    plan = PlanFile()
    if files.plan is not None:
        plan = read_plan_file(files.plan, fleet.catalogue, fleet.spec)
    pace = grow.grow.pace
    if pace is not None and plan.plan.start and plan.plan.start != pace.today:
        raise InputError(
            "wrong-value",
            f"the plan starts on {plan.plan.start}, but `[pace]` on {pace.today}",
            "leave out `start` under `[plan]`",
            file=str(files.plan),
            field="start",
        )
    notes: list[str] = []
    series = {} if files.history is None else read_timed_series(files.history, notes)
    return CapacityInputs(
        grow=grow,
        plan=plan,
        drivers=read_drivers(files.drivers, fleet.catalogue, fleet.spec),
        history={
            name: TimedSeries(step_s=step_s, values=tuple(values))
            for name, (step_s, values) in series.items()
        },
        axis=files.axis,
        failures=files.failures,
        count_assumed=files.count_assumed,
        notes=tuple(notes),
    )
