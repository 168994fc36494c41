"""The options of `tenfold sim run` about the grid, and its figures for people."""

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
    """What is known of the grid, and whether jobs wait for it."""

    intensity: Annotated[
        Path | None, Parameter(help="CSV of hour, co2_g_per_kwh and usd_per_kwh: adds CO2.")
    ] = None
    shift: Annotated[
        ShiftBy | None, Parameter(help="Hold jobs with a deadline for clean or cheap hours.")
    ] = None
    shift_slack: Annotated[
        float | None,
        Parameter(
            help="From release to deadline, times the limit, 1.5.",
            validator=validators.Number(gte=1, lte=1_000),
        ),
    ] = None
    shift_lasts_s: Annotated[
        float | None,
        Parameter(
            help="What jobs without a limit are taken to last; else they are not held.",
            validator=validators.Number(gt=0, lte=1e9),
        ),
    ] = None

    def files(self) -> "GridFiles | None":
        """Return what to read, or None where nothing was asked."""
        if self.shift is None and (self.shift_slack or self.shift_lasts_s):
            raise InputError(
                "slack-without-shift",
                "`--shift-slack` and `--shift-lasts-s` mean nothing where no job is held",
                "add `--shift co2` or `--shift price`",
            )
        if self.shift is not None and self.intensity is None:
            raise InputError(
                "shift-without-curve",
                f"`--shift {self.shift}` has no hours to choose from",
                "give the curve of your grid: `--intensity FILE`",
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
    """Return what a run took from the grid and what each figure is."""
    rows = [("CO2 of allocated GPUs", f"{found.co2_kg:,.0f} kg")]
    if found.usd_energy is not None:
        rows.append(("dollars for their energy", f"${found.usd_energy:,.0f}"))
    if found.deadlines:
        rows.append(("deadlines missed", f"{found.deadlines_missed:,} of {found.deadlines:,}"))
    if found.jobs_shifted:
        mean_h = found.avg_shift_s * SECOND / HOUR
        rows.append(("jobs held for better hours", f"{found.jobs_shifted:,}"))
        rows.append(("held for, mean", f"{mean_h:,.1f} h"))
    return rows
