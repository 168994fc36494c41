"""From the terms of a job table to jobs that have them, and arrays to their members.

A row that says nothing has no terms at all: it costs a simulation nothing either.
"""

from collections.abc import Iterator, Sequence
from typing import TypeVar, cast

from msgspec.structs import replace

from tenfold.files.traces.cells import Cells
from tenfold.files.traces.columns import PRODUCTION, TermColumns
from tenfold.model.fleet.constraints import Level, PlacementConstraints, TopologyMode
from tenfold.model.ids import JobId
from tenfold.model.job.job import WHOLE, Job, Shape
from tenfold.model.job.terms import JobKind, Terms
from tenfold.model.units import Millis

YES, NO = ("yes", "true", "1"), ("no", "false", "0")

V = TypeVar("V")


def cell(cells: Cells[V] | None, row: int) -> V | None:
    """Return a value, or None where the column or the cell is not there."""
    return None if cells is None else cells.values[row]


def names(cells: Cells[str] | None, row: int) -> tuple[str, ...]:
    """Return what a cell lists, joined by semicolons, each name once."""
    parts = (part.strip() for part in (cell(cells, row) or "").split(";"))
    return tuple(dict.fromkeys(part for part in parts if part))


def members(job_id: str, count: int) -> Iterator[JobId]:
    """Yield the names of the members of an array."""
    for number in range(count):
        yield JobId(f"{job_id}[{number}]")


def array_sizes(columns: TermColumns, ids: Sequence[str]) -> dict[str, int]:
    """Return how many members each row has that is an array."""
    if columns.array_milli is None:
        return {}
    sizes = zip(ids, columns.array_milli.values, strict=True)
    return {job_id: milli // WHOLE for job_id, milli in sizes if milli is not None}


def with_terms(jobs: Sequence[Job], columns: TermColumns, ids: Sequence[str]) -> list[Job]:
    """Return jobs with the terms of their rows, an array as all of its members."""
    rows = {job_id: row for row, job_id in enumerate(ids)}
    sizes = array_sizes(columns, ids)
    terms_made: dict[Terms, Terms] = {}
    shapes_made: dict[tuple[str, PlacementConstraints], Shape] = {}
    made: list[Job] = []
    for job in jobs:
        row = rows[job.id]
        terms = _terms(columns, row, job, sizes)
        if terms is not None:
            terms = terms_made.setdefault(terms, terms)
        shape, where = job.shape, _where(columns, row)
        if where is not None:
            key = (shape.key, where)
            if key not in shapes_made:
                named = f"{shape.key} {where.key}"
                shapes_made[key] = replace(shape, key=named, where=where)
            shape = shapes_made[key]
        size = sizes.get(job.id)
        for job_id in (job.id,) if size is None else members(job.id, size):
            made.append(replace(job, id=job_id, seq=len(made), shape=shape, terms=terms))
    return made


def _terms(columns: TermColumns, row: int, job: Job, sizes: dict[str, int]) -> Terms | None:
    least_milli, most_milli = cell(columns.least_milli, row), cell(columns.most_milli, row)
    least = most = 0
    if least_milli is not None or most_milli is not None:
        least = job.shape.gpus if least_milli is None else least_milli // WHOLE
        most = job.shape.gpus if most_milli is None else most_milli // WHOLE
    after: list[str] = []
    for name in names(columns.after, row):
        after += members(name, sizes[name]) if name in sizes else (name,)
    terms = Terms(
        kind=cast(JobKind, cell(columns.kind, row) or "batch"),
        preemptible=(cell(columns.preemptible, row) or "yes").lower() in YES,
        checkpoint_every_ms=cast(Millis | None, cell(columns.checkpoint_every_ms, row)),
        least_gpus=least,
        most_gpus=most,
        after=tuple(JobId(name) for name in after),
        array=job.id if job.id in sizes else "",
        array_most=(cell(columns.array_most_milli, row) or 0) // WHOLE,
        off_peak=(cell(columns.off_peak, row) or "no").lower() in YES,
        busy_ms=cast(Millis | None, cell(columns.busy_ms, row)),
    )
    return None if terms == Terms() else terms


def _where(columns: TermColumns, row: int) -> PlacementConstraints | None:
    within, how = cell(columns.within, row) or "", cell(columns.how, row) or "preferred"
    needs, avoids = names(columns.needs, row), names(columns.avoids, row)
    if cell(columns.kind, row) == "experiment" and PRODUCTION not in avoids:
        avoids = (*avoids, PRODUCTION)
    if not (within or needs or avoids):
        return None
    return PlacementConstraints(
        within=cast(Level, within), how=cast(TopologyMode, how), needs=needs, avoids=avoids
    )
