"""Options of `tenfold sim run` for the power grid, and the rows it adds to the report."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter, validators

from tenfold.model.errors import InputError
from tenfold.model.facts.intensity import ShiftBy
from tenfold.model.units import HOUR, SECOND, Millis

if TYPE_CHECKING:
    from tenfold.compose.grid import GridFiles
    from tenfold.study.sim.green import Green


@dataclass(frozen=True, kw_only=True)
class GridOptions:
    """The grid curve, and whether jobs wait for better hours."""

    intensity: Annotated[
        Path | None,
        Parameter(
            help="Grid carbon intensity and power price per hour, as CSV "
            "(hour, co2_g_per_kwh, usd_per_kwh); adds CO2 to the report"
        ),
    ] = None
    shift: Annotated[
        ShiftBy | None,
        Parameter(help="Hold jobs with a deadline until CO2 intensity or the power price is lower"),
    ] = None
    shift_slack: Annotated[
        float | None,
        Parameter(
            help="Time to leave between the delayed submission and the deadline, as a"
            " multiple of the job's time limit (default: 1.5)",
            validator=validators.Number(gte=1, lte=1_000),
        ),
    ] = None
    shift_lasts_s: Annotated[
        float | None,
        Parameter(
            help="Run time in seconds to assume for jobs without a time limit "
            "(default: do not delay them)",
            validator=validators.Number(gt=0, lte=1e9),
        ),
    ] = None

    def files(self) -> "GridFiles | None":
        """Return what to read, or None where nothing was asked."""
        if self.shift is None and (self.shift_slack or self.shift_lasts_s):
            raise InputError(
                "slack-without-shift",
                "`--shift-slack` and `--shift-lasts-s` need `--shift`",
                "add `--shift co2` or `--shift price`",
            )
        if self.shift is not None and self.intensity is None:
            raise InputError(
                "shift-without-curve",
                f"`--shift {self.shift}` needs hourly figures for your power grid",
                "add `--intensity FILE`",
            )
        if self.intensity is None:
            return None
        from tenfold.compose.grid import SLACK_DEFAULT, GridFiles  # noqa: PLC0415

        lasts_s = self.shift_lasts_s
        return GridFiles(
            intensity=self.intensity,
            shift=self.shift,
            slack=SLACK_DEFAULT if self.shift_slack is None else self.shift_slack,
            lasts_ms=None if lasts_s is None else Millis(round(lasts_s * SECOND)),
        )


NO_GRID = GridOptions()


def grid_figures(found: "Green") -> list[tuple[str, str]]:
    """Return the rows of the report about energy from the grid."""
    rows = [("CO2 of allocated GPUs", f"{found.co2_kg:,.0f} kg")]
    if found.usd_energy is not None:
        rows.append(("energy cost of allocated GPUs", f"${found.usd_energy:,.0f}"))
    if found.deadlines:
        rows.append(("deadlines missed", f"{found.deadlines_missed:,} of {found.deadlines:,}"))
    if found.jobs_shifted:
        mean_h = found.avg_shift_s * SECOND / HOUR
        rows.append(("jobs delayed to cleaner or cheaper hours", f"{found.jobs_shifted:,}"))
        rows.append(("mean delay", f"{mean_h:,.1f} h"))
    return rows
