"""Read a job table in the documented schema, as CSV or Parquet.

A table is checked by column and turned into jobs in one pass, to keep reading 100,000 jobs
fast. Jobs with the same request share one `Shape` object.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, repeat
from operator import itemgetter, le
from pathlib import Path
from typing import TypeVar, cast

from tenfold.files.traces.cells import Cells
from tenfold.files.traces.checks import refuse, shape_problem, terms_are_valid
from tenfold.files.traces.columns import (
    KNOWN_COLUMNS,
    TRACE_NAMES,
    JobColumns,
    column_notes,
    complete_values,
    job_columns,
    trace_name_column,
)
from tenfold.files.traces.tables import read_table, rows_of_trace
from tenfold.files.traces.terms import array_sizes, members, with_terms
from tenfold.files.traces.trace import JobTrace, status_word, valid_starts
from tenfold.model.errors import InputError
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import WHOLE, Job, Shape, shape_of
from tenfold.model.units import Millis

T = TypeVar("T")
_Key = tuple[int, int | None, str | None, float | None, float | None]


def read_jobs(
    path: Path, *, default_team: str = "", fill: bool = False, trace: str = ""
) -> JobTrace:
    """Return the jobs of a table by time of submission, or raise with every bad row.

    With `fill`, jobs arrive in file order: job number n is submitted at n ms, and
    durations are not known. Pods drawn more than once get a number behind their name. Of a file
    with several traces, `trace` names the one to read.
    """
    table = read_table(path, (*KNOWN_COLUMNS, *TRACE_NAMES) if trace else KNOWN_COLUMNS)
    if trace:
        table = rows_of_trace(table, trace_name_column(table), trace)
    columns = job_columns(table, fill=fill)
    if not table.rows:
        raise InputError("no-jobs", f"`{path}` has no jobs", "add one row per job", file=str(path))
    notes = column_notes(table)
    ids = _ids(columns, table.rows)
    if fill:
        ids = _number_duplicates(ids, notes)
    shapes = _shapes(columns)
    if shapes is None or not _is_valid(columns, ids, fill=fill):
        refuse(table, columns, ids, fill=fill)
    jobs = _jobs(columns, ids, shapes, default_team)
    statuses, starts = _statuses(columns, ids), _starts(columns, ids)
    if columns.terms is not None:
        jobs = with_terms(jobs, columns.terms, ids)
        sizes = array_sizes(columns.terms, ids)
        statuses, starts = _of_members(statuses, sizes), _of_members(starts, sizes)
    return JobTrace(jobs, notes, statuses, valid_starts(jobs, starts, notes))


def _ids(columns: JobColumns, rows: int) -> Sequence[str]:
    if columns.ids is None:
        return [f"job-{number}" for number in range(1, rows + 1)]
    if not columns.ids.gaps:
        return cast(Sequence[str], columns.ids.values)
    return [job or f"job-{number}" for number, job in enumerate(columns.ids.values, start=1)]


def _number_duplicates(ids: Sequence[str], notes: list[str]) -> Sequence[str]:
    """Tell rows of one name apart: a list of pods may be drawn with replacement."""
    if len(set(ids)) == len(ids):
        return ids
    taken_names = set(ids)
    drawn: dict[str, int] = {}
    numbered: list[str] = []
    for job in ids:
        name = job
        drawn[job] = drawn.get(job, 0) + 1
        if drawn[job] > 1:
            while (name := f"{job}#{drawn[job]}") in taken_names:
                drawn[job] += 1
        numbered.append(name)
    repeated = len(ids) - len(drawn)
    notes.append(f"{repeated:,} rows repeat a job id; they are renamed, for example `{ids[0]}#2`")
    return numbered


def _is_valid(columns: JobColumns, ids: Sequence[str], *, fill: bool) -> bool:
    numbers = (
        columns.submit_ms,
        columns.duration_ms,
        columns.limit_ms,
        columns.deadline_ms,
        columns.start_ms,
        columns.cpus,
        columns.memory_gib,
    )
    if any(cells is not None and (cells.bad or _minimum(cells) < 0) for cells in numbers):
        return False
    others = (columns.gpus_milli, columns.gpus_per_node_milli, columns.priority_milli)
    if any(cells is not None and cells.bad for cells in others):
        return False
    if not terms_are_valid(columns, ids):
        return False
    if fill:
        return True
    required = (columns.submit_ms, columns.duration_ms)
    complete = all(cells is not None and not cells.gaps for cells in required)
    return complete and len(set(ids)) == len(ids)


def _minimum(cells: Cells[int] | Cells[float]) -> float:
    if cells.gaps:
        return min((one for one in cells.values if one is not None), default=0)
    return min(cast(Sequence[float], cells.values), default=0)


def _shapes(columns: JobColumns) -> list[Shape] | None:
    """Return the shape of each row, the same object for the same request; None if one cannot be."""
    if columns.gpus_milli.gaps:
        return None
    gpus = complete_values(columns.gpus_milli)
    others = (columns.gpus_per_node_milli, columns.gpu_type, columns.cpus, columns.memory_gib)
    if all(cells is None for cells in others):
        # Nothing but GPUs is requested, as in most traces: spare a tuple for each job.
        plain = {milli: _shape((milli, None, None, None, None)) for milli in dict.fromkeys(gpus)}
        return None if None in plain.values() else cast(list[Shape], [plain[one] for one in gpus])
    keys = list(
        zip(
            gpus,
            _or_none(columns.gpus_per_node_milli),
            _or_none(columns.gpu_type),
            _or_none(columns.cpus),
            _or_none(columns.memory_gib),
            strict=False,
        )
    )
    shapes = {key: _shape(key) for key in dict.fromkeys(keys)}
    return None if None in shapes.values() else cast(list[Shape], [shapes[key] for key in keys])


def _shape(key: _Key) -> Shape | None:
    milli, per_node_milli, types, cpus, memory_gib = key
    if shape_problem(milli, per_node_milli) or (cpus or 0) < 0 or (memory_gib or 0) < 0:
        return None
    # On one node anyway: only a gang of several GPUs can be spread.
    per_node = None if milli <= WHOLE or per_node_milli is None else min(per_node_milli, milli)
    return shape_of(
        milli / WHOLE,
        gpus_per_node=None if per_node is None else per_node // WHOLE,
        accelerators=_types(types or ""),
        cpus=cpus or 0.0,
        memory_gib=memory_gib or 0.0,
    )


def _types(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.strip() for one in text.split("|") if one.strip()))


def _jobs(
    columns: JobColumns, ids: Sequence[str], shapes: Sequence[Shape], default_team: str
) -> list[Job]:
    submits = range(len(ids)) if columns.submit_ms is None else complete_values(columns.submit_ms)
    rows = _rows(columns, ids, submits, shapes, default_team)
    return [
        Job(
            id=job,
            shape=shape,
            submitted_ms=submitted,
            seq=seq,
            team=team,
            user=user,
            qos=qos,
            priority=priority,
            limit_ms=limit,
            deadline_ms=deadline,
            duration_ms=duration,
            profile=profile,
        )
        for (
            seq,
            submitted,
            job,
            shape,
            team,
            user,
            qos,
            priority,
            limit,
            deadline,
            duration,
            profile,
        ) in rows
    ]


_Row = tuple[
    int,
    Millis,
    JobId,
    Shape,
    TeamId,
    str,
    str,
    int,
    Millis | None,
    Millis | None,
    Millis | None,
    str,
]


def _rows(
    columns: JobColumns,
    ids: Sequence[str],
    submits: Sequence[int],
    shapes: Sequence[Shape],
    default_team: str,
) -> Iterator[_Row]:
    """Return the values of each job side by side, numbered, absent columns filled in."""
    priorities = columns.priority_milli
    values: tuple[Iterable[object], ...] = (
        submits,
        ids,
        shapes,
        _shared(columns.team, default_team),
        _shared(columns.user, ""),
        _shared(columns.qos, ""),
        repeat(0) if priorities is None else [(one or 0) // 1_000 for one in priorities.values],
        _or_none(columns.limit_ms),
        _or_none(columns.deadline_ms),
        _or_none(columns.duration_ms),
        _shared(columns.profile, ""),
    )
    # Most traces are in order already; only the others pay for a list to sort.
    if not all(map(le, submits, islice(submits, 1, None))):
        values = tuple(zip(*sorted(zip(*values, strict=False), key=itemgetter(0)), strict=True))
    # One flat row, which `zip` then makes but once: to number rows afterwards would keep each.
    return cast(Iterator[_Row], zip(range(len(ids)), *values, strict=False))


def _shared(cells: Cells[str] | None, absent: str) -> Iterable[str]:
    if cells is None:
        return repeat(absent)
    texts: dict[str | None, str] = {one: one or absent for one in dict.fromkeys(cells.values)}
    return map(texts.__getitem__, cells.values)


def _or_none(cells: Cells[T] | None) -> Iterable[T | None]:
    return repeat(None) if cells is None else cells.values


def _statuses(columns: JobColumns, ids: Sequence[str]) -> dict[JobId, str]:
    if columns.status is None:
        return {}
    words = {one: status_word(one or "") for one in dict.fromkeys(columns.status.values)}
    pairs = zip(ids, columns.status.values, strict=True)
    return {JobId(job): words[status] for job, status in pairs if status}


def _starts(columns: JobColumns, ids: Sequence[str]) -> dict[JobId, Millis]:
    if columns.start_ms is None:
        return {}
    pairs = zip(ids, columns.start_ms.values, strict=True)
    return {JobId(job): Millis(start) for job, start in pairs if start is not None}


def _of_members(by_row: dict[JobId, T], sizes: dict[str, int]) -> dict[JobId, T]:
    """Return what rows tell of jobs, for each member of an array what its row says."""
    if not sizes:
        return by_row
    found: dict[JobId, T] = {}
    for job, value in by_row.items():
        for one in members(job, sizes[job]) if job in sizes else (job,):
            found[one] = value
    return found
