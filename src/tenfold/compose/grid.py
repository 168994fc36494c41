"""From a curve of the grid to jobs that are held until it is clean or cheap."""

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
    "CO2 and energy are those of allocated GPUs with their share of the node, cooling included; "
    "idle power and nodes without GPUs are left out"
)


class GridFiles(Struct, frozen=True, kw_only=True):
    """What is known of the grid, and whether jobs may wait for it."""

    intensity: Path
    shift: ShiftBy | None = None
    slack: float = SLACK_DEFAULT
    lasts_ms: Millis | None = None
    """What a job without a limit is taken to last; without it such a job is not held."""


class Grid(Struct, frozen=True, kw_only=True):
    """The curves, and when jobs that are held are let in."""

    intensity: Intensity
    release_ms: dict[JobId, Millis]
    notes: tuple[str, ...]


def read_grid(files: GridFiles, jobs: Sequence[Job]) -> Grid:
    """Read the curves and choose a release for every job that can wait."""
    intensity = read_intensity(files.intensity)
    notes = [COUNTED]
    if not intensity.co2_g_per_kwh.is_whole_days:
        hours = intensity.co2_g_per_kwh.hours
        notes.append(
            f"`{files.intensity}` has {hours:,} hours, not whole days: the curve drifts over the "
            "day each time it repeats"
        )
    if files.shift is None:
        return Grid(intensity=intensity, release_ms={}, notes=tuple(notes))
    curve = intensity.co2_g_per_kwh if files.shift == "co2" else intensity.usd_per_kwh
    if curve is None:
        raise InputError(
            "missing-column",
            f"`{files.intensity}` has no column `usd_per_kwh` to shift by",
            "add it, or shift by CO2: `--shift co2`",
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
    """Say which jobs could not be looked at."""
    deadlines = sum(job.deadline_ms is not None for job in jobs)
    if not deadlines:
        return ["no job has a `deadline_s`, so none is held"]
    without_limit = sum(job.deadline_ms is not None and job.limit_ms is None for job in jobs)
    if not without_limit:
        return []
    if files.lasts_ms is None:
        return [
            f"{without_limit:,} jobs with a deadline state no `limit_s` and are not held; "
            "`--shift-lasts-s` says what to take them for"
        ]
    assumed = duration_text(files.lasts_ms)
    return [f"{without_limit:,} jobs with a deadline have no `limit_s`: assumed to run {assumed}"]
