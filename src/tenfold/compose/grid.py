"""Read the grid curve and choose when deferrable jobs are released."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from tenfold.decide.shift.release import SLACK_DEFAULT, release_at
from tenfold.files.traces.grid_intensity import read_intensity
from tenfold.model.errors import InputError
from tenfold.model.facts.intensity import Intensity, ShiftBy
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.units import Millis
from tenfold.report.reasons.render import duration_text

COUNTED = (
    "CO2 and energy cover allocated GPUs with their share of the node and cooling; "
    "idle power and nodes without GPUs are not included"
)


class GridFiles(Struct, frozen=True, kw_only=True):
    """The grid curve, and whether jobs may wait for better hours."""

    intensity: Path
    shift: ShiftBy | None = None
    slack: float = SLACK_DEFAULT
    lasts_ms: Millis | None = None
    """Assumed run time of jobs without a limit; None means that they are not delayed."""


class Grid(Struct, frozen=True, kw_only=True):
    """The curves, and when delayed jobs are released."""

    intensity: Intensity
    release_ms: dict[JobId, Millis]
    notes: tuple[str, ...]


def read_grid(files: GridFiles, jobs: Sequence[Job]) -> Grid:
    """Read the curves and choose a release time for every job that can wait."""
    intensity = read_intensity(files.intensity)
    notes = [COUNTED]
    if not intensity.co2_g_per_kwh.is_whole_days:
        hours = intensity.co2_g_per_kwh.hours
        notes.append(
            f"`{files.intensity}` has {hours:,} hours, not whole days: it repeats at a different "
            "time of day"
        )
    if files.shift is None:
        return Grid(intensity=intensity, release_ms={}, notes=tuple(notes))
    curve = intensity.co2_g_per_kwh if files.shift == "co2" else intensity.usd_per_kwh
    if curve is None:
        raise InputError(
            "missing-column",
            f"`{files.intensity}` has no column `usd_per_kwh` to shift by",
            "add the column, or use `--shift co2`",
            file=str(files.intensity),
            field="usd_per_kwh",
        )
    release_ms: dict[JobId, Millis] = {}
    for job in jobs:
        at_ms = release_at(job, job.submitted_ms, curve, files.lasts_ms, slack=files.slack)
        if at_ms > job.submitted_ms:
            release_ms[job.id] = at_ms
    notes += _not_shifted_notes(files, jobs)
    return Grid(intensity=intensity, release_ms=release_ms, notes=tuple(notes))


def _not_shifted_notes(files: GridFiles, jobs: Sequence[Job]) -> list[str]:
    """Return notes on jobs that cannot be delayed."""
    deadlines = sum(job.deadline_ms is not None for job in jobs)
    if not deadlines:
        return ["no job has a `deadline_s`, so none is delayed"]
    without_limit = sum(job.deadline_ms is not None and job.limit_ms is None for job in jobs)
    if not without_limit:
        return []
    if files.lasts_ms is None:
        return [
            f"{without_limit:,} jobs with a deadline have no `limit_s` and are not delayed; "
            "set their run time with `--shift-lasts-s`"
        ]
    assumed = duration_text(files.lasts_ms)
    return [f"{without_limit:,} jobs with a deadline have no `limit_s`: assumed to run {assumed}"]
